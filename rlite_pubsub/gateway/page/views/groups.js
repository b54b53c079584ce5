// The list of consumer groups, of all topics.

import { ask } from "../ask/api.js";
import { allowed, allowedOn, redisCli } from "../ask/session.js";
import { line } from "../look/copying.js";
import { el, shown } from "../look/dom.js";
import { listing } from "../look/listing.js";
import { count } from "../look/numbers.js";
import { go } from "../look/tabs.js";
import { pauseOrResumeGroup, requeueGroup } from "./operations.js";

const PAGE = 500;

function ofTopic(group) {
  return `${shown(group.name)} (${shown(group.topic)})`;
}

export function groupState(group) {
  return group.paused ? "paused" : group.topic_paused ? "topic paused" : group.asleep ? "asleep" : "active";
}

export function isStopped(group) {
  return group.paused || group.topic_paused || group.asleep;
}

export function groups() {
  async function read({ after }) {
    const query = new URLSearchParams({ count: PAGE });
    if (after !== null) query.set("after", after);
    const answer = await ask(`/api/groups?${query}`);
    return { rows: answer.groups, next: answer.next };
  }

  const view = listing({
    id: "groups",
    title: "Groups",
    what: "group",
    read,
    isOffered: () => allowed("see_all"),
    names: (row) => [row.topic, row.name],
    hint: "Lag: entries that the group has not been given yet. Pending: entries that a consumer was given and has not acknowledged.",
    table: {
      columns: [
        { title: "Group", width: "minmax(5rem, 2fr)", sort: (row) => row.name, text: (row) => shown(row.name), hint: (row) => shown(row.name), isName: true, minor: true, opens: true },
        { title: "Topic", width: "minmax(5rem, 2fr)", sort: (row) => row.topic, text: (row) => shown(row.topic), hint: (row) => shown(row.topic), isName: true, minor: true },
        { title: "Group (topic)", width: "minmax(5rem, 3fr)", sort: (row) => row.name, text: ofTopic, hint: ofTopic, isName: true, few: true, opens: true },
        { title: "Lag", width: "minmax(2.4rem, 0.7fr)", sort: (row) => row.lag, text: (row) => count(row.lag), isNumber: true },
        { title: "Pending", width: "minmax(3.6rem, 0.7fr)", sort: (row) => row.pending, text: (row) => count(row.pending), isNumber: true },
        { title: "Consumers", width: "6rem", sort: (row) => row.consumers, text: (row) => count(row.consumers), isNumber: true, minor: true },
        { title: "Dead letters", width: "6rem", sort: (row) => row.dead_lettered, text: (row) => count(row.dead_lettered), isNumber: true, minor: true },
        { title: "Last delivered", width: "11rem", sort: (row) => row.last_delivered_id, text: (row) => row.last_delivered_id, minor: true },
        { title: "State", width: "6.5rem", sort: groupState, text: groupState, tone: (row) => (isStopped(row) ? "warning" : ""), minor: true },
      ],
      actions: [
        { title: (row) => (row.paused ? "Resume" : "Pause"), isOffered: (row) => allowedOn("pause", row.topic), run: async (row) => (await pauseOrResumeGroup(row)) && view.refresh() },
        { title: () => "Requeue", isOffered: (row) => allowedOn("requeue", row.topic), run: async (row) => (await requeueGroup(row)) && view.refresh() },
      ],
      actionsWidth: "8.6rem",
      key: (row) => JSON.stringify([row.topic, row.name]),
      open: (row) => go("group", { topic: row.topic, name: row.name }),
      empty: [el("p", {}, "No groups here. Create one:"), line(redisCli(" XGROUP CREATE orders billing 0 MKSTREAM"))],
    },
  });
  return view;
}
