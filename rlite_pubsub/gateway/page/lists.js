// The views that are lists: channels, patterns, topics, groups and subscribers.

import { shown } from "./dom.js";
import { listing } from "./listing.js";
import { bytes, count, milliseconds, some } from "./numbers.js";
import { pauseOrResumeGroup, pauseOrResumeTopic, requeueGroup } from "./operations.js";
import { go } from "./tabs.js";

const PAGE = 500;
// Each topic of a page costs the server a look of its own.
const TOPICS_PAGE = 100;

const NAME = { title: "Name", width: "minmax(5rem, 3fr)", text: (row) => shown(row.name), hint: (row) => shown(row.name), isName: true };

function number(title, width, text, more = {}) {
  return { title, width, text, isNumber: true, ...more };
}

function tail(kind) {
  return (row) => go("tail", { kind, name: row.name });
}

export function channels() {
  return held("channels", "Channels", "channel");
}

export function patterns() {
  return held("patterns", "Patterns", "pattern");
}

function held(id, title, kind) {
  return listing({
    id,
    title,
    what: kind,
    path: `/api/${id}`,
    field: id,
    pageSize: PAGE,
    hasMatch: true,
    table: {
      columns: [NAME, number("Subscribers", "minmax(5.4rem, 1fr)", (row) => count(row.subscribers))],
      actions: [{ title: () => "Tail", run: tail(kind) }],
      actionsWidth: "3.5rem",
      key: (row) => row.name,
      open: tail(kind),
      empty: `Nobody holds a ${kind} of such a name.`,
    },
  });
}

const SAYS_STATE = { title: "State", width: "4.5rem", text: (row) => (row.paused ? "paused" : "runs"), tone: (row) => (row.paused ? "warning" : "") };

export function retention(topic) {
  const limits = [
    topic["retain-age"] ? milliseconds(topic["retain-age"]) : "",
    topic["retain-length"] ? some(topic["retain-length"], "entry", "entries") : "",
    topic["retain-bytes"] ? bytes(topic["retain-bytes"]) : "",
  ].filter(Boolean);
  return limits.length ? limits.join(", ") : topic.ephemeral ? "until nobody reads" : "all";
}

function ageOfFirst(topic) {
  return topic.length ? milliseconds(Math.max(0, Date.now() - Number(topic["earliest-id"].split("-")[0]))) : "–";
}

export function topics() {
  const view = listing({
    id: "topics",
    title: "Topics",
    what: "topic",
    path: "/api/topics",
    field: "topics",
    pageSize: TOPICS_PAGE,
    hasMatch: true,
    table: {
      columns: [
        NAME,
        number("Entries", "minmax(3.2rem, 6.5rem)", (row) => count(row.length)),
        number("Size", "minmax(4rem, 5rem)", (row) => bytes(row.bytes)),
        number("Oldest", "5rem", ageOfFirst, { minor: true }),
        { title: "Kept", width: "minmax(6rem, 2fr)", text: retention, hint: (row) => row["retain-rule"] ? `rule ${shown(row["retain-rule"])}` : "", minor: true },
        number("Groups", "4.5rem", (row) => count(row.groups), { minor: true }),
        { ...SAYS_STATE, minor: true },
      ],
      actions: [
        { title: () => "Tail", run: tail("topic") },
        { title: (row) => (row.paused ? "Resume" : "Pause"), run: async (row) => (await pauseOrResumeTopic(row)) && view.refresh() },
      ],
      actionsWidth: "7.4rem",
      key: (row) => row.name,
      open: tail("topic"),
      empty: "There is no topic of such a name.",
    },
  });
  return view;
}

function ofTopic(group) {
  return `${shown(group.name)} (${shown(group.topic)})`;
}

function groupState(group) {
  return group.paused ? "paused" : group.topicPaused ? "topic paused" : "runs";
}

export function groups() {
  const view = listing({
    id: "groups",
    title: "Groups",
    what: "group",
    path: "/api/groups",
    field: "groups",
    pageSize: PAGE,
    names: (row) => [row.topic, row.name],
    table: {
      columns: [
        { ...NAME, title: "Group", width: "minmax(5rem, 2fr)", minor: true },
        { ...NAME, title: "Topic", width: "minmax(5rem, 2fr)", text: (row) => shown(row.topic), hint: (row) => shown(row.topic), minor: true },
        { ...NAME, title: "Group (topic)", width: "minmax(5rem, 3fr)", text: ofTopic, hint: ofTopic, few: true },
        number("Lag", "minmax(2.4rem, 0.7fr)", (row) => count(row.lag)),
        number("In flight", "minmax(3.4rem, 0.7fr)", (row) => count(row.pending)),
        number("Consumers", "6rem", (row) => count(row.consumers), { minor: true }),
        { title: "Last delivered", width: "11rem", text: (row) => row.lastDeliveredId, minor: true },
        { ...SAYS_STATE, width: "6.5rem", text: groupState, tone: (row) => (row.paused || row.topicPaused ? "warning" : ""), minor: true },
      ],
      actions: [
        { title: (row) => (row.paused ? "Resume" : "Pause"), run: async (row) => (await pauseOrResumeGroup(row)) && view.refresh() },
        { title: () => "Requeue", run: async (row) => (await requeueGroup(row)) && view.refresh() },
      ],
      actionsWidth: "8.6rem",
      key: (row) => JSON.stringify([row.topic, row.name]),
      open: (row) => go("tail", { kind: "topic", name: row.topic }),
      empty: "There is no group of such a name.",
    },
  });
  return view;
}

function subscriberState(row) {
  return row.state ?? (row.alive ? "alive" : "dead");
}

export function subscribers() {
  return listing({
    id: "subscribers",
    title: "Subscribers",
    what: "subscriber",
    path: "/api/subscribers",
    field: "subscribers",
    pageSize: PAGE,
    names: (row) => [row.id, row.kind, row.name ?? "", String(row.pid)],
    hint: "Processes and durable subscribers; what waits is in their mailboxes.",
    table: {
      columns: [
        { title: "Subscriber", width: "minmax(5rem, 2fr)", text: (row) => shown(row.name || row.id), hint: (row) => shown(row.id), isName: true },
        { title: "Kind", width: "minmax(3.8rem, 5.5rem)", text: (row) => row.kind },
        { title: "State", width: "4.5rem", text: subscriberState, tone: (row) => (/dead|unknown/.test(subscriberState(row)) ? "warning" : ""), minor: true },
        number("Process", "5rem", (row) => row.pid ? String(row.pid) : "–", { minor: true }),
        number("Names", "4.5rem", (row) => count(row.names), { minor: true }),
        number("Waiting", "minmax(3.6rem, 5.5rem)", (row) => count(row.backlogMessages)),
        number("Bytes", "minmax(4rem, 5.5rem)", (row) => bytes(row.backlogBytes)),
        number("Oldest", "5rem", (row) => row.backlogMessages && row.oldestAgeMs >= 0 ? milliseconds(row.oldestAgeMs) : "–", { minor: true }),
        number("Rung", "6rem", (row) => typeof row.lastBellAgeMs === "number" ? `${milliseconds(row.lastBellAgeMs)} ago` : "–", { minor: true }),
      ],
      key: (row) => row.id,
      empty: "There is no subscriber of such a name.",
    },
  });
}
