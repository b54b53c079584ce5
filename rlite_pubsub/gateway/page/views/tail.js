// A live tail of a channel, a pattern, a topic or the events, and what it takes to publish to them.
//
// Promises: however much comes, the page keeps the newest `KEPT` messages and draws once a frame. What it does not show it
// counts: dropped from the list, lost at the server (a gap), or perhaps missed while the connection was gone. Nothing is
// followed while nobody sees it: out of sight, the stream ends; back in sight a topic goes on where it was, and of a channel it
// is said for how long nobody listened.

import { follow } from "../ask/api.js";
import { allowedSome, redisCli } from "../ask/session.js";
import { copyButton, line } from "../look/copying.js";
import { question } from "../look/dialog.js";
import { el, path, say, shown } from "../look/dom.js";
import { pretty } from "../look/facts.js";
import { count, dateAndTime, milliseconds, time } from "../look/numbers.js";
import { Table } from "../look/table.js";
import { go } from "../look/tabs.js";
import { publishing } from "./publish.js";

const KEPT = 5000;
const LONGEST_SHOWN = 500;

const KINDS = {
  channel: { title: "Channel", where: (name) => path("/api/channels/", name), read: (event) => [event.data] },
  pattern: { title: "Pattern", where: (name) => `/api/channels?${new URLSearchParams({ pattern: name })}`, read: ofPattern },
  topic: { title: "Topic", where: (name, from) => path("/api/topics/", name, from), read: ofTopic, hasIds: true },
  events: { title: "Events", where: (name, from) => `/api/events${from}${matcher(from, name)}`, read: ofEvents, hasIds: true },
};

const FROM = { now: "$", earliest: "0" };

function matcher(from, name) {
  return name ? `${from ? "&" : "?"}typeMatcher=${encodeURIComponent(name)}` : "";
}

// (body, source)
function ofPattern(event) {
  const said = JSON.parse(event.data);
  return [asText(said.data), said.channel];
}

function ofTopic(event) {
  const fields = JSON.parse(event.data);
  const names = Object.keys(fields);
  return [names.length === 1 && names[0] === "message" ? asText(fields.message) : event.data, event.id];
}

function ofEvents(event) {
  return [event.data, event.type];
}

function asText(value) {
  return typeof value === "string" ? value : JSON.stringify(value);
}

// When an entry was made, as its id says; what has no id has come just now.
function madeAt(event) {
  const entry = /^(\d{10,16})-\d+$/.exec(event.id);
  if (entry) return Number(entry[1]);
  const uuid = /^([0-9a-f]{8})-([0-9a-f]{4})-6([0-9a-f]{3})-/.exec(event.id);
  if (!uuid) return Date.now();
  return Number((BigInt(`0x${uuid[1]}${uuid[2]}${uuid[3]}`) - 0x01b21dd213814000n) / 10000n);
}

export function tail() {
  let stream = null;
  let said = null;
  let kept = [];
  let waiting = [];
  let received = 0;
  let serial = 0;
  let isStopped = false;
  let drawing = 0;
  let wasLive = false;
  let isShown = false;
  let unseenSince = null;

  const kind = el("select", { id: "tail-kind", change: () => adapt() }, ...Object.entries(KINDS).map(([value, each]) => el("option", { value }, each.title)));
  const name = el("input", { id: "tail-name", type: "text", spellcheck: "false", autocomplete: "off", required: true });
  const from = el("select", { id: "tail-from" }, el("option", { value: "now" }, "new messages"), el("option", { value: "earliest" }, "from the oldest"));
  const start = el("button", { type: "submit", class: "primary" }, "Follow");
  const end = el("button", { type: "button", id: "tail-end", disabled: true, click: leave }, "Stop");
  const filter = el("input", { id: "tail-filter", type: "search", class: "filter", placeholder: "words in the message", spellcheck: "false", autocomplete: "off", input: refilter });
  const stop = el("button", { type: "button", id: "tail-stop", "aria-pressed": "false", title: "Keep the list as it is; messages that arrive meanwhile are shown afterwards", click: hold }, "Pause");
  const clear = el("button", { type: "button", id: "tail-clear", click: forget }, "Clear");
  const size = el("span", { id: "tail-size", class: "muted size" });
  const state = el("span", { id: "tail-state", class: "state", role: "status", "data-state": "off" }, "not following");
  const table = new Table({
    label: "Messages",
    columns: [
      { title: "Time", width: "6.6rem", text: (row) => time(row.ms) },
      { title: "From", width: "minmax(5rem, 1fr)", text: (row) => shown(row.source), hint: (row) => shown(row.source), isName: true, minor: true },
      { title: "Message", width: "minmax(8rem, 4fr)", text: (row) => shown(row.body.slice(0, LONGEST_SHOWN)), isName: true, opens: true, tone: (row) => row.tone },
    ],
    key: (row) => row.serial,
    open,
    empty: [el("p", {}, "No messages yet. Publish one below, or in a terminal:"), line(redisCli(" PUBLISH news hello"))],
  });
  const publish = publishing();
  const target = el(
    "form",
    {
      class: "bar",
      submit: (event) => {
        event.preventDefault();
        const wanted = { kind: kind.value, name: name.value, from: from.value };
        if (said && JSON.stringify(said) === JSON.stringify(wanted)) begin(wanted);
        else go("tail", wanted);
      },
    },
    el("label", { for: "tail-kind", class: "unseen" }, "Kind"),
    kind,
    el("label", { for: "tail-name", class: "unseen" }, "Name"),
    name,
    el("label", { for: "tail-from", class: "unseen" }, "Start"),
    from,
    start,
    end,
    state,
  );
  const bar = el("div", { class: "bar" }, el("label", { for: "tail-filter" }, "Filter"), filter, stop, clear, size);
  const element = el("div", { class: "view" }, target, bar, table.element, publish.element);
  adapt();

  function adapt() {
    const isEvents = kind.value === "events";
    from.hidden = !KINDS[kind.value].hasIds;
    name.required = !isEvents;
    name.placeholder = { channel: "channel, like news", pattern: "pattern, like orders.*", topic: "topic, like orders", events: "regular expression for the type; empty for all" }[kind.value];
  }

  // In sight it is followed, else not.
  function look() {
    const isSeen = isShown && !document.hidden;
    if (!stream || isSeen === (unseenSince === null)) return;
    if (!isSeen) {
      unseenSince = Date.now();
      stream.pause();
      return tell("off", "paused out of sight");
    }
    const gone = milliseconds(Date.now() - unseenSince);
    unseenSince = null;
    wasLive = false;
    if (!KINDS[kind.value].hasIds) note(`Not followed for ${gone}, while this was out of sight.`);
    stream.resume();
  }
  document.addEventListener("visibilitychange", look);

  function leave() {
    stream?.close();
    stream = null;
    end.disabled = true;
    tell("off", "stopped");
  }

  function begin(wanted) {
    stream?.close();
    unseenSince = null;
    said = wanted;
    kind.value = wanted.kind in KINDS ? wanted.kind : "channel";
    name.value = wanted.name ?? "";
    from.value = wanted.from in FROM ? wanted.from : "now";
    adapt();
    forget();
    received = 0;
    wasLive = false;
    const here = KINDS[kind.value];
    publish.aim(kind.value, name.value);
    if (!name.value && kind.value !== "events") {
      stream = null;
      end.disabled = true;
      return tell("off", "not following");
    }
    let where;
    try {
      where = here.where(name.value, here.hasIds ? `?last_event_id=${encodeURIComponent(FROM[from.value])}` : "");
    } catch (failure) {
      stream = null;
      return tell("refused", failure.message);
    }
    tell("waiting", "connecting");
    end.disabled = false;
    stream = follow(where, {
      take: (events) => take(events, here),
      state: (now, why) => {
        if (now === "live" && wasLive && !here.hasIds) note("The connection was lost; messages published meanwhile are missing here.");
        wasLive ||= now === "live";
        tell(now, { live: "live", waiting: "reconnecting", refused: why }[now]);
      },
    });
  }

  function tell(now, text) {
    state.dataset.state = now;
    say(state, text);
  }

  function take(events, here) {
    received += events.length;
    for (const event of events) {
      // An event of that type has an id of its own; the server's word on what is lost has none.
      if (event.type === "gap" && !event.hasId) note(`Gap: ${event.data}`);
      else {
        const [body, source = shown(name.value)] = here.read(event);
        waiting.push({ serial: (serial += 1), ms: madeAt(event), source, body, tone: "" });
      }
    }
    soon();
  }

  function note(text) {
    waiting.push({ serial: (serial += 1), ms: Date.now(), source: "", body: text, tone: "warning" });
    soon();
  }

  function soon() {
    if (waiting.length > 2 * KEPT) waiting = waiting.slice(-KEPT);
    drawing ||= requestAnimationFrame(draw);
  }

  function matches() {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    return (row) => {
      if (!words.length || row.tone) return true;
      const text = `${row.source} ${row.body}`.toLowerCase();
      return words.every((word) => text.includes(word));
    };
  }

  function draw() {
    drawing = 0;
    if (isStopped) return tally();
    const isFollowing = table.isAtEnd;
    const before = table.rows;
    const accepts = matches();
    kept.push(...waiting.slice(-KEPT));
    const fresh = waiting.slice(-KEPT).filter(accepts);
    waiting = [];
    kept.splice(0, Math.max(0, kept.length - KEPT));
    const oldest = kept[0]?.serial ?? 0;
    const gone = before.findIndex((row) => row.serial >= oldest);
    const lost = gone < 0 ? before.length : gone;
    table.rows = [...before.slice(lost), ...fresh];
    if (isFollowing) table.scrollToEnd();
    else if (lost) table.shift(lost);
    tally();
  }

  function tally() {
    const shownNow = filter.value.trim() ? `${count(table.rows.length)} match, ` : "";
    const held = isStopped ? `${count(waiting.length)} not shown, ` : "";
    say(size, `${held}${shownNow}${count(received)} received`);
  }

  function refilter() {
    table.rows = kept.filter(matches());
    table.scrollToEnd();
    tally();
  }

  function forget() {
    kept = [];
    waiting = [];
    table.rows = [];
    tally();
  }

  function hold() {
    isStopped = !isStopped;
    stop.setAttribute("aria-pressed", isStopped);
    say(stop, isStopped ? "Continue" : "Pause");
    soon();
  }

  function open(row) {
    const text = pretty(row.body);
    question({
      title: row.source ? shown(row.source) : "Message",
      text: dateAndTime(row.ms),
      fields: [el("pre", { tabindex: 0, class: "whole" }, text), el("p", {}, copyButton(() => row.body, "Copy message"))],
      yes: "Close",
      no: null,
    });
  }

  return {
    id: "tail",
    title: "Tail & publish",
    element,
    isOffered: () => allowedSome("subscribe") || allowedSome("read"),
    // The address says what is followed. Who comes back finds what had come.
    show(wanted) {
      isShown = true;
      publish.offer();
      const next = { kind: wanted.kind ?? said?.kind ?? "channel", name: wanted.name ?? said?.name ?? "", from: wanted.from ?? (wanted.name ? "now" : said?.from ?? "now") };
      if (said === null || JSON.stringify(next) !== JSON.stringify(said)) begin(next);
      else {
        look();
        requestAnimationFrame(() => table.scrollToEnd());
      }
    },
    hide() {
      isShown = false;
      look();
    },
    focusFilter: () => filter.focus(),
  };
}
