// Sends a request through the relay to Envoy, and shows what comes as it comes.

import { Answer } from "./answer.js";
import { credentials } from "./data.js";
import { find, make } from "./dom.js";
import { events } from "./events.js";

const EXAMPLE = {
  tools: [
    {
      type: "function",
      name: "get_weather",
      description: "The weather in a city",
      parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
    },
  ],
};

export class Playground {
  constructor() {
    this.offered = "";
    this.surfaces = [];
    this.running = null;
    find("surface").addEventListener("change", () => this.listModels());
    find("request").addEventListener("submit", (event) => {
      event.preventDefault();
      this.send();
    });
    find("request").addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) find("request").requestSubmit();
    });
    find("stop").addEventListener("click", () => this.running?.abort());
    find("example").addEventListener("click", () => {
      find("further").value = JSON.stringify(EXAMPLE, null, 2);
    });
  }

  /** There are these surfaces with their models; a key is needed where there are accounts. */
  offer(surfaces, accounts) {
    const offered = JSON.stringify(surfaces);
    if (offered === this.offered) return;
    this.offered = offered;
    this.surfaces = surfaces;
    find("client-key").closest("p").hidden = !accounts;
    const chosen = find("surface").value;
    find("surface").replaceChildren(...surfaces.map(({ name }) => option(name, name)));
    if (surfaces.some(({ name }) => name === chosen)) find("surface").value = chosen;
    this.listModels();
  }

  listModels() {
    const surface = this.surfaces.find(({ name }) => name === find("surface").value);
    const chosen = find("model").value;
    find("model").replaceChildren(...surface.models.map((name) => option(name, name)));
    if (surface.models.includes(chosen)) find("model").value = chosen;
  }

  /** The request's body; throws where the further parameters are no object in JSON. */
  body() {
    const most = find("most").valueAsNumber;
    const written = find("further").value.trim();
    const further = written === "" ? {} : JSON.parse(written);
    if (further === null || Array.isArray(further) || typeof further !== "object") throw new Error("an object is needed");
    const own = { model: find("model").value, input: find("prompt").value, stream: true };
    return { ...own, ...(Number.isNaN(most) ? {} : { max_output_tokens: most }), ...further };
  }

  async send() {
    if (this.running !== null) return;
    const answer = new Answer();
    let body;
    try {
      body = this.body();
    } catch (error) {
      answer.fail(`The further parameters: ${error.message}`);
      return;
    }
    this.running = new AbortController();
    this.lock(true);
    try {
      await this.run(body, answer, this.running.signal);
    } catch (error) {
      if (error.name === "AbortError") answer.stop();
      else answer.fail(`The connection broke off: ${error.message}`);
    } finally {
      this.running = null;
      this.lock(false);
    }
  }

  async run(body, answer, signal) {
    const key = find("client-key").value.trim();
    const headers = { ...credentials(), "content-type": "application/json", ...(key && { "x-playground-key": key }) };
    const path = `relay/${encodeURIComponent(find("surface").value)}`;
    const response = await fetch(path, { method: "POST", headers, body: JSON.stringify(body), signal });
    answer.head(response);
    if (response.headers.get("content-type")?.startsWith("text/event-stream")) {
      for await (const event of events(response.body)) answer.take(event);
      answer.end();
    } else {
      answer.whole(await response.text(), response.ok);
    }
  }

  lock(busy) {
    find("send").disabled = busy;
    find("stop").disabled = !busy;
    find("text").setAttribute("aria-busy", String(busy));
  }
}

const option = (value, text) => make("option", { value }, text);
