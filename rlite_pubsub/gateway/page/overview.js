// What goes on: rates and backlogs as plots, and how much there is of everything.

import { el, say } from "./dom.js";
import { bytes, count, milliseconds, short } from "./numbers.js";
import { Plot } from "./plot.js";
import { go } from "./tabs.js";

const KEPT = 121;
const KEPT_MS = 150_000;

const perSecond = (text) => (value) => (Number.isFinite(value) ? `${text(value)}/s` : "–");
const rate = (name) => (sample) => sample.rates?.[name];
const gauge = (name) => (sample) => sample[name] ?? undefined;

const PLOTS = [
  { title: "Published", lines: [{ title: "", value: rate("messagesPublished") }], format: perSecond(short) },
  { title: "Delivered", lines: [{ title: "", value: rate("messagesDelivered") }], format: perSecond(short) },
  { title: "Entries appended", lines: [{ title: "", value: rate("entriesPosted") }], format: perSecond(short) },
  { title: "Commands", lines: [{ title: "", value: rate("commands") }], format: perSecond(short) },
  {
    title: "Traffic",
    lines: [
      { title: "in", value: rate("inputBytes") },
      { title: "out", value: rate("outputBytes") },
    ],
    format: perSecond(bytes),
    least: 1000,
  },
  {
    title: "Waiting",
    lines: [
      { title: "backlog", value: gauge("backlogBytes") },
      { title: "spilled", value: gauge("spilledBytes") },
    ],
    format: bytes,
    least: 1000,
  },
  {
    title: "Store",
    lines: [
      { title: "live", value: gauge("storeLiveBytes") },
      { title: "free", value: gauge("storeFreeBytes") },
      { title: "held", value: gauge("storeHeldBytes") },
    ],
    format: bytes,
    least: 1000,
  },
  { title: "Sessions", lines: [{ title: "all", value: gauge("sessions") }, { title: "subscribed", value: gauge("subscribedSessions") }], format: short },
  { title: "Loop lag", lines: [{ title: "", value: gauge("loopLagMs") }], format: milliseconds, least: 10 },
];

const TILES = [
  ["Channels", "channels", count, "channels"],
  ["Patterns", "patterns", count, "patterns"],
  ["Topics", "topics", count, "topics"],
  ["Subscribers", "subscribers", count, "subscribers"],
  ["Backlog", "backlogMessages", count, "subscribers"],
  ["Oldest waits", "oldestAgeMs", (value) => (value === 0 ? "–" : milliseconds(value)), "subscribers"],
  ["Lost", "droppedMessages", count, null],
  ["On disk", "storeDiskBytes", bytes, null],
  ["Old readers", "oldReaders", count, null],
  ["Up", "uptimeMs", milliseconds, null],
];

const COUNTERS = ["messagesPublished", "messagesDelivered", "entriesPosted", "commands", "inputBytes", "outputBytes"];

// Rates since the sample before. A counter that was set back, or a hole, has none.
export function withRates(sample, before) {
  const seconds = before ? (sample.ms - before.ms) / 1000 : 0;
  const rates = {};
  for (const name of COUNTERS) {
    const growth = before ? sample[name] - before[name] : NaN;
    if (seconds > 0 && seconds < 10 && growth >= 0) rates[name] = growth / seconds;
  }
  return { ...sample, rates };
}

export function overview() {
  const samples = [];
  let isShown = false;
  const plots = PLOTS.map((each) => new Plot(each));
  const tiles = TILES.map(([title, , , view]) => {
    const value = el("b", {}, "–");
    const tile = view
      ? el("button", { type: "button", class: "tile", click: () => go(view) }, el("span", {}, title), value)
      : el("div", { class: "tile" }, el("span", {}, title), value);
    return { tile, value };
  });
  const element = el(
    "div",
    { class: "view scrolls" },
    el("div", { class: "tiles" }, ...tiles.map((each) => each.tile)),
    el("div", { class: "plots" }, ...plots.map((each) => each.element)),
  );

  function draw() {
    if (!isShown || !samples.length) return;
    const now = samples.at(-1);
    TILES.forEach(([, name, format], index) => say(tiles[index].value, format(now[name] ?? undefined)));
    for (const plot of plots) plot.samples = samples;
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
    // A page that comes back is given again what it may have. Where time runs backwards, a clock was set.
    add(fresh) {
      for (const sample of fresh) {
        let before = samples.at(-1);
        if (before && sample.ms < before.ms - KEPT_MS) {
          samples.length = 0;
          before = undefined;
        }
        if (before && sample.ms <= before.ms) continue;
        samples.push(withRates(sample, before));
      }
      samples.splice(0, Math.max(0, samples.length - KEPT));
      draw();
    },
  };
}
