// What the warnings mean and what to do, what the words mean, and where the API is.

import { redisCli } from "../ask/session.js";
import { line } from "../look/copying.js";
import { el } from "../look/dom.js";
import { titleOf } from "./warnings.js";

const WARNINGS = {
  subscriber_away: ["No connection is attached to a durable subscriber, and its mailbox has passed warn-mailbox-bytes (64 MB) or warn-mailbox-age (1 hour). Its messages take room in the store until it comes back, or until its limits remove the oldest.", "Start its client again, or remove it if nobody needs it:", "redis-cli SUBSCRIBER.DELETE billing"],
  group_lagging: ["A consumer group has warn-group-lag (100,000) or more entries that it has not been given yet: its consumers are too few, too slow, or gone; or it is paused.", "Look at its consumers and how long they have been idle. Add consumers, or resume the group:", "redis-cli TOPIC.RESUME orders billing"],
  connection_slow: ["A client does not read as fast as it is sent to: warn-connection-bytes (16 MB) or more wait for it, in memory and on disk. At client-output-buffer-limit it is disconnected, or loses the oldest messages (slow-subscriber-policy).", "See which connections wait the longest:", "redis-cli SUBSCRIBER.CLIENTS COUNT 10"],
  store_near_quota: ["The store uses warn-quota-percent (80 %) or more of store-quota. When it is full, it refuses commands that add to it; reading and deleting still work.", "Shorten retention, start the server again with a larger store-quota, or see what takes the room:", "rlite-pubsub doctor -s ./store"],
  store_full: ["The store, or its disk, is full: commands that add to it are refused. Reading and deleting still work.", "Start the server again with a larger store-quota, or make room: delete topics, or shorten retention:", "redis-cli TOPIC.CONFIG orders SET RETAIN-LENGTH 100000"],
  disk_nearly_full: ["The file system of the store is at least warn-disk-percent (90 %) full.", "Make room on the disk, or give free pages of the store back to it:", "rlite-pubsub compact -s ./store"],
  sync_failing: ["The operating system could not write what was committed to the disk. Writes that were acknowledged since the last good sync may be lost in a power failure.", "Look at the server's log and at the kernel's messages about the disk:", "dmesg --level=err | tail"],
  commit_failing: ["The last write to the store could not be committed; clients were answered with an error.", "The log says why:", "rlite-pubsub doctor -s ./store"],
  writer_stopped: ["A process that shares the store is stopped (a debugger, Ctrl-Z, a frozen container) in the middle of a write. Others cannot write until it continues or ends; they get an error after writer-patience.", "Let it continue, or end it; the warning names its process id:", "kill -CONT 12345"],
  writer_busy: ["A process has been writing for more than a second, and others wait.", "A large transaction or script is the usual reason:", "redis-cli SLOWLOG GET"],
  old_reader: ["A process has kept a read transaction open for more than ten seconds, so pages that have become free since then cannot be reused, and the file may grow.", "The warning disappears when that process continues or ends:", "rlite-pubsub doctor -s ./store"],
  backup_behind: ["The continuous backup (backup-to) has not copied what was committed more than ten seconds ago, or there is no backup yet. If this machine's disk fails, everything since the last copy is lost.", "INFO persistence tells how far the backup is, and what its last error was:", "redis-cli INFO persistence"],
  link_down: ["A link to another server does not work. Messages that are published meanwhile do not reach the other side; entries of topics wait here, and are sent later.", "LINK INFO says why; the threshold is warn-link-down:", "redis-cli LINK INFO central"],
  process_dead: ["A process of the store died without cleaning up. Another process cleans up, usually within a moment, but has not done so yet.", "If the warning stays, look at the server's log.", null],
  cut_off: ["Within the last hour a subscriber took its messages so slowly that client-output-buffer-limit was reached, and was disconnected. What waited for it is lost.", "Have its client read faster, raise the limit, or make it a durable subscriber. With drop-oldest it stays connected, loses its oldest messages, and is told so:", "redis-cli CONFIG SET slow-subscriber-policy drop-oldest"],
  messages_dropped: ["Within the last hour a subscriber was too slow, or away for too long, and its oldest messages were removed unread. It is told how many, by a gap message.", "See who waits for how long, and raise its limits:", "redis-cli SUBSCRIBER.LIST"],
  store_was_full: ["Within the last hour the store was at its quota, or its disk was full, and commands that add to it were refused. They are accepted again.", "See that it does not come again: a larger store-quota, a shorter retention, or a larger disk:", "rlite-pubsub doctor -s ./store"],
  entries_lost: ["Within the last hour a reader of a topic was slower than the topic's retention: entries were removed before it had read them, and it was told how many.", "Have it read faster, or keep more:", "redis-cli TOPIC.CONFIG orders"],
  dead_letters: ["Within the last hour entries were delivered as often as their group allows, without being acknowledged. They are in the group's topic for dead letters, or were dropped if it has none.", "Look at them, mend what fails, and give them back, in the view of the group. Where they go is in:", "redis-cli TOPIC.GROUP orders billing"],
  companion_ended: ["Within the last hour a process that works beside the server (for the backup, the cold store or links) ended by itself. The server has started it again.", "The server's log says how it ended. Once is an accident; again and again is a fault:", "redis-cli INFO persistence"],
  server_died: ["Within the last hour a server was found to have ended without shutting down: killed, out of memory, or by a fault.", "Look at its log, and at what the kernel says:", "dmesg | tail"],
  server_started: ["A server began within the last hour, on a store that was there before. Its counters begin again; nothing is wrong.", "Nothing needs to be done.", null],
};

const TERMS = [
  ["Channel, pattern", "What SUBSCRIBE and PSUBSCRIBE name. Messages are not kept, unless the channel is retained."],
  ["Topic", "A Redis Stream: an ordered log of entries that is kept as its retention says."],
  ["Group, consumer", "A consumer group of a stream (XGROUP, XREADGROUP)."],
  ["Lag", "Entries that a group has not been given yet."],
  ["Pending", "Entries that a consumer was given and has not acknowledged (XPENDING)."],
  ["Dead letter", "An entry that was delivered as often as its group allows, and moved to another topic."],
  ["Subscriber", "A process that shares the store, or a durable subscriber: one with a name, whose messages wait while it is away."],
  ["Buffered, on disk", "What waits for a slow connection: first in memory, then in its mailbox on disk."],
];

const API = [
  ["/openapi.json", "The description of the HTTP API (OpenAPI 3.1)"],
  ["/api/warnings", "Warnings"],
  ["/api/connections", "Connections of every process"],
  ["/api/stats", "One sample of the figures on this page"],
  ["/metrics", "Metrics for Prometheus"],
  ["/healthz", "Health"],
];

// A command as it is typed to reach this server.
function here(command) {
  return command.startsWith("redis-cli ") ? redisCli(command.slice("redis-cli".length)) : command;
}

export function help() {
  const items = new Map();
  const element = el(
    "div",
    { class: "view scrolls help" },
    el("h2", {}, "What the warnings mean"),
    ...Object.entries(WARNINGS).map(([code, [means, todo, command]]) => {
      const item = el("section", { id: `help-${code}`, tabindex: -1 }, el("h3", {}, titleOf(code)), el("p", {}, means), el("p", {}, todo), command ? line(here(command)) : null);
      items.set(code, item);
      return item;
    }),
    el("p", {}, "The thresholds are directives, which CONFIG SET changes at once; 0 turns a warning off:"),
    line(here("redis-cli CONFIG SET warn-group-lag 500000")),
    el("h2", {}, "Words"),
    el("dl", { class: "terms" }, ...TERMS.flatMap(([word, means]) => [el("dt", {}, word), el("dd", {}, means)])),
    el("h2", {}, "Keyboard"),
    el("p", {}, "/ goes to the filter. In a table the arrow keys choose a row and Enter opens it; arrow up from the first row leads to the column heads, where Enter sorts."),
    el("h2", {}, "API and documentation"),
    el("ul", { class: "api" }, ...API.map(([path, about]) => el("li", {}, el("a", { href: path, target: "_blank", rel: "noopener" }, el("code", {}, path)), ` ${about}`))),
    el("p", {}, "Everything on this page comes from the API. In the source, docs/page.md explains the page and docs/operations/monitoring.md has alerts for Prometheus. Each command explains itself:"),
    line(here("redis-cli SUBSCRIBER.HELP")),
  );

  return {
    id: "help",
    title: "Help",
    element,
    show({ about }) {
      const item = items.get(about);
      if (!item) return;
      item.scrollIntoView({ block: "start" });
      item.focus({ preventScroll: true });
    },
    hide() {},
  };
}
