// The organizations, which who has a key may see: as many as have been asked for, again and again.

import { hasKey, read } from "./data.js";
import { find, make, Shown } from "./dom.js";
import { organizationCard } from "./tables.js";

const PAGE = 50;

export class Organizations {
  constructor() {
    this.wanted = PAGE;
    this.root = find("organizations");
    this.cards = new Shown();
    find("more").addEventListener("click", () => {
      this.wanted += PAGE;
      this.refresh();
    });
  }

  /** Ask for them, and show what has changed. */
  async refresh() {
    if (!hasKey()) {
      this.say("summary", "They are shown to who has a key with the scope admin: enter it above.");
      return;
    }
    try {
      const { all, currency, has_more: more } = await this.read();
      this.cards.update([all, currency], () => this.show(all, currency));
      find("more").hidden = !more;
    } catch (error) {
      this.say("alert", error.message);
    }
  }

  async read() {
    const all = [];
    for (;;) {
      const after = encodeURIComponent(all.at(-1)?.name ?? "");
      const page = await read(`data/organizations?after=${after}`);
      all.push(...page.data);
      if (!page.has_more || all.length >= this.wanted) return { ...page, all };
    }
  }

  show(all, currency) {
    const opened = new Set([...this.root.querySelectorAll("article:has(details[open])")].map((card) => card.dataset.id));
    const focused = document.activeElement.closest?.("article")?.dataset.id;
    const cards = all.map((one) => organizationCard(one, currency));
    for (const card of cards) {
      const rest = card.querySelector("details");
      if (rest !== null) rest.open = opened.has(card.dataset.id);
    }
    this.root.replaceChildren(...cards);
    cards.find((card) => card.dataset.id === focused)?.querySelector("summary")?.focus();
  }

  /** Say something in their place. */
  say(kind, words) {
    this.cards.update(words, () => this.root.replaceChildren(make("p", { class: kind }, words)));
    find("more").hidden = true;
  }
}
