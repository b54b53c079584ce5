// The entries of one topic, a page at a time, both ways from any id or time, and searched by field.

import { ask } from "../ask/api.js";
import { copyButton } from "../look/copying.js";
import { question } from "../look/dialog.js";
import { el, path, say, shown } from "../look/dom.js";
import { pretty } from "../look/facts.js";
import { dateAndTime, some } from "../look/numbers.js";
import { Table } from "../look/table.js";

const PAGE = 100;
const LONGEST_SHOWN = 300;

export function text(value) {
  return typeof value === "string" ? value : JSON.stringify(value);
}

function inLine(fields) {
  return Object.entries(fields).map(([name, value]) => `${name}: ${text(value)}`).join("   ").slice(0, LONGEST_SHOWN);
}

// One entry in full.
export function showEntry(entry, topic) {
  const rows = Object.entries(entry.fields).flatMap(([name, value]) => [el("dt", {}, shown(name)), el("dd", {}, el("pre", { class: "whole", tabindex: 0 }, pretty(text(value))))]);
  return question({
    title: `${shown(topic)} · ${entry.id}`,
    text: dateAndTime(Number(entry.id.split("-")[0])),
    fields: [el("dl", { class: "fields" }, ...rows), el("p", {}, copyButton(() => JSON.stringify(entry.fields, null, 2), "Copy as JSON"))],
    yes: "Close",
    no: null,
  });
}

// `moved(place)` hears where one has gone: what stands in the address.
export function entries(moved) {
  let topic = "";
  let page = null;
  let place = {};
  let asked = 0;
  const table = new Table({
    label: "Entries",
    columns: [
      { title: "Id", width: "minmax(8.5rem, 11.5rem)", text: (row) => row.id, isName: true, opens: true },
      { title: "Time", width: "12.5rem", text: (row) => dateAndTime(Number(row.id.split("-")[0])), minor: true },
      { title: "Fields", width: "minmax(8rem, 4fr)", text: (row) => shown(inLine(row.fields)), isName: true },
    ],
    key: (row) => row.id,
    open: (row) => showEntry(row, topic),
    empty: "No entries here.",
  });
  const field = el("input", { type: "text", id: "entries-field", placeholder: "any field", spellcheck: "false", autocomplete: "off", class: "short" });
  const contains = el("input", { type: "search", id: "entries-contains", placeholder: "text in its value", spellcheck: "false", autocomplete: "off" });
  const where = el("input", { type: "text", id: "entries-from", placeholder: "id, or 2026-11-19 14:00", spellcheck: "false", autocomplete: "off" });
  const size = el("span", { class: "muted size", role: "status", id: "entries-size" });
  const buttons = {
    first: el("button", { type: "button", click: () => move({}) }, "Oldest"),
    older: el("button", { type: "button", click: () => move({ before: page.previous }) }, "Older"),
    newer: el("button", { type: "button", click: () => move({ after: page.next }) }, "Newer"),
    last: el("button", { type: "button", click: () => move({ before: "latest" }) }, "Latest"),
  };
  const form = el(
    "form",
    { class: "bar", role: "search", "aria-label": "Entries", submit: (event) => event.preventDefault() || jump() },
    buttons.first,
    buttons.older,
    buttons.newer,
    buttons.last,
    el("label", { for: "entries-from" }, "From"),
    where,
    el("label", { for: "entries-field" }, "Field"),
    field,
    el("label", { for: "entries-contains" }, "contains"),
    contains,
    el("button", { type: "submit", class: "primary" }, "Search"),
    size,
  );

  function searching() {
    return { ...(field.value ? { field: field.value } : {}), ...(contains.value ? { contains: contains.value } : {}) };
  }

  function move(to) {
    moved({ ...to, ...searching() });
  }

  function jump() {
    const said = where.value.trim();
    if (!said) return move({});
    if (/^\d+(-\d+)?$/.test(said)) return move({ after: justBefore(said) });
    const ms = Date.parse(said);
    if (Number.isNaN(ms)) return say(size, "From: an id like 1700000000000-0, or a date and time.");
    move({ after: justBefore(String(ms)) });
  }

  // So that the entry of this very id is in the page.
  function justBefore(said) {
    const [ms, seq = "0"] = said.split("-").map(BigInt);
    if (BigInt(seq) > 0n) return `${ms}-${BigInt(seq) - 1n}`;
    return ms > 0n ? `${ms - 1n}-18446744073709551615` : "0-0";
  }

  async function read() {
    const number = (asked += 1);
    const query = new URLSearchParams({ count: PAGE, ...place });
    try {
      const answer = await ask(path("/api/topics/", topic, `?${query}`));
      if (number !== asked) return;
      page = answer;
      table.rows = page.entries;
      buttons.older.disabled = !page.previous;
      buttons.newer.disabled = !page.next;
      const isSearch = place.field || place.contains;
      const more = isSearch && (place.before ? page.previous : page.next) ? `; the search goes on with ${place.before ? "Older" : "Newer"}` : "";
      say(size, some(page.entries.length, isSearch ? "match" : "entry", isSearch ? "matches" : "entries") + more);
    } catch (failure) {
      if (number === asked) say(size, `Could not be read: ${failure.message}`);
    }
  }

  return {
    element: el("div", { class: "part grows" }, form, table.element),
    show(name, wanted) {
      topic = name;
      place = Object.fromEntries(["after", "before", "field", "contains"].filter((key) => wanted[key]).map((key) => [key, wanted[key]]));
      field.value = place.field ?? "";
      contains.value = place.contains ?? "";
      return read();
    },
    get page() {
      return page;
    },
    // What comes at the end is seen where one is at the end.
    refresh: () => (place.before === "latest" && !place.field && !place.contains ? read() : Promise.resolve()),
  };
}
