// What is known of one thing: names and values side by side.

import { el, say } from "./dom.js";

export class Facts {
  #values = new Map();

  // `facts` are `{title, text(thing), tone?(thing)}`.
  constructor(facts) {
    this.element = el("dl", { class: "facts" });
    for (const fact of facts) {
      const value = el("dd", {}, "–");
      this.#values.set(fact, value);
      this.element.append(el("div", {}, el("dt", {}, fact.title), value));
    }
  }

  show(thing) {
    for (const [fact, value] of this.#values) {
      say(value, String(fact.text(thing)));
      if (fact.tone) value.dataset.tone = fact.tone(thing);
    }
  }
}

// JSON with indents, where the text is JSON.
export function pretty(text) {
  try {
    const value = JSON.parse(text);
    return typeof value === "object" && value !== null ? JSON.stringify(value, null, 2) : text;
  } catch {
    return text;
  }
}
