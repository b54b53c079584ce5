// A browser of keys: their types, when they expire, and what is in them.

import { ask } from "../ask/api.js";
import { allowed, redisCli } from "../ask/session.js";
import { copyButton, line } from "../look/copying.js";
import { el, path, say, shown } from "../look/dom.js";
import { Facts, pretty } from "../look/facts.js";
import { glob, listing } from "../look/listing.js";
import { milliseconds, some } from "../look/numbers.js";
import { Table } from "../look/table.js";
import { address, go } from "../look/tabs.js";
import { text } from "./entries.js";
import { watched } from "./watched.js";

const PAGE = 200;
const TYPES = ["string", "list", "set", "zset", "hash", "stream"];
const UNITS = { string: ["byte", "bytes"], list: ["element", "elements"], set: ["member", "members"], zset: ["member", "members"], hash: ["field", "fields"], stream: ["entry", "entries"] };
const DATABASES = 16;

function expiry(row) {
  return row.ttl_ms === null ? "never" : `in ${milliseconds(row.ttl_ms)}`;
}

function size(row) {
  const [one, many] = UNITS[row.type] ?? ["", ""];
  return some(row.size, one, many);
}

export function keys() {
  const db = el("select", { id: "keys-db", change: () => view.anew() }, ...Array.from({ length: DATABASES }, (_, number) => el("option", { value: number }, String(number))));
  const type = el("select", { id: "keys-type", change: () => view.anew() }, el("option", { value: "" }, "all"), ...TYPES.map((each) => el("option", { value: each }, each)));

  async function read({ after, text: said }) {
    const query = new URLSearchParams({ count: PAGE, db: db.value });
    if (said) query.set("match", glob(said));
    if (type.value) query.set("type", type.value);
    if (after !== null) query.set("after", after);
    const answer = await ask(`/api/keys?${query}`);
    const all = answer.keys_in_all;
    const how = said || type.value ? { note: `${some(all, "key")} in database ${db.value}` } : { total: all };
    return { rows: answer.keys, next: answer.next, ...how };
  }

  const view = listing({
    id: "keys",
    title: "Keys",
    what: "key",
    read,
    isFiltered: true,
    isOffered: () => allowed("see_keys"),
    more: [el("label", { for: "keys-type" }, "Type"), type, el("label", { for: "keys-db" }, "Database"), db],
    table: {
      columns: [
        { title: "Key", width: "minmax(6rem, 4fr)", sort: (row) => row.name, text: (row) => shown(row.name), hint: (row) => shown(row.name), isName: true, opens: true },
        { title: "Type", width: "5rem", sort: (row) => row.type, text: (row) => row.type },
        { title: "Size", width: "8rem", sort: (row) => row.size, text: size, isNumber: true },
        { title: "Expires", width: "7rem", sort: (row) => row.ttl_ms, text: expiry, isNumber: true, minor: true },
      ],
      key: (row) => row.name,
      open: (row) => (row.type === "stream" && db.value === "0" ? go("topic", { name: row.name }) : go("key", { name: row.name, db: db.value })),
      empty: [el("p", {}, "No keys here. Set one:"), line(redisCli(" SET greeting hello EX 60"))],
    },
  });
  return view;
}

const FACTS = [
  { title: "Type", text: (key) => key.type },
  { title: "Size", text: size },
  { title: "Expires", text: expiry },
];

export function key() {
  let here = null;
  let after = null;
  let page = null;
  const heading = el("h2", {});
  const trouble = el("p", { class: "trouble", hidden: true });
  const facts = new Facts(FACTS);
  const value = el("pre", { class: "whole", tabindex: 0, hidden: true });
  const next = el("button", { type: "button", click: () => turn(page.next) }, "Next page");
  const first = el("button", { type: "button", click: () => turn(null) }, "First page");
  const table = new Table({
    label: "Elements",
    columns: [
      { title: "Field or score", width: "minmax(6rem, 1fr)", sort: (row) => row.field ?? row.score, text: (row) => shown(row.field ?? row.score ?? "–"), isName: true },
      { title: "Value", width: "minmax(8rem, 4fr)", sort: (row) => text(row.value), text: (row) => shown(text(row.value).slice(0, 500)), isName: true },
    ],
    key: (row) => row.at,
    empty: "Nothing here.",
  });
  const box = el("div", { class: "part grows" }, table.element);
  const element = el(
    "div",
    { class: "view scrolls detail" },
    el("div", { class: "bar" }, el("a", { href: address("keys"), class: "back" }, "Keys"), heading, first, next, copyButton(() => JSON.stringify(page?.elements ?? [], null, 2), "Copy as JSON")),
    trouble,
    facts.element,
    value,
    box,
  );

  function turn(to) {
    after = to;
    view.refresh();
  }

  const view = watched(
    async (said) => {
      if (here?.name !== said.name || here?.db !== said.db) after = null;
      here = said;
      say(heading, shown(said.name ?? ""));
      const query = new URLSearchParams({ db: said.db ?? 0, count: PAGE, ...(after === null ? {} : { after }) });
      const answer = await ask(path("/api/keys/", said.name ?? "", `?${query}`));
      if (here !== said) return;
      page = answer;
      trouble.hidden = true;
      facts.show(answer);
      const isText = answer.type === "string";
      value.hidden = !isText;
      box.hidden = isText;
      if (isText) say(value, pretty(text(answer.elements[0]?.value ?? "")));
      else table.rows = answer.elements.map((each, at) => ({ ...each, at }));
      next.hidden = answer.next === null;
      first.hidden = after === null;
    },
    (failure) => {
      trouble.hidden = false;
      say(trouble, failure.status === 404 ? "There is no such key (any more)." : `Could not be read: ${failure.message}`);
    },
  );

  return { id: "key", title: "Key", parent: "keys", element, isOffered: () => allowed("see_keys"), show: view.show, hide: view.hide };
}
