// A table of any length: only the rows in sight, and a few beside them, are elements.
//
// The keyboard has it as one stop: arrows, Page Up and Down, Home and End move the chosen row, Enter opens it, Tab goes on
// to its buttons. Arrow up from the first row leads to the head, where left and right choose a column and Enter sorts by it.
// The focus stays on the table itself, because a row that is scrolled out of sight is gone.

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
  #sorts;
  #body;
  #heads = [];
  #empty;
  #elements = new Map();
  #given = [];
  #rows = [];
  #chosen = null;
  #drawing = 0;
  #prefix = `t${(tables += 1)}-`;

  // `open(row)` is what Enter and a double click do; `moved(first, last)` hears which rows are in sight. A column that has
  // `sort(row)` can be sorted by; where `sorts(name, isFalling)` is given, it sees to that, for columns with `sortName`.
  constructor({ label, columns, actions = [], actionsWidth, key, open = null, moved = () => {}, empty, sortBy = null, sorts = null }) {
    this.#columns = columns;
    this.#actions = actions;
    this.#key = key;
    this.#open = open;
    this.#moved = moved;
    this.#sorts = sorts;
    this.#body = el("div", { class: "rows", role: "rowgroup" });
    this.#empty = el("div", { class: "empty", hidden: true }, ...(typeof empty === "string" ? [el("p", {}, empty)] : empty));
    const titles = columns.map((column) => this.#head(column));
    if (actions.length) titles.push(el("span", { role: "columnheader", class: "actions" }, el("span", { class: "unseen" }, "Actions")));
    this.grid = el(
      "div",
      { class: "table", role: "grid", tabindex: 0, "aria-label": label, keydown: (event) => this.#press(event), scroll: () => this.#soon() },
      el("div", { role: "rowgroup", class: "head" }, el("div", { role: "row", class: "row" }, ...titles)),
      this.#body,
    );
    this.element = el("div", { class: "table-box" }, this.grid, this.#empty);
    const widths = (some) => [...some.map((column) => column.width), ...(actions.length ? [actionsWidth] : [])].join(" ");
    this.grid.style.setProperty("--columns", widths(columns.filter((column) => !column.few)));
    this.grid.style.setProperty("--few-columns", widths(columns.filter((column) => !column.minor)));
    this.sorted = sortBy ? { column: columns.find((column) => column.title === sortBy.title), isFalling: sortBy.isFalling } : { column: null, isFalling: false };
    this.#tellSort();
    new ResizeObserver(() => this.#soon()).observe(this.grid);
  }

  #head(column) {
    const title = el("span", { role: "columnheader", class: classes(column) });
    const isSortable = this.#sorts ? column.sortName : column.sort;
    if (!isSortable) {
      title.append(column.title);
      return title;
    }
    const button = el("button", { type: "button", class: "sort", tabindex: -1, click: () => this.#sort(column) }, column.title);
    this.#heads.push({ column, title, button });
    title.append(button);
    return title;
  }

  #sort(column) {
    const { sorted } = this;
    const falls = Boolean(column.isNumber);
    if (sorted.column !== column) this.sorted = { column, isFalling: falls };
    else if (sorted.isFalling === falls) this.sorted = { column, isFalling: !falls };
    else this.sorted = { column: null, isFalling: false };
    if (this.#sorts && this.sorted.column && this.sorted.isFalling !== falls) this.sorted = { column: null, isFalling: false };
    this.#tellSort();
    this.grid.scrollTop = 0;
    if (this.#sorts) this.#sorts(this.sorted.column?.sortName ?? null, this.sorted.isFalling);
    else this.rows = this.#given;
  }

  #tellSort() {
    for (const { column, title } of this.#heads) {
      if (column === this.sorted.column) title.setAttribute("aria-sort", this.sorted.isFalling ? "descending" : "ascending");
      else title.removeAttribute("aria-sort");
    }
  }

  get rows() {
    return this.#rows;
  }

  set rows(rows) {
    this.#given = rows;
    const { column, isFalling } = this.sorted;
    this.#rows = column && !this.#sorts ? inOrder(rows, column.sort, isFalling) : rows;
    this.grid.setAttribute("aria-rowcount", rows.length + 1);
    this.#body.style.height = `${rows.length * ROW_PX}px`;
    this.#empty.hidden = rows.length > 0;
    this.#soon();
  }

  get isAtEnd() {
    return this.grid.scrollTop + this.grid.clientHeight >= this.grid.scrollHeight - ROW_PX;
  }

  // The first and last row in sight.
  get range() {
    const first = Math.floor(this.grid.scrollTop / ROW_PX);
    const height = this.grid.clientHeight || ROW_PX;
    return [first, Math.min(this.#rows.length, first + Math.ceil(height / ROW_PX)) - 1];
  }

  scrollToTop() {
    this.grid.scrollTop = 0;
  }

  scrollToEnd() {
    this.grid.scrollTop = this.grid.scrollHeight;
  }

  // So many rows are gone from the top, and those in sight stay where they are.
  shift(count) {
    this.grid.scrollTop -= count * ROW_PX;
  }

  #soon() {
    this.#drawing ||= requestAnimationFrame(() => {
      this.#drawing = 0;
      if (this.grid.clientHeight) this.#draw();
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
      if (element.contains(document.activeElement)) this.grid.focus({ preventScroll: true });
      element.remove();
    }
    this.#elements = wanted;
    const chosen = wanted.get(this.#chosen);
    if (chosen) this.grid.setAttribute("aria-activedescendant", chosen.id);
    else this.grid.removeAttribute("aria-activedescendant");
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
    element.addEventListener("dblclick", (event) => event.target.closest("button, .opens") || this.#open?.(element.row));
    element.addEventListener("click", (event) => event.target.closest(".opens") && this.#open?.(element.row));
    this.#body.append(element);
    return element;
  }

  #write(element, row, at) {
    element.row = row;
    element.id = this.#prefix + at;
    element.style.top = `${at * ROW_PX}px`;
    element.setAttribute("aria-rowindex", at + 2);
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
      button.hidden = action.isOffered ? !action.isOffered(row) : false;
      button.setAttribute("aria-label", `${action.title(row)} ${this.#columns[0].text(row)}`);
      button.tabIndex = isChosen ? 0 : -1;
    });
  }

  #choose(key) {
    this.#chosen = key;
    this.#soon();
  }

  #press(event) {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.target.matches(".sort")) return this.#pressInHead(event);
    const at = this.#rows.findIndex((row) => this.#key(row) === this.#chosen);
    if (event.key === "ArrowUp" && at <= 0 && this.#heads.length && event.target === this.grid) {
      event.preventDefault();
      return this.#heads[0].button.focus();
    }
    if (!this.#rows.length) return;
    if (event.key === "Enter" && event.target === this.grid) {
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

  #pressInHead(event) {
    const at = this.#heads.findIndex(({ button }) => button === event.target);
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step !== undefined) this.#heads[(at + step + this.#heads.length) % this.#heads.length].button.focus();
    else if (event.key === "ArrowDown" || event.key === "Escape") this.grid.focus();
    else return;
    event.preventDefault();
  }

  #show(at) {
    const head = this.grid.firstChild.offsetHeight;
    const view = this.grid.clientHeight - head;
    const top = at * ROW_PX;
    if (top < this.grid.scrollTop) this.grid.scrollTop = top;
    else if (top + ROW_PX > this.grid.scrollTop + view) this.grid.scrollTop = top + ROW_PX - view;
  }
}

// What is not known comes last, whichever way it is sorted.
function inOrder(rows, value, isFalling) {
  const known = [];
  const unknown = [];
  for (const row of rows) (value(row) === null || value(row) === undefined ? unknown : known).push(row);
  const sign = isFalling ? -1 : 1;
  known.sort((one, other) => {
    const [left, right] = [value(one), value(other)];
    return left === right ? 0 : (left < right ? -1 : 1) * sign;
  });
  return [...known, ...unknown];
}

function classes(column) {
  return [column.isNumber && "number", column.minor && "minor", column.few && "few", column.isName && "name", column.opens && "opens"].filter(Boolean).join(" ");
}
