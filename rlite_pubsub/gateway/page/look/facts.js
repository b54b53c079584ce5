// What is known of one thing: names and values side by side.

import { question } from "./dialog.js";
import { el, say, shown } from "./dom.js";

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

// A row of a table in full: what does not fit on a narrow screen, what a pointer would be told, and what can be done with
// it. `details(row)` are elements behind that.
export function showRow({ columns, actions = [], details = () => [] }, row) {
  const [name, ...others] = columns;
  const facts = new Facts(others.filter((column) => !column.few));
  facts.show(row);
  const offered = actions.filter((action) => action.isOffered?.(row) ?? true);
  const buttons = offered.map((action) => el("button", { type: "button", click: (event) => act(event, action, row) }, `${action.title(row)}…`));
  return question({
    title: name.text(row),
    text: name.hint?.(row).replaceAll("\n", " · ") ?? "",
    fields: [facts.element, ...details(row), ...(buttons.length ? [el("div", { class: "bar" }, ...buttons)] : [])],
    yes: "Close",
    no: null,
  });
}

// One dialog at a time: the action may ask a question of its own.
function act(event, action, row) {
  event.target.closest("dialog").close();
  action.run(row);
}

// Names in full, as many as there are room and reason for; null without any.
export function nameList(title, names, total) {
  if (!total) return null;
  const more = total > names.length ? `, and ${total - names.length} more` : "";
  return el("p", { class: "names" }, el("b", {}, `${title}: `), names.map(shown).join(", ") + more);
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
