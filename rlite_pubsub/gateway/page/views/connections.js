// Who is slow: the connections of every process, the slowest readers first.

import { ask } from "../ask/api.js";
import { allowed, redisCli } from "../ask/session.js";
import { line } from "../look/copying.js";
import { el, shown } from "../look/dom.js";
import { nameList } from "../look/facts.js";
import { listing } from "../look/listing.js";
import { bytes, count, milliseconds, perSecond, some } from "../look/numbers.js";
import { closeConnection } from "./operations.js";

const MOST = 1000;

function number(title, width, sort, text, more = {}) {
  return { title, width, sort, text, isNumber: true, ...more };
}

function subscriptions(row) {
  return row.channels + row.patterns + row.shards + row.topics;
}

function lag(row) {
  return row.buffered_bytes + row.disk_bytes + row.unsent_bytes;
}

function bySize(row) {
  const parts = [["channel", row.channels], ["pattern", row.patterns], ["sharded channel", row.shards], ["topic", row.topics]];
  return parts.filter(([, held]) => held).map(([what, held]) => some(held, what)).join(", ");
}

export function connections() {
  let before = new Map(); // the counters of each connection, when they were looked at last

  async function read() {
    const { processes, connections: rows } = await ask(`/api/connections?count=${MOST}`);
    const seen = new Map();
    for (const row of rows) {
      const key = `${row.process}/${row.id}`;
      const last = before.get(key);
      const seconds = last ? (row.at_ms - last.at_ms) / 1000 : 0;
      if (seconds > 0 && row.input_bytes !== null) {
        row.input_rate = Math.max(0, row.input_bytes - last.input_bytes) / seconds;
        row.output_rate = Math.max(0, row.output_bytes - last.output_bytes) / seconds;
      } else if (last) [row.input_rate, row.output_rate] = [last.input_rate, last.output_rate];
      seen.set(key, row);
    }
    before = seen;
    const silent = processes.filter((process) => !process.answers).map((process) => process.pid);
    const note = `${some(processes.length, "process", "processes")}${silent.length ? ` · no answer from process ${silent.join(", ")}` : ""}`;
    return { rows, next: null, total: processes.reduce((sum, process) => sum + process.connections, 0), note };
  }

  const view = listing({
    id: "connections",
    title: "Connections",
    what: "connection",
    read,
    isOffered: () => allowed("see_connections"),
    names: (row) => [row.name, row.addr, row.user, row.lib, row.cmd, row.durable ?? "", row.kind, String(row.pid)],
    table: {
      columns: [
        { title: "Client", width: "minmax(6rem, 2fr)", sort: (row) => row.name || `#${row.id}`, text: (row) => shown(row.name || `#${row.id}`), hint: (row) => [shown(row.lib), row.cmd && `last command ${row.cmd}`, `connected ${milliseconds(row.age_ms)} ago`, `idle ${milliseconds(row.idle_ms)}`].filter(Boolean).join("\n"), isName: true, opens: true },
        { title: "Address", width: "minmax(7rem, 1.6fr)", sort: (row) => row.addr, text: (row) => shown(row.addr), hint: (row) => row.kind, minor: true },
        { title: "User", width: "minmax(3.5rem, 1fr)", sort: (row) => row.user, text: (row) => shown(row.user), minor: true },
        number("Subscriptions", "6.4rem", subscriptions, (row) => count(subscriptions(row)), { hint: bySize, minor: true }),
        number("Buffered", "4.6rem", (row) => row.buffered_bytes, (row) => bytes(row.buffered_bytes), { minor: true, tone: (row) => (row.buffered_bytes ? "warning" : "") }),
        number("On disk", "4.6rem", (row) => row.disk_bytes, (row) => bytes(row.disk_bytes), { minor: true, tone: (row) => (row.disk_bytes ? "warning" : "") }),
        number("Unsent", "4.6rem", (row) => row.unsent_bytes, (row) => bytes(row.unsent_bytes), { hint: () => "held by the kernel, since the client has not accepted it", minor: true, tone: (row) => (row.unsent_bytes ? "warning" : "") }),
        number("Waiting", "4.5rem", lag, (row) => bytes(lag(row)), { few: true }),
        number("Oldest", "4.5rem", (row) => row.waiting_ms, (row) => (row.waiting_ms ? milliseconds(row.waiting_ms) : "–"), { minor: true }),
        number("In", "5rem", (row) => row.input_rate, (row) => perSecond(row.input_rate, bytes), { minor: true }),
        number("Out", "5rem", (row) => row.output_rate, (row) => perSecond(row.output_rate, bytes), { minor: true }),
        number("Process", "4.8rem", (row) => row.pid, (row) => String(row.pid), { minor: true }),
      ],
      actions: [{ title: () => "Disconnect", isOffered: () => allowed("close_connections"), run: async (row) => (await closeConnection(row)) && view.refresh() }],
      actionsWidth: "5.6rem",
      key: (row) => `${row.process}/${row.id}`,
      details: (row) => [nameList("Channels", row.channel_names, row.channels), nameList("Patterns", row.pattern_names, row.patterns)].filter(Boolean),
      empty: [el("p", {}, "No client is connected. Connect one:"), line(redisCli(" SUBSCRIBE news")), el("p", { class: "muted" }, "or, over HTTP:"), line(`curl -N ${location.origin}/api/channels/news`)],
    },
  });
  return view;
}
