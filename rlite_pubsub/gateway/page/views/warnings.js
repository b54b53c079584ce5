// What is wrong, each with what it means and where to look.

import { el, shown } from "../look/dom.js";
import { address } from "../look/tabs.js";

// Where a warning leads, by its code. What the server is to do with it is in the view of help.
const LEADS = {
  subscriber_away: ([name]) => ["subscribers", { filter: name }, "Show the subscriber"],
  group_lagging: ([topic, name]) => ["group", { topic, name }, "Open the group"],
  connection_slow: () => ["connections", {}, "Show connections"],
  process_dead: () => ["subscribers", {}, "Show subscribers"],
  cut_off: () => ["connections", {}, "Show connections"],
  messages_dropped: ([name]) => ["subscribers", { filter: name }, "Show subscribers"],
  dead_letters: ([topic, name]) => ["group", { topic, name }, "Open the group"],
  entries_lost: ([name]) => ["topic", { name }, "Open the topic"],
};

const TITLES = {
  subscriber_away: "Durable subscriber away",
  group_lagging: "Consumer group lagging",
  connection_slow: "Slow connection",
  store_near_quota: "Store near its quota",
  store_full: "Store full",
  disk_nearly_full: "Disk nearly full",
  sync_failing: "Sync to disk failing",
  commit_failing: "Writes failing",
  writer_stopped: "Process stopped while writing",
  writer_busy: "Process writing for long",
  old_reader: "Reader holds free pages",
  process_dead: "Dead process",
  backup_behind: "Backup behind",
  link_down: "Link down",
  cut_off: "Slow subscriber cut off",
  messages_dropped: "Messages dropped",
  store_was_full: "Store was full",
  entries_lost: "Entries lost unread",
  dead_letters: "Dead letters",
  companion_ended: "Helper process ended",
  server_died: "Server died",
  server_started: "Server started",
};

export function titleOf(code) {
  return TITLES[code] ?? code;
}

const OF_NAMES = new Set(["subscriber_away", "group_lagging", "link_down", "cut_off", "messages_dropped", "entries_lost", "dead_letters", "companion_ended"]);

export function warningList() {
  const element = el("ul", { class: "warnings", "aria-label": "Warnings" });
  let seen = null;
  return {
    element,
    show(warnings) {
      const text = JSON.stringify(warnings);
      if (text === seen) return;
      seen = text;
      element.hidden = !warnings.length;
      element.replaceChildren(...warnings.map(item));
    },
  };
}

function item(warning) {
  const lead = LEADS[warning.code]?.(warning.subject);
  const about = OF_NAMES.has(warning.code) ? `: ${warning.subject.map(shown).reverse().join(" of ")}` : "";
  return el(
    "li",
    { class: "warning", "data-severity": warning.severity },
    el("b", {}, `${titleOf(warning.code)}${about}`),
    el("span", { class: "text" }, shown(warning.text), el("span", { class: "advice" }, warning.advice)),
    el(
      "span",
      { class: "links" },
      lead ? el("a", { href: address(lead[0], lead[1]) }, lead[2]) : null,
      el("a", { href: address("help", { about: warning.code }) }, "What it means"),
    ),
  );
}
