// A view of one list: a filter, how much there is, and a table that is read anew while somebody looks at it.

import { ask } from "./api.js";
import { el, say } from "./dom.js";
import { some } from "./numbers.js";
import { Paged } from "./paged.js";
import { Table } from "./table.js";

const AGAIN_MS = 2000;
// Where a list takes long it is read less often: looking on must not cost the server more than a little.
const REST_FOR_EACH_MS = 20;
const TYPING_MS = 150;
const AHEAD = 100;

// A pattern as Redis has them; without any sign of one it may stand anywhere in the name.
export function glob(text) {
  return /[*?[]/.test(text) ? text : `*${text.replaceAll("\\", "\\\\")}*`;
}

export function listing({ id, title, what, path, field, pageSize, hasMatch = false, names, hint = "", table: options }) {
  let isShown = false;
  let isNewFilter = false;
  let isStuck = false; // there is more, but asking for it has brought nothing
  let busy = null;
  let timer = 0;
  let paged = make("");
  const filter = el("input", {
    type: "search",
    id: `${id}-filter`,
    class: "filter",
    placeholder: hasMatch ? "name, or a pattern like orders.*" : "part of a name",
    spellcheck: "false",
    autocomplete: "off",
    input: () => {
      isNewFilter = true;
      paged.cancel();
      again(TYPING_MS);
    },
  });
  const size = el("span", { class: "muted size", role: "status", id: `${id}-size` });
  const table = new Table({
    ...options,
    label: title,
    moved: (first, last) => {
      if (isShown && !paged.isWhole && !isStuck && !busy && last + AHEAD > table.rows.length) again(0);
    },
  });
  const bar = el("div", { class: "bar" }, el("label", { for: `${id}-filter` }, "Filter"), filter, size, el("span", { class: "muted hint" }, hint));
  const element = el("div", { class: "view" }, bar, table.element);
  document.addEventListener("visibilitychange", () => isShown && again(0));

  function make(text) {
    const low = text.toLowerCase();
    const accept = hasMatch || !text ? undefined : (row) => names(row).some((name) => name.toLowerCase().includes(low));
    return new Paged(async (after) => {
      const query = new URLSearchParams({ count: pageSize });
      if (hasMatch && text) query.set("match", glob(text));
      if (after !== null) query.set("after", after);
      const answer = await ask(`${path}?${query}`);
      return { rows: answer[field], next: answer.next };
    }, accept);
  }

  function again(delay) {
    clearTimeout(timer);
    timer = setTimeout(load, delay);
  }

  async function load() {
    if (!isShown || document.hidden) return;
    if (busy !== null && !isNewFilter) return;
    const isNew = isNewFilter;
    const reading = (busy = isNew ? make(filter.value.trim()) : paged);
    isNewFilter = false;
    const [first, last] = isNew ? [0, 0] : table.range;
    const began = performance.now();
    try {
      if (await reading.refresh(first, last + AHEAD)) {
        paged = reading;
        if (isNew) table.element.scrollTop = 0;
        table.rows = paged.rows;
        isStuck = !paged.isWhole && table.rows.length <= last + AHEAD;
        const matching = filter.value.trim() ? "matching " : "";
        say(size, some(table.rows.length, matching + what) + (paged.isWhole ? "" : ", and more"));
      }
    } catch (failure) {
      isStuck = true;
      say(size, `Not read: ${failure.message}`);
    } finally {
      if (busy === reading) {
        busy = null;
        again(isNewFilter ? TYPING_MS : Math.max(AGAIN_MS, REST_FOR_EACH_MS * (performance.now() - began)));
      }
    }
  }

  return {
    id,
    title,
    element,
    show() {
      isShown = true;
      again(0);
    },
    hide() {
      isShown = false;
      clearTimeout(timer);
    },
    refresh: () => again(0),
    focusFilter: () => filter.focus(),
  };
}
