// What goes on, and what is wrong: warnings, how much there is of everything, and rates and backlogs over time.

import { ask } from "../ask/api.js";
import { el, say } from "../look/dom.js";
import { bytes, count, milliseconds, perSecond, short } from "../look/numbers.js";
import { Plot } from "../look/plot.js";
import { go } from "../look/tabs.js";
import { linkTable } from "./links.js";
import { warningList } from "./warnings.js";

const rate = (name) => (sample) => sample.rates?.[name];
const gauge = (name) => (sample) => sample[name] ?? undefined;
const each = (text) => (value) => perSecond(value, text);

const PLOTS = [
  { title: "Published", lines: [{ title: "", value: rate("messages_published") }], format: each(short) },
  { title: "Delivered", lines: [{ title: "", value: rate("messages_delivered") }], format: each(short) },
  { title: "Entries appended", lines: [{ title: "", value: rate("entries_posted") }], format: each(short) },
  { title: "Commands", lines: [{ title: "", value: rate("commands") }], format: each(short) },
  {
    title: "Network",
    lines: [
      { title: "in", value: rate("input_bytes") },
      { title: "out", value: rate("output_bytes") },
    ],
    format: each(bytes),
    least: 1000,
  },
  {
    title: "Waiting",
    lines: [
      { title: "mailboxes", value: gauge("backlog_bytes") },
      { title: "on disk", value: gauge("spilled_bytes") },
    ],
    format: bytes,
    least: 1000,
  },
  {
    title: "Store",
    lines: [
      { title: "used", value: gauge("store_live_bytes") },
      { title: "free", value: gauge("store_free_bytes") },
      { title: "held", value: gauge("store_held_bytes") },
    ],
    format: bytes,
    least: 1000,
  },
  { title: "Memory", lines: [{ title: "", value: gauge("memory_bytes") }], format: bytes, least: 1000 },
  { title: "Event loop lag", lines: [{ title: "", value: gauge("loop_lag_ms") }], format: milliseconds, least: 10 },
];

const TILES = [
  ["Connections", "connections", count, "connections"],
  ["Channels", "channels", count, "channels"],
  ["Patterns", "patterns", count, "patterns"],
  ["Topics", "topics", count, "topics"],
  ["Subscribers", "subscribers", count, "subscribers"],
  ["Messages waiting", "backlog_messages", count, "subscribers"],
  ["Oldest waiting", "oldest_age_ms", (value) => (value === 0 ? "–" : milliseconds(value)), "subscribers"],
  ["Messages dropped", "dropped_messages", count, null],
  ["Store on disk", "store_disk_bytes", bytes, null],
  ["Disk free", "disk_free_bytes", bytes, null],
  ["Memory", "memory_bytes", bytes, null],
  ["Uptime", "uptime_ms", milliseconds, null],
];

const COUNTERS = ["messages_published", "messages_delivered", "entries_posted", "commands", "input_bytes", "output_bytes"];

// So far apart are the samples that the server keeps.
const HISTORY_MS = 10_000;
const RANGES = {
  minutes: { title: "2 minutes", spanMs: 120_000, stepMs: 1, kept: 240 },
  hour: { title: "1 hour", spanMs: 3_600_000, stepMs: HISTORY_MS, kept: 400 },
};
const OVERLAP_MS = 150_000;

// Rates since the sample before. A counter that was set back, or a hole, has none.
export function withRates(sample, before, mostSeconds = 10) {
  const seconds = before ? (sample.ms - before.ms) / 1000 : 0;
  const rates = {};
  for (const name of COUNTERS) {
    const growth = before ? sample[name] - before[name] : NaN;
    if (seconds > 0 && seconds < mostSeconds && growth >= 0) rates[name] = growth / seconds;
  }
  return { ...sample, rates };
}

export function overview() {
  const samples = { minutes: [], hour: [] };
  let latest = null;
  let range = "minutes";
  let isShown = false;
  let isRead = false;
  const plots = PLOTS.map((plot) => new Plot(plot));
  const warnings = warningList();
  const links = linkTable();
  const fine = el("p", { class: "fine muted", hidden: true }, "No warnings.");
  const tiles = TILES.map(([title, , , view]) => {
    const value = el("b", {}, "–");
    const tile = view
      ? el("button", { type: "button", class: "tile", click: () => go(view) }, el("span", {}, title), value)
      : el("div", { class: "tile" }, el("span", {}, title), value);
    return { tile, value };
  });
  const choices = Object.entries(RANGES).map(([name, { title }]) =>
    el("button", { type: "button", class: "quiet", "aria-pressed": String(name === range), click: () => choose(name) }, title),
  );
  const element = el(
    "div",
    { class: "view scrolls" },
    warnings.element,
    el("div", { class: "tiles" }, ...tiles.map(({ tile }) => tile)),
    links.element,
    el("div", { class: "bar ranges", role: "group", "aria-label": "Time range" }, ...choices, fine),
    el("div", { class: "plots" }, ...plots.map((plot) => plot.element)),
  );

  function choose(name) {
    range = name;
    Object.keys(RANGES).forEach((each, index) => choices[index].setAttribute("aria-pressed", each === name));
    draw();
  }

  function draw() {
    if (!isShown || !latest) return;
    TILES.forEach(([, name, format], index) => say(tiles[index].value, format(latest[name] ?? undefined)));
    warnings.show(latest.warnings);
    links.show(latest.links);
    fine.hidden = latest.warnings.some((warning) => warning.severity !== "note");
    for (const plot of plots) plot.show(samples[range], RANGES[range].spanMs, HISTORY_MS);
  }

  // The hour before this page came.
  async function readHistory() {
    isRead = true;
    try {
      const { interval_ms, samples: columns } = await ask("/api/stats/history");
      const names = Object.keys(columns);
      const found = columns.ms.map((_, at) => Object.fromEntries(names.map((name) => [name, columns[name][at]])));
      const past = found.map((sample, at) => withRates(sample, found[at - 1], (3 * interval_ms) / 1000));
      const last = past.at(-1)?.ms ?? 0;
      samples.hour = past.concat(samples.hour.filter((sample) => sample.ms > last));
      const first = samples.minutes[0]?.ms ?? Infinity;
      const ahead = past.filter((sample) => sample.ms < first && sample.ms > first - RANGES.minutes.spanMs);
      if (ahead.length && samples.minutes.length) samples.minutes[0] = withRates(samples.minutes[0], ahead.at(-1), 30);
      samples.minutes = ahead.concat(samples.minutes);
      draw();
    } catch {
      isRead = false; // the next sample tries again
    }
  }

  function append(name, sample) {
    const { kept, stepMs } = RANGES[name];
    const list = samples[name];
    let before = list.at(-1);
    if (before && sample.ms < before.ms - OVERLAP_MS) {
      list.length = 0; // the clock was set back
      before = undefined;
    }
    if (before && sample.ms < before.ms + stepMs) return;
    list.push(withRates(sample, before, name === "minutes" ? 10 : 30));
    list.splice(0, Math.max(0, list.length - kept));
  }

  return {
    id: "overview",
    title: "Overview",
    element,
    show() {
      isShown = true;
      draw();
    },
    hide() {
      isShown = false;
    },
    // A page that comes back is given again what it may have.
    add(fresh) {
      for (const sample of fresh) {
        append("minutes", sample);
        append("hour", sample);
      }
      latest = fresh.at(-1) ?? latest;
      if (!isRead) readHistory();
      draw();
    },
  };
}
