// Asks for the node's data every few seconds while the page is seen, and shows them.

import { hasKey, read, Refused, useKey } from "./data.js";
import { brief, count, duration, find, Shown, some } from "./dom.js";
import { Organizations } from "./organizations.js";
import { Playground } from "./playground.js";
import { Plot } from "./plot.js";
import { showFailures, showModels } from "./tables.js";

const PAUSE_MS = 3000;
const ORGANIZATIONS_EVERY = 5;

const plots = {
  streams: new Plot({
    title: "Streams",
    series: [{ key: "streams", label: "at a time", name: "streams" }],
    format: brief,
    filled: true,
    empty: "No streams",
  }),
  tokens: new Plot({
    title: "Tokens written",
    series: [{ key: "output_tokens_per_second", label: "a second", name: "tokens" }],
    format: brief,
    filled: true,
    empty: "No tokens",
  }),
  firstToken: new Plot({
    title: "Time to the first token",
    series: [
      { key: "first_token_p50", label: "median", name: "tokens" },
      { key: "first_token_p95", label: "95 %", name: "second" },
    ],
    format: duration,
    empty: "No answers",
  }),
  errors: new Plot({
    title: "Errors",
    series: [
      { key: "failed", label: "failed", name: "failed" },
      { key: "refused", label: "refused", name: "second" },
    ],
    format: brief,
    bars: true,
    empty: "No errors",
  }),
};
find("plots").append(...Object.values(plots).map((plot) => plot.root));
const playground = new Playground();
const organizations = new Organizations();
const [shownModels, shownFailures] = [new Shown(), new Shown()];

function show(node) {
  document.title = `${node.node} – status`;
  find("node").textContent = node.node;
  find("summary").textContent = summary(node);
  showHour(node.hour, node.now);
  shownModels.update(node.models, (models) => showModels(find("models"), models));
  shownFailures.update(node.failures, (failures) => showFailures(find("failures"), failures));
  for (const part of document.querySelectorAll("[data-needs]")) {
    part.hidden = !node[part.dataset.needs];
  }
  if (node.playground) playground.offer(node.playground, node.accounts);
}

function summary({ now, models }) {
  const asked = models.filter((model) => model.ready !== null);
  const parts = [
    some(now.workers, "worker", "workers"),
    asked.length > 0 && `${asked.filter((model) => model.ready).length} of ${asked.length} models ready`,
    `${some(now.requests, "request", "requests")} under way`,
    now.waiting > 0 && `${count(now.waiting)} waiting`,
    now.store_up === false && "the store does not answer",
    `${brief(now.memory_bytes / 2 ** 20)} MiB`,
  ];
  return parts.filter(Boolean).join(" · ");
}

function showHour(hour, now) {
  const sum = (row) => row.reduce((all, value) => all + value, 0);
  const last = (row) => row.findLast((value) => value !== null);
  plots.streams.update(hour, count(now.streams), "now");
  plots.tokens.update(hour, brief(now.tokens_per_second), "a second now");
  const median = last(hour.first_token_p50);
  plots.firstToken.update(hour, median === undefined ? "–" : duration(median), median === undefined ? "" : "median lately");
  const errors = sum(hour.failed) + sum(hour.refused);
  plots.errors.update(hour, count(errors), `of ${some(sum(hour.requests), "request", "requests")}`);
}

/** Show what keeps the page from being true, or nothing. */
function warn(words) {
  find("alert").textContent = words;
  find("alert").hidden = words === "";
}

async function refresh() {
  try {
    show(await read("data/node"));
    warn("");
  } catch (error) {
    if (!(error instanceof Refused)) {
      warn("The node does not answer; trying again. What is shown is old.");
      return;
    }
    if (error.status === 401) find("key-form").hidden = false;
    const lacksKey = error.status === 401 && !hasKey();
    warn(lacksKey ? "This node is shown to who has a key with the scope admin: enter it above." : error.message);
  }
}

find("key-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  useKey(find("key").value.trim());
  await refresh();
  await organizations.refresh();
});

/** Ask again and again while somebody looks; for organizations, which the store is asked for, not each time. */
async function keepFresh() {
  for (let time = 0; ; time += 1) {
    if (document.visibilityState === "visible") {
      await refresh();
      if (time % ORGANIZATIONS_EVERY === 0) await organizations.refresh();
    }
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
}

keepFresh();
