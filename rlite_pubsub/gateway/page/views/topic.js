// One topic: how much there is, how much is kept, its groups, what of it is in the cold store, and its entries.

import { ask } from "../ask/api.js";
import { allowed, allowedOn } from "../ask/session.js";
import { el, path, say, shown } from "../look/dom.js";
import { Facts } from "../look/facts.js";
import { bytes, count, milliseconds, perSecond, some } from "../look/numbers.js";
import { Table } from "../look/table.js";
import { address, go } from "../look/tabs.js";
import { entries } from "./entries.js";
import { groupState, isStopped } from "./groups.js";
import { pauseOrResumeTopic } from "./operations.js";
import { AppendRates, madeAt, retention } from "./topics.js";
import { watched } from "./watched.js";

const FACTS = [
  { title: "Entries", text: (topic) => count(topic.length) },
  { title: "Size", text: (topic) => bytes(topic.bytes) },
  { title: "Added", text: (topic) => perSecond(topic.rate) },
  { title: "Added in all", text: (topic) => count(topic.entries_added) },
  { title: "Oldest retained", text: (topic) => (topic.length ? `${milliseconds(Math.max(0, Date.now() - madeAt(topic.earliest_id)))} ago` : "–") },
  { title: "Retention", text: retention },
  { title: "Removed by retention", text: (topic) => count(topic.removed_entries) },
  { title: "In the cold store", text: (topic) => (topic.cold_entries ? `${some(topic.cold_entries, "entry", "entries")}, ${bytes(topic.cold_bytes)}` : "–") },
  { title: "Blocks", text: (topic) => (topic.blocks ? count(topic.blocks.length) : "–") },
  { title: "Deferred", text: (topic) => count(topic.deferred) },
  { title: "State", text: (topic) => (topic.paused ? "paused" : "active"), tone: (topic) => (topic.paused ? "warning" : "") },
];

export function topic() {
  const rates = new AppendRates();
  let name = "";
  let now = null;
  let shownPlace = null;
  const heading = el("h2", {});
  const trouble = el("p", { class: "trouble", hidden: true });
  const facts = new Facts(FACTS);
  const pause = el("button", { type: "button", click: async () => now && (await pauseOrResumeTopic(now)) && view.refresh() }, "Pause");
  const tail = el("button", { type: "button", click: () => go("tail", { kind: "topic", name }) }, "Tail");
  const groups = new Table({
    label: "Groups of this topic",
    columns: [
      { title: "Group", width: "minmax(6rem, 2fr)", sort: (row) => row.name, text: (row) => shown(row.name), isName: true, opens: true },
      { title: "Lag", width: "5rem", sort: (row) => row.lag, text: (row) => count(row.lag), isNumber: true },
      { title: "Pending", width: "5rem", sort: (row) => row.pending, text: (row) => count(row.pending), isNumber: true },
      { title: "Consumers", width: "6rem", sort: (row) => row.consumers, text: (row) => count(row.consumers), isNumber: true, minor: true },
      { title: "Dead letters", width: "6rem", sort: (row) => row.dead_lettered, text: (row) => count(row.dead_lettered), isNumber: true, minor: true },
      { title: "State", width: "6.5rem", text: groupState, tone: (row) => (isStopped(row) ? "warning" : ""), minor: true },
    ],
    key: (row) => row.name,
    open: (row) => go("group", { topic: name, name: row.name }),
    empty: "No group reads this topic.",
  });
  const groupPart = el("div", { class: "part few-rows" }, el("h3", {}, "Groups"), groups.element);
  const list = entries((place) => go("topic", { name, ...place }));
  const element = el(
    "div",
    { class: "view scrolls detail" },
    el("div", { class: "bar" }, el("a", { href: address("topics"), class: "back" }, "Topics"), heading, tail, pause),
    trouble,
    facts.element,
    groupPart,
    el("h3", {}, "Entries"),
    list.element,
  );

  const view = watched(
    async (said) => {
      const wanted = said.name ?? "";
      const place = JSON.stringify(said);
      if (place !== shownPlace) {
        shownPlace = place;
        name = wanted;
        say(heading, shown(name));
        list.show(name, said);
      } else await list.refresh();
      const about = await ask(path("/api/topics/", wanted, "/info"));
      const blocks = about.cold_entries ? await ask(path("/api/topics/", wanted, "/blocks")) : null;
      if (wanted !== name) return;
      now = { ...about, rate: rates.of(about), blocks: blocks?.blocks };
      trouble.hidden = true;
      facts.show(now);
      say(pause, now.paused ? "Resume" : "Pause");
      pause.hidden = !allowedOn("pause", name);
      groups.rows = about.group_list.map((group) => ({ ...group, topic_paused: about.paused }));
      groupPart.style.setProperty("--rows", Math.min(6, Math.max(1, groups.rows.length)));
    },
    (failure) => {
      trouble.hidden = false;
      say(trouble, failure.status === 404 ? "There is no such topic (any more)." : `Could not be read: ${failure.message}`);
    },
  );

  return { id: "topic", title: "Topic", parent: "topics", element, isOffered: () => allowed("see_all"), show: view.show, hide: view.hide };
}
