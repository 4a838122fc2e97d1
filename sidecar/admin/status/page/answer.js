// One answer on the page: its text, reasoning and calls as they grow, and every event as it came.

import { duration, find, make } from "./dom.js";

const MOST_EVENTS = 2000;
const SHOWN_CHARACTERS = 160;
const PARTS = ["reasoning", "text", "calls", "events"];
const TEXT = new Set(["response.output_text.delta", "response.refusal.delta"]);
const REASONING = new Set(["response.reasoning_text.delta", "response.reasoning_summary_text.delta"]);
const ARGUMENTS = new Set(["response.function_call_arguments.delta", "response.custom_tool_call_input.delta"]);

export class Answer {
  constructor() {
    this.began = performance.now();
    this.first = null;
    this.usage = null;
    this.events = 0;
    this.calls = new Map();
    this.state = "waiting";
    this.error = null;
    this.request = "";
    for (const part of PARTS) {
      find(part).replaceChildren();
      find(`${part}-box`).hidden = true;
    }
    this.tell();
  }

  /** The head of the answer has come. */
  head(response) {
    this.request = response.headers.get("x-request-id") ?? "";
    this.state = response.ok ? "answering" : `HTTP ${response.status}`;
    this.tell();
  }

  /** One event of a stream. */
  take({ type, data, raw }) {
    this.list(type || "comment", type ? data : raw);
    if (type === "" || data === "[DONE]") return;
    this.show(JSON.parse(data));
  }

  show(event) {
    const { type } = event;
    if (TEXT.has(type)) this.grow("text", event.delta);
    else if (REASONING.has(type)) this.grow("reasoning", event.delta);
    else if (type === "response.output_item.added") this.open(event.output_index, event.item);
    else if (ARGUMENTS.has(type)) this.calls.get(event.output_index)?.append(event.delta);
    else if (type === "error") this.fail(told(event.error ?? event));
    else if (event.response?.usage) this.finish(event.response);
  }

  /** More of the text or of the reasoning. */
  grow(part, delta) {
    this.first ??= performance.now();
    find(`${part}-box`).hidden = false;
    find(part).append(delta);
  }

  /** An item has begun; of calls there may be several. */
  open(index, item) {
    if (item.name === undefined) return;
    this.first ??= performance.now();
    const call = make("li", {}, make("b", {}, item.name), " ", item.arguments ?? item.input ?? "");
    this.calls.set(index, call);
    find("calls-box").hidden = false;
    find("calls").append(call);
  }

  finish({ status, usage, error }) {
    this.usage = usage;
    this.state = status;
    if (error) this.error = told(error);
  }

  /** An answer that is no stream. */
  whole(text, ok) {
    this.list("body", text);
    try {
      const body = JSON.parse(text);
      if (ok) this.state = body.status ?? "done";
      else this.error = told(body.error);
    } catch {
      this.error = ok ? null : "The answer is no JSON.";
    }
    this.tell();
  }

  /** The stream has ended. */
  end() {
    if (this.usage === null && this.error === null) this.error = "The stream ended before the answer was whole.";
    this.tell();
  }

  /** The user wants no more of it. */
  stop() {
    this.state = "stopped";
    this.tell();
  }

  fail(words) {
    this.error = words;
    this.state = "not complete";
    this.tell();
  }

  /** Put an event into the list, of which a long answer's begin is given up. */
  list(type, data) {
    const list = find("events");
    const follows = list.scrollHeight - list.scrollTop - list.clientHeight < 40;
    const at = `${Math.round(performance.now() - this.began)} ms`;
    const line = make(
      "summary",
      {},
      make("span", { class: "at" }, at),
      make("span", { class: "type" }, type),
      make("span", { class: "data" }, data.slice(0, SHOWN_CHARACTERS)),
    );
    list.append(make("li", {}, make("details", {}, line, make("pre", {}, data))));
    if (list.childElementCount > MOST_EVENTS) list.firstElementChild.remove();
    this.events += 1;
    find("events-box").hidden = false;
    find("event-count").textContent = String(this.events);
    if (follows) list.scrollTop = list.scrollHeight;
  }

  tell() {
    const now = performance.now();
    const facts = [];
    if (this.first !== null) facts.push(`first token after ${duration((this.first - this.began) / 1000)}`);
    if (this.usage !== null) {
      const { input_tokens: input, output_tokens: output } = this.usage;
      facts.push(`${input} tokens in, ${output} out`, `${duration((now - this.began) / 1000)} in all`);
    }
    const kind = this.error !== null ? "bad" : this.usage !== null ? "good" : "";
    find("outcome").replaceChildren(
      make("span", { class: `pill ${kind}` }, this.state),
      ...facts.map((fact) => make("span", {}, fact)),
      ...(this.request ? [make("span", { class: "id" }, this.request)] : []),
      ...(this.error === null ? [] : [make("span", { class: "error" }, this.error)]),
    );
  }
}

const told = (error) => (error?.message ? `${error.code}: ${error.message}` : "There is no word of why.");
