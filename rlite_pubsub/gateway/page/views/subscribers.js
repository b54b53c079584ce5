// Processes and durable subscribers: what waits for each.

import { ask } from "../ask/api.js";
import { allowed, redisCli } from "../ask/session.js";
import { line } from "../look/copying.js";
import { el, shown } from "../look/dom.js";
import { nameList } from "../look/facts.js";
import { listing } from "../look/listing.js";
import { bytes, count, milliseconds } from "../look/numbers.js";

const PAGE = 500;

function oldest(row) {
  return row.backlog_messages && row.oldest_age_ms >= 0 ? row.oldest_age_ms : null;
}

// What a durable subscriber holds and may keep, and the commands that change it: a name is quoted for a shell.
function details(row) {
  const names = [
    nameList("Channels", row.channels, row.channel_count),
    nameList("Patterns", row.patterns, row.pattern_count),
    nameList("Sharded channels", row.shards, row.shard_count),
  ].filter(Boolean);
  if (row.kind !== "durable") return names;
  const limits = [
    `It stays for ${row.ttl ? milliseconds(row.ttl * 1000) : "ever"}${row.ttl ? " after its connection has ended" : ""}`,
    row.max_bytes ? `keeps ${bytes(row.max_bytes)}` : null,
    row.max_messages ? `keeps ${count(row.max_messages)} messages` : null,
    row.dropped ? `${count(row.dropped)} messages were dropped` : null,
  ];
  const quoted = `'${row.name.replaceAll("'", "'\\''")}'`;
  return [
    ...names,
    el("p", {}, `${limits.filter(Boolean).join("; ")}.`),
    el("p", { class: "muted" }, "Show it; remove it, with what waits for it; or give it another time to live, in seconds, without reading anything:"),
    line(redisCli(` SUBSCRIBER.INFO ${quoted}`)),
    line(redisCli(` SUBSCRIBER.DELETE ${quoted}`)),
    line(redisCli(` SUBSCRIBER.ATTACH ${quoted} TTL 86400`)),
  ];
}

export function subscribers() {
  async function read({ after }) {
    const query = new URLSearchParams({ count: PAGE });
    if (after !== null) query.set("after", after);
    const answer = await ask(`/api/subscribers?${query}`);
    return { rows: answer.subscribers, next: answer.next };
  }

  return listing({
    id: "subscribers",
    title: "Subscribers",
    what: "subscriber",
    read,
    isOffered: () => allowed("see_all"),
    names: (row) => [row.id, row.kind, row.name ?? "", String(row.pid)],
    hint: "Processes that share the store, and durable subscribers, with the messages in their mailboxes.",
    table: {
      columns: [
        { title: "Subscriber", width: "minmax(5rem, 2fr)", sort: (row) => row.name || row.id, text: (row) => shown(row.name || row.id), hint: (row) => shown(row.id), isName: true, opens: true },
        { title: "Kind", width: "minmax(3.8rem, 5.5rem)", sort: (row) => row.kind, text: (row) => row.kind },
        { title: "State", width: "4.5rem", sort: (row) => row.state, text: (row) => row.state, tone: (row) => (/dead|unknown/.test(row.state) ? "warning" : ""), minor: true },
        { title: "Process", width: "5rem", sort: (row) => row.pid || null, text: (row) => (row.pid ? String(row.pid) : "–"), isNumber: true, minor: true },
        { title: "Subscriptions", width: "6.4rem", sort: (row) => row.names, text: (row) => count(row.names), isNumber: true, minor: true },
        { title: "Messages", width: "minmax(4.4rem, 5.5rem)", sort: (row) => row.backlog_messages, text: (row) => count(row.backlog_messages), hint: () => "that wait", isNumber: true },
        { title: "Bytes", width: "minmax(4rem, 5.5rem)", sort: (row) => row.backlog_bytes, text: (row) => bytes(row.backlog_bytes), isNumber: true, minor: true },
        { title: "Oldest", width: "5rem", sort: oldest, text: (row) => (oldest(row) === null ? "–" : milliseconds(oldest(row))), isNumber: true, minor: true },
        { title: "Notified", width: "6rem", sort: (row) => row.last_bell_age_ms, text: (row) => (typeof row.last_bell_age_ms === "number" ? `${milliseconds(row.last_bell_age_ms)} ago` : "–"), isNumber: true, minor: true },
      ],
      key: (row) => row.id,
      details,
      empty: [el("p", {}, "No subscribers here. A client name makes a durable subscriber:"), line(redisCli("").then((cli) => `(echo CLIENT SETNAME durable:billing; echo SUBSCRIBE orders; sleep 1) | ${cli}`))],
    },
  });
}
