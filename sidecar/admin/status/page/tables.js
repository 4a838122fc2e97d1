// The models, the failures and the organizations.

import { brief, clock, count, duration, make, money } from "./dom.js";

/** Fill `table`: `columns` are pairs of a heading and whether it is of numbers, `rows` are lists of cells' children. */
function fill(table, columns, rows, nothing) {
  if (rows.length === 0) {
    table.replaceChildren(make("tbody", {}, make("tr", {}, make("td", { class: "nothing" }, nothing))));
    return;
  }
  const style = (number) => (number ? { class: "number" } : {});
  const head = columns.map(([title, number]) => make("th", { scope: "col", ...style(number) }, title));
  const body = rows.map((cells) => {
    const made = cells.map((children, index) => {
      const [title, number] = columns[index];
      return make("td", { "data-label": title, ...style(number) }, make("span", {}, ...children));
    });
    return make("tr", {}, ...made);
  });
  table.replaceChildren(make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...body));
}

const pill = (kind, text) => make("span", { class: `pill ${kind}` }, text);

export function showModels(table, models) {
  const columns = [["Model"], ["State"], ["Contract"], ["Calls"], ["Reasoning"], ["Context", true]];
  fill(table, columns, models.map(modelRow), "No models.");
}

function modelRow(model) {
  const behind = model.kind === "triton"
    ? `Triton: ${model.triton_model}`
    : model.routes.map((route) => `${route.upstream}: ${route.model}`).join(" → ");
  const notes = model.notes.map((note) => make("small", {}, note));
  const state = model.ready === null ? pill("", "not asked") : model.ready ? pill("good", "ready") : pill("bad", "not ready");
  const passes = model.kind === "native" ? "passes through" : null;
  return [
    [model.name, make("small", {}, behind), ...notes],
    [state, model.outage ? make("small", {}, model.outage) : null],
    [passes ?? model.contract ?? "not known yet"],
    [passes ? "–" : model.tool_format ?? "none"],
    [passes ? "–" : model.reasoning_format ?? "none"],
    [count(model.context_length)],
  ];
}

export function showFailures(table, failures) {
  const columns = [["Time"], ["Request"], ["Model"], ["Code"], ["After", true]];
  fill(table, columns, failures.map(failureRow), "None that this node remembers.");
}

function failureRow(failure) {
  const code = pill(failure.status >= 500 ? "bad" : "warn", failure.code);
  return [
    [clock(failure.at)],
    [make("span", { class: "id" }, failure.request_id || "–"), make("small", {}, `${failure.surface} surface`)],
    [failure.model || "–"],
    [code, failure.backend ? make("small", {}, failure.backend) : null],
    [duration(failure.seconds)],
  ];
}

const KINDS = {
  requests: "requests a minute",
  tokens: "tokens a minute",
  image_bytes: "image bytes a minute",
  concurrent: "at a time",
  quota: "tokens",
};
const SHOWN = 4;

export function organizationCard(organization, currency) {
  const { hour } = organization;
  const facts = [
    ["Requests", count(hour.requests)],
    ["Tokens in", brief(hour.input_tokens)],
    ["Tokens out", brief(hour.output_tokens)],
    ["Balance", `${money(organization.balance)} ${currency}`],
  ];
  const limits = organization.limits.map(limitRow).sort((one, other) => other.share - one.share);
  const rows = limits.map((limit) => limit.row);
  const rest = rows.slice(SHOWN);
  return make(
    "article",
    { class: "organization card", "data-id": organization.id },
    make(
      "h3",
      {},
      organization.name,
      organization.disabled && pill("bad", "disabled"),
      organization.prepaid && pill("", "prepaid"),
      make("span", { class: "id" }, organization.id),
    ),
    make("dl", {}, ...facts.map(([term, value]) => make("div", {}, make("dt", {}, term), make("dd", {}, value)))),
    rows.length === 0 && make("p", { class: "summary" }, "No limits."),
    rows.length > 0 && make("div", {}, ...rows.slice(0, SHOWN)),
    rest.length > 0 && make("details", {}, make("summary", {}, `${rest.length} more limits`), ...rest),
  );
}

function limitRow({ kind, model, period, limit, used }) {
  const share = limit > 0 ? used / limit : 1;
  const what = [model === "*" ? "All models" : model, KINDS[kind], period && `in ${period}`].filter(Boolean).join(", ");
  const row = make(
    "p",
    { class: `limit ${share >= 1 ? "full" : share >= 0.8 ? "near" : ""}` },
    make("span", {}, what),
    make("span", {}, `${brief(used)} of ${brief(limit)}`),
    make("progress", { max: 1, value: Math.min(1, Math.max(0, share)), "aria-label": what }),
  );
  return { share, row };
}
