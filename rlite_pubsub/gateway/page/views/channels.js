// Channels and patterns that somebody subscribes to, with how much is published to them.

import { ask } from "../ask/api.js";
import { allowed } from "../ask/session.js";
import { line } from "../look/copying.js";
import { el, shown } from "../look/dom.js";
import { glob, listing } from "../look/listing.js";
import { count, perSecond, some } from "../look/numbers.js";
import { go } from "../look/tabs.js";

const PAGE = 500;

export function channels() {
  return held("channels", "Channels", "channel", `curl -N ${location.origin}/api/channels/news`);
}

export function patterns() {
  return held("patterns", "Patterns", "pattern", `curl -N '${location.origin}/api/channels?pattern=news.*'`);
}

function held(id, title, kind, command) {
  const tail = (row) => go("tail", { kind, name: row.name });

  async function read({ after, text, sort }) {
    const query = new URLSearchParams({ count: sort ? 1000 : PAGE, rates: 1 });
    if (text) query.set("match", glob(text));
    if (sort) query.set("sort", sort);
    else if (after !== null) query.set("after", after);
    const answer = await ask(`/api/${id}?${query}`);
    return { rows: answer[id], next: answer.next, total: answer.total };
  }

  return listing({
    id,
    title,
    what: kind,
    read,
    isFiltered: true,
    isSorted: true,
    isOffered: () => allowed("see_all"),
    hint: "Rates: messages that this process hands to its own subscribers.",
    table: {
      columns: [
        { title: "Name", width: "minmax(5rem, 3fr)", text: (row) => shown(row.name), hint: (row) => shown(row.name), isName: true, opens: true },
        { title: "Messages", width: "minmax(5.4rem, 1fr)", sortName: "rate", text: (row) => perSecond(row.rate), isNumber: true },
        { title: "Subscribers", width: "minmax(5.6rem, 1fr)", sortName: "subscribers", text: (row) => count(row.subscribers), hint: (row) => some(row.subscribers, "connection"), isNumber: true },
      ],
      actions: [{ title: () => "Tail", run: tail }],
      actionsWidth: "3.5rem",
      key: (row) => row.name,
      open: tail,
      empty: [el("p", {}, `No ${kind}s with subscribers here. Subscribe to one:`), line(command)],
    },
  });
}
