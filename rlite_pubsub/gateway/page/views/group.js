// One consumer group: how far it is, its consumers, what they have and have not acknowledged, and its dead letters.

import { ask } from "../ask/api.js";
import { allowed, allowedOn } from "../ask/session.js";
import { el, path, say, shown } from "../look/dom.js";
import { Facts } from "../look/facts.js";
import { count, milliseconds, some } from "../look/numbers.js";
import { Table } from "../look/table.js";
import { address, go } from "../look/tabs.js";
import { showEntry, text } from "./entries.js";
import { groupState, isStopped } from "./groups.js";
import { groupPath, pauseOrResumeGroup, redeliver, requeueGroup } from "./operations.js";
import { watched } from "./watched.js";

const PAGE = 200;
const AGES = [["0", "any age"], ["10000", "10 s and older"], ["60000", "1 min and older"], ["600000", "10 min and older"], ["3600000", "1 h and older"]];

const FACTS = [
  { title: "Lag", text: (group) => count(group.lag) },
  { title: "Pending", text: (group) => count(group.pending) },
  { title: "Waiting for redelivery", text: (group) => count(group.released) },
  { title: "Delayed", text: (group) => count(group.delayed) },
  { title: "Timed out", text: (group) => count(group.timed_out) },
  { title: "Dead letters, so far", text: (group) => count(group.dead_lettered) },
  { title: "Dropped", text: (group) => count(group.dropped), tone: (group) => (group.dropped ? "warning" : "") },
  { title: "Timeout", text: (group) => (group.timeout_ms ? milliseconds(group.timeout_ms) : "none") },
  { title: "Most deliveries", text: (group) => (group.max_deliveries ? count(group.max_deliveries) : "unlimited") },
  { title: "Dead letters go to", text: (group) => (group.dead_letter ? shown(group.dead_letter) : "–") },
  { title: "Last delivered", text: (group) => group.last_delivered_id },
  { title: "State", text: groupState, tone: (group) => (isStopped(group) ? "warning" : "") },
];

export function group() {
  let here = { topic: "", name: "" };
  let now = null;
  const heading = el("h2", {});
  const trouble = el("p", { class: "trouble", hidden: true });
  const facts = new Facts(FACTS);
  const topicLink = el("a", {});
  const pause = el("button", { type: "button", click: async () => now && (await pauseOrResumeGroup(now)) && view.refresh() }, "Pause");
  const requeue = el("button", { type: "button", click: async () => now && (await requeueGroup(now)) && view.refresh() }, "Requeue pending");
  const consumers = new Table({
    label: "Consumers",
    columns: [
      { title: "Consumer", width: "minmax(6rem, 2fr)", sort: (row) => row.name, text: (row) => shown(row.name), isName: true, opens: true },
      { title: "Pending", width: "6rem", sort: (row) => row.pending, text: (row) => count(row.pending), isNumber: true },
      { title: "Oldest pending", width: "8rem", sort: (row) => row.oldest_pending_ms, text: (row) => (row.oldest_pending_ms === null ? "–" : milliseconds(row.oldest_pending_ms)), isNumber: true },
      { title: "Idle", width: "6rem", sort: (row) => row.idle_ms, text: (row) => milliseconds(row.idle_ms), isNumber: true, minor: true },
    ],
    key: (row) => row.name,
    open: (row) => {
      owner.value = row.name;
      view.refresh();
    },
    empty: "No consumer has read yet.",
  });
  const owner = el("select", { id: "pending-consumer", change: () => view.refresh() });
  const age = el("select", { id: "pending-age", change: () => view.refresh() }, ...AGES.map(([value, title]) => el("option", { value }, title)));
  const pendingSize = el("span", { class: "muted size", role: "status" });
  const pending = new Table({
    label: "Pending entries",
    columns: [
      { title: "Entry", width: "minmax(8.5rem, 12rem)", sort: (row) => row.id, text: (row) => row.id, isName: true, opens: true },
      { title: "Consumer", width: "minmax(3rem, 2fr)", sort: (row) => row.consumer, text: (row) => shown(row.consumer), isName: true },
      { title: "Since delivery", width: "minmax(5.8rem, 8rem)", sort: (row) => row.idle_ms, text: (row) => milliseconds(row.idle_ms), isNumber: true },
      { title: "Deliveries", width: "6rem", sort: (row) => row.deliveries, text: (row) => count(row.deliveries), isNumber: true, minor: true },
    ],
    key: (row) => row.id,
    open: (row) => openEntry(row.id),
    empty: "Nothing is pending.",
  });
  const deadSize = el("span", { class: "muted size", role: "status" });
  const requeueAll = el("button", { type: "button", click: async () => (await redeliver(now, dead.rows)) && view.refresh() }, "Requeue all shown");
  const dead = new Table({
    label: "Dead letters",
    columns: [
      { title: "Entry", width: "minmax(8.5rem, 12rem)", sort: (row) => row.entry, text: (row) => row.entry, isName: true, opens: true },
      { title: "Deliveries", width: "6rem", sort: (row) => row.deliveries, text: (row) => count(row.deliveries), isNumber: true, minor: true },
      { title: "Fields", width: "minmax(4rem, 4fr)", text: (row) => shown(Object.entries(row.fields).map(([name, value]) => `${name}: ${text(value)}`).join("   ").slice(0, 300)), isName: true },
    ],
    actions: [{ title: () => "Requeue", isOffered: () => allowedOn("requeue", here.topic), run: async (row) => (await redeliver(now, [row])) && view.refresh() }],
    actionsWidth: "5rem",
    key: (row) => row.id,
    open: (row) => showEntry({ id: row.entry, fields: row.fields }, here.topic),
    empty: "No dead letters.",
  });
  const deadPart = el("div", { class: "part few-rows" }, el("div", { class: "bar" }, el("h3", {}, "Dead letters"), requeueAll, deadSize), dead.element);
  const consumerPart = el("div", { class: "part few-rows" }, el("h3", {}, "Consumers"), consumers.element);
  const element = el(
    "div",
    { class: "view scrolls detail" },
    el("div", { class: "bar" }, el("a", { href: address("groups"), class: "back" }, "Groups"), heading, topicLink, pause, requeue),
    trouble,
    facts.element,
    consumerPart,
    el(
      "div",
      { class: "part grows" },
      el("div", { class: "bar" }, el("h3", {}, "Pending"), el("label", { for: "pending-consumer" }, "Consumer"), owner, el("label", { for: "pending-age" }, "Age"), age, pendingSize),
      pending.element,
    ),
    deadPart,
  );

  async function openEntry(id) {
    const [ms, seq] = id.split("-").map(BigInt);
    const after = seq > 0n ? `${ms}-${seq - 1n}` : `${ms - 1n}-18446744073709551615`;
    const answer = await ask(path("/api/topics/", here.topic, `?${new URLSearchParams({ after, count: 1 })}`));
    const entry = answer.entries.find((each) => each.id === id);
    await showEntry(entry ?? { id, fields: { "": "The topic no longer has this entry." } }, here.topic);
  }

  function adaptOwners(list) {
    const names = ["", ...list.map((consumer) => consumer.name)];
    if (names.join("\0") === [...owner.options].map((option) => option.value).join("\0")) return;
    const chosen = owner.value;
    owner.replaceChildren(...names.map((name) => el("option", { value: name }, name ? shown(name) : "all")));
    owner.value = names.includes(chosen) ? chosen : "";
  }

  const view = watched(
    async (said) => {
      here = { topic: said.topic ?? "", name: said.name ?? "" };
      say(heading, shown(here.name));
      say(topicLink, `of topic ${shown(here.topic)}`);
      topicLink.href = address("topic", { name: here.topic });
      const mine = here;
      const about = await ask(groupPath(mine, "info"));
      const query = new URLSearchParams({ count: PAGE, min_idle_ms: age.value });
      if (owner.value) query.set("consumer", owner.value);
      const [some_pending, letters] = await Promise.all([
        ask(groupPath(mine, `pending?${query}`)),
        about.dead_letter ? ask(groupPath(mine, `dead_letters?count=${PAGE}`)).catch(() => null) : null,
      ]);
      if (mine !== here) return;
      now = about;
      trouble.hidden = true;
      facts.show(about);
      say(pause, about.paused ? "Resume" : "Pause");
      pause.hidden = !allowedOn("pause", here.topic);
      requeue.hidden = !allowedOn("requeue", here.topic);
      requeue.disabled = !about.pending;
      adaptOwners(about.consumer_list);
      consumers.rows = about.consumer_list;
      consumerPart.style.setProperty("--rows", Math.min(6, Math.max(1, about.consumer_list.length)));
      pending.rows = some_pending.pending;
      say(pendingSize, some(some_pending.pending.length, "entry", "entries") + (some_pending.next ? ", and more" : ""));
      deadPart.hidden = letters === null;
      if (letters !== null) {
        dead.rows = letters.dead_letters;
        deadPart.style.setProperty("--rows", Math.min(8, Math.max(1, dead.rows.length)));
        requeueAll.hidden = !dead.rows.length || !allowedOn("requeue", here.topic);
        say(deadSize, `${some(dead.rows.length, "dead letter")}${letters.next ? ", and more" : ""} in topic ${shown(letters.dead_letter)}`);
      }
    },
    (failure) => {
      trouble.hidden = false;
      say(trouble, failure.status === 404 ? "There is no such group (any more)." : `Could not be read: ${failure.message}`);
    },
  );

  return { id: "group", title: "Group", parent: "groups", element, isOffered: () => allowed("see_all"), show: view.show, hide: view.hide };
}
