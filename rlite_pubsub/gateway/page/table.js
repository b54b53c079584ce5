// A table of any length: only the rows in sight, and a few beside them, are elements.
//
// The keyboard has it as one stop: arrows, Page Up and Down, Home and End move the chosen row, Enter opens it, Tab goes on
// to its buttons. The focus stays on the table itself, because a row that is scrolled out of sight is gone.

import { el, say } from "./dom.js";

export const ROW_PX = 30;
const BESIDE = 8;

let tables = 0;

export class Table {
  #columns;
  #actions;
  #key;
  #open;
  #moved;
  #body;
  #empty;
  #elements = new Map();
  #rows = [];
  #chosen = null;
  #drawing = 0;
  #prefix = `t${(tables += 1)}-`;

  // `open(row)` is what Enter and a double click do; `moved(first, last)` hears which rows are in sight.
  constructor({ label, columns, actions = [], actionsWidth, key, open = null, moved = () => {}, empty }) {
    this.#columns = columns;
    this.#actions = actions;
    this.#key = key;
    this.#open = open;
    this.#moved = moved;
    this.#body = el("div", { class: "rows", role: "rowgroup" });
    this.#empty = el("p", { class: "empty", hidden: true }, empty);
    const titles = columns.map((column) => el("span", { role: "columnheader", class: classes(column) }, column.title));
    if (actions.length) titles.push(el("span", { role: "columnheader", class: "actions" }, el("span", { class: "unseen" }, "Actions")));
    this.element = el(
      "div",
      { class: "table", role: "grid", tabindex: 0, "aria-label": label, keydown: (event) => this.#press(event), scroll: () => this.#soon() },
      el("div", { role: "rowgroup", class: "head" }, el("div", { role: "row", class: "row" }, ...titles)),
      this.#body,
      this.#empty,
    );
    const widths = (some) => [...some.map((column) => column.width), ...(actions.length ? [actionsWidth] : [])].join(" ");
    this.element.style.setProperty("--columns", widths(columns.filter((column) => !column.few)));
    this.element.style.setProperty("--few-columns", widths(columns.filter((column) => !column.minor)));
    new ResizeObserver(() => this.#soon()).observe(this.element);
  }

  get rows() {
    return this.#rows;
  }

  set rows(rows) {
    this.#rows = rows;
    this.element.setAttribute("aria-rowcount", rows.length + 1);
    this.#body.style.height = `${rows.length * ROW_PX}px`;
    this.#empty.hidden = rows.length > 0;
    this.#soon();
  }

  get isAtEnd() {
    return this.element.scrollTop + this.element.clientHeight >= this.element.scrollHeight - ROW_PX;
  }

  // The first and last row in sight.
  get range() {
    const first = Math.floor(this.element.scrollTop / ROW_PX);
    const height = this.element.clientHeight || ROW_PX;
    return [first, Math.min(this.#rows.length, first + Math.ceil(height / ROW_PX)) - 1];
  }

  scrollToEnd() {
    this.element.scrollTop = this.element.scrollHeight;
  }

  // So many rows are gone from the top, and those in sight stay where they are.
  shift(count) {
    this.element.scrollTop -= count * ROW_PX;
  }

  #soon() {
    this.#drawing ||= requestAnimationFrame(() => {
      this.#drawing = 0;
      if (this.element.clientHeight) this.#draw();
    });
  }

  #draw() {
    const [first, last] = this.range;
    const wanted = new Map();
    for (let at = Math.max(0, first - BESIDE); at < Math.min(this.#rows.length, last + 1 + BESIDE); at += 1) {
      const row = this.#rows[at];
      const key = this.#key(row);
      const element = this.#elements.get(key) ?? this.#make(key);
      this.#elements.delete(key);
      this.#write(element, row, at);
      wanted.set(key, element);
    }
    for (const element of this.#elements.values()) {
      if (element.contains(document.activeElement)) this.element.focus({ preventScroll: true });
      element.remove();
    }
    this.#elements = wanted;
    const chosen = wanted.get(this.#chosen);
    if (chosen) this.element.setAttribute("aria-activedescendant", chosen.id);
    else this.element.removeAttribute("aria-activedescendant");
    this.#moved(first, last);
  }

  #make(key) {
    const cells = this.#columns.map((column) => el("span", { role: "gridcell", class: classes(column) }));
    const element = el("div", { role: "row", class: "row" }, ...cells);
    const buttons = this.#actions.map((action) =>
      el("button", { type: "button", class: "quiet", click: () => action.run(element.row) }),
    );
    if (buttons.length) element.append(el("span", { role: "gridcell", class: "actions" }, ...buttons));
    element.addEventListener("mousedown", () => this.#choose(key));
    element.addEventListener("dblclick", (event) => event.target.closest("button") || this.#open?.(element.row));
    this.#body.append(element);
    return element;
  }

  #write(element, row, at) {
    element.row = row;
    element.id = this.#prefix + at;
    element.style.top = `${at * ROW_PX}px`;
    element.setAttribute("aria-rowindex", at + 2);
    element.classList.toggle("odd", at % 2 === 1);
    const isChosen = this.#key(row) === this.#chosen;
    element.setAttribute("aria-selected", isChosen);
    this.#columns.forEach((column, index) => {
      const cell = element.children[index];
      say(cell, column.text(row));
      if (column.hint) cell.title = column.hint(row);
      if (column.tone) cell.dataset.tone = column.tone(row);
    });
    this.#actions.forEach((action, index) => {
      const button = element.lastChild.children[index];
      say(button, action.title(row));
      button.setAttribute("aria-label", `${action.title(row)} ${this.#columns[0].text(row)}`);
      button.tabIndex = isChosen ? 0 : -1;
    });
  }

  #choose(key) {
    this.#chosen = key;
    this.#soon();
  }

  #press(event) {
    if (event.altKey || event.ctrlKey || event.metaKey || !this.#rows.length) return;
    const at = this.#rows.findIndex((row) => this.#key(row) === this.#chosen);
    if (event.key === "Enter" && event.target === this.element) {
      if (at >= 0) this.#open?.(this.#rows[at]);
      return event.preventDefault();
    }
    const [first, last] = this.range;
    const page = Math.max(1, last - first - 2);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    const step = steps[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const to = Math.min(this.#rows.length - 1, Math.max(0, at < 0 ? (step > 1 ? step : 0) : at + step));
    this.#chosen = this.#key(this.#rows[to]);
    this.#show(to);
    this.#soon();
  }

  #show(at) {
    const head = this.element.firstChild.offsetHeight;
    const view = this.element.clientHeight - head;
    const top = at * ROW_PX;
    if (top < this.element.scrollTop) this.element.scrollTop = top;
    else if (top + ROW_PX > this.element.scrollTop + view) this.element.scrollTop = top + ROW_PX - view;
  }
}

function classes(column) {
  return [column.isNumber && "number", column.minor && "minor", column.few && "few", column.isName && "name"].filter(Boolean).join(" ");
}
