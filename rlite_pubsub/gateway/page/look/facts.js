// What is known of one thing: names and values side by side.

import { question } from "./dialog.js";
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

// A row of a table in full: what does not fit on a narrow screen, and what a pointer would be told, too.
export function showRow(columns, row) {
  const [name, ...others] = columns;
  const facts = new Facts(others);
  facts.show(row);
  return question({
    title: name.text(row),
    text: name.hint?.(row).replaceAll("\n", " · ") ?? "",
    fields: [facts.element],
    yes: "Close",
    no: null,
  });
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
