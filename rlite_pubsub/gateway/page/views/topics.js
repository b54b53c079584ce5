// The list of topics.

import { ask } from "../ask/api.js";
import { allowed, allowedOn } from "../ask/session.js";
import { line } from "../look/copying.js";
import { el, shown } from "../look/dom.js";
import { glob, listing } from "../look/listing.js";
import { bytes, count, milliseconds, perSecond, some } from "../look/numbers.js";
import { go } from "../look/tabs.js";
import { pauseOrResumeTopic } from "./operations.js";

// Each topic of a page costs the server a look of its own.
const PAGE = 100;

export function retention(topic) {
  const limits = [
    topic.retain_age ? milliseconds(topic.retain_age) : "",
    topic.retain_length ? some(topic.retain_length, "entry", "entries") : "",
    topic.retain_bytes ? bytes(topic.retain_bytes) : "",
  ].filter(Boolean);
  return limits.length ? limits.join(", ") : topic.ephemeral ? "while somebody reads" : "unlimited";
}

// The time in ms of an id.
export function madeAt(id) {
  return Number(id.split("-")[0]);
}

function age(topic) {
  return topic.length ? Math.max(0, Date.now() - madeAt(topic.earliest_id)) : null;
}

// Rates of what is appended: between two looks at a topic.
export class AppendRates {
  #before = new Map();

  of(topic) {
    const now = performance.now();
    const last = this.#before.get(topic.name);
    const growth = last ? topic.entries_added - last.added : NaN;
    const rate = growth >= 0 && now - last.at > 500 ? (growth * 1000) / (now - last.at) : (last?.rate ?? undefined);
    if (!last || now - last.at > 500) this.#before.set(topic.name, { at: now, added: topic.entries_added, rate });
    return rate;
  }
}

export function topics() {
  const rates = new AppendRates();
  const open = (row) => go("topic", { name: row.name });

  async function read({ after, text }) {
    const query = new URLSearchParams({ count: PAGE });
    if (text) query.set("match", glob(text));
    if (after !== null) query.set("after", after);
    const answer = await ask(`/api/topics?${query}`);
    for (const topic of answer.topics) topic.rate = rates.of(topic);
    return { rows: answer.topics, next: answer.next };
  }

  const view = listing({
    id: "topics",
    title: "Topics",
    what: "topic",
    read,
    isFiltered: true,
    isOffered: () => allowed("see_all"),
    hint: "Enter opens a topic.",
    table: {
      columns: [
        { title: "Name", width: "minmax(5rem, 3fr)", sort: (row) => row.name, text: (row) => shown(row.name), hint: (row) => shown(row.name), isName: true, opens: true },
        { title: "Entries", width: "minmax(3.2rem, 6.5rem)", sort: (row) => row.length, text: (row) => count(row.length), isNumber: true },
        { title: "Size", width: "minmax(4rem, 5rem)", sort: (row) => row.bytes, text: (row) => bytes(row.bytes), isNumber: true },
        { title: "Added", width: "5rem", sort: (row) => row.rate, text: (row) => perSecond(row.rate), isNumber: true, minor: true },
        { title: "Oldest", width: "5rem", sort: age, text: (row) => (age(row) === null ? "–" : milliseconds(age(row))), isNumber: true, minor: true },
        { title: "Retention", width: "minmax(6rem, 2fr)", text: retention, hint: (row) => (row.retain_rule ? `by the rule for ${shown(row.retain_rule)}` : ""), minor: true },
        { title: "Groups", width: "4.5rem", sort: (row) => row.groups, text: (row) => count(row.groups), isNumber: true, minor: true },
        { title: "State", width: "4.5rem", sort: (row) => row.paused, text: (row) => (row.paused ? "paused" : "active"), tone: (row) => (row.paused ? "warning" : ""), minor: true },
      ],
      actions: [
        { title: () => "Tail", run: (row) => go("tail", { kind: "topic", name: row.name }) },
        {
          title: (row) => (row.paused ? "Resume" : "Pause"),
          isOffered: (row) => allowedOn("pause", row.name),
          run: async (row) => (await pauseOrResumeTopic(row)) && view.refresh(),
        },
      ],
      actionsWidth: "7.4rem",
      key: (row) => row.name,
      open,
      empty: [
        el("p", {}, "No topics here. Append an entry to create one:"),
        line(`curl -d '{"item": "tea"}' -H 'content-type: application/json' ${location.origin}/api/topics/orders`),
      ],
    },
  });
  return view;
}
