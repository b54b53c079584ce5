// A view of one list: a filter, how much there is, and a table that is read anew while somebody looks at it.

import { el, say } from "./dom.js";
import { showRow } from "./facts.js";
import { count as told, some } from "./numbers.js";
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

// `read({after, text, sort})` promises `{rows, next, total?, note?}`. With `isFiltered` it sees to the filter itself, and `names(row)`
// are looked through otherwise. `more` are elements behind the filter; `isSorted`: it sees to the order itself, too.
export function listing({ id, title, what, many, read, isFiltered = false, isSorted = false, names, hint = "", more = [], heading = [], table: options, isOffered }) {
  let isShown = false;
  let isNew = false;
  let isStuck = false; // there is more, but asking for it has brought nothing
  let busy = null;
  let timer = 0;
  let sort = null;
  let note = "";
  let total = null;
  const filter = el("input", {
    type: "search",
    id: `${id}-filter`,
    class: "filter",
    placeholder: isFiltered ? "name, or a pattern like orders.*" : "part of a name",
    spellcheck: "false",
    autocomplete: "off",
    input: () => anew(TYPING_MS),
  });
  const size = el("span", { class: "muted size", role: "status", id: `${id}-size` });
  const table = new Table({
    open: (row) => showRow(options, row),
    ...options,
    label: title,
    sorts: isSorted
      ? (name) => {
          sort = name;
          anew(0);
        }
      : null,
    moved: (first, last) => {
      if (isShown && !paged.isWhole && !isStuck && !busy && last + AHEAD > table.rows.length) again(0);
    },
  });
  let paged = make("");
  const bar = el("div", { class: "bar" }, el("label", { for: `${id}-filter` }, "Filter"), filter, ...more, size, el("span", { class: "muted hint" }, hint));
  const element = el("div", { class: "view" }, ...heading, bar, table.element);
  document.addEventListener("visibilitychange", () => isShown && again(0));

  function make(text) {
    const low = text.toLowerCase();
    const accept = isFiltered || !text ? undefined : (row) => names(row).some((name) => name.toLowerCase().includes(low));
    return new Paged(async (after) => {
      const answer = await read({ after, text, sort });
      note = answer.note ?? "";
      total = answer.total ?? null;
      return { rows: answer.rows, next: answer.next };
    }, accept);
  }

  function anew(delay) {
    isNew = true;
    paged.cancel();
    again(delay);
  }

  function again(delay) {
    clearTimeout(timer);
    timer = setTimeout(load, delay);
  }

  async function load() {
    if (!isShown || document.hidden) return;
    if (busy !== null && !isNew) return;
    const fresh = isNew;
    const reading = (busy = fresh ? make(filter.value.trim()) : paged);
    isNew = false;
    const [first, last] = fresh ? [0, 0] : table.range;
    // What the page itself sorts is read as a whole.
    const from = table.sorted.column && !isSorted ? 0 : first;
    const to = table.sorted.column && !isSorted ? Infinity : last + AHEAD;
    const began = performance.now();
    try {
      if (await reading.refresh(from, to)) {
        paged = reading;
        if (fresh) table.scrollToTop();
        table.rows = paged.rows;
        isStuck = !paged.isWhole && table.rows.length <= last + AHEAD;
        say(size, tally());
        size.removeAttribute("data-tone");
      }
    } catch (failure) {
      isStuck = true;
      say(size, `Could not be read: ${failure.message}`);
      size.dataset.tone = "bad";
    } finally {
      if (busy === reading) {
        busy = null;
        again(isNew ? TYPING_MS : Math.max(AGAIN_MS, REST_FOR_EACH_MS * (performance.now() - began)));
      }
    }
  }

  function tally() {
    const matching = filter.value.trim() ? "matching " : "";
    const here = table.rows.length;
    const words = some(here, matching + what, matching + (many ?? `${what}s`));
    const of = total !== null && total > here ? `${told(here)} of ${some(total, matching + what, matching + (many ?? `${what}s`))}` : words;
    return of + (paged.isWhole || total !== null ? "" : ", and more") + (note ? ` · ${note}` : "");
  }

  return {
    id,
    title,
    element,
    isOffered,
    show(said) {
      isShown = true;
      if (said?.filter !== undefined && said.filter !== filter.value) {
        filter.value = said.filter;
        isNew = true;
      }
      again(0);
    },
    hide() {
      isShown = false;
      clearTimeout(timer);
    },
    refresh: () => again(0),
    anew: () => anew(0),
    focusFilter: () => filter.focus(),
  };
}
