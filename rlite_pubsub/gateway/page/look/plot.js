// One plot: up to three lines over time, the value of now, and the highest in sight. Below it stands when that was.

import { el, say, svg } from "./dom.js";
import { clock } from "./numbers.js";

const WIDTH = 480;
const HEIGHT = 120;
// Samples that are further apart than so many steps have a hole between them.
const HOLE_STEPS = 4;

// A round number that is not below any of the values.
export function ceiling(value, least = 1) {
  if (!(value > least)) return least;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10].find((step) => step * power >= value * 0.9999) * power;
}

export class Plot {
  #title;
  #drawing;
  #lines;
  #format;
  #least;
  #now;
  #top;
  #paths;
  #cursor;
  #hint;
  #times;
  #points = [];
  #spanMs = 120_000;
  #stepMs = 1000;
  #at = null;

  // `lines` are `{title, value(sample)}`; a value that is not known leaves a hole.
  constructor({ title, lines, format, least = 1 }) {
    this.#title = title;
    this.#lines = lines;
    this.#format = format;
    this.#least = least;
    this.#now = lines.map(() => el("b", {}, "–"));
    this.#top = el("span", { class: "top muted" });
    this.#paths = lines.map((_, index) => [svg("path", { class: `area s${index + 1}` }), svg("path", { class: `line s${index + 1}` })]);
    this.#cursor = svg("line", { class: "cursor", y1: 0, y2: HEIGHT, visibility: "hidden" });
    this.#hint = el("span", { class: "when muted" });
    this.#times = [0, 1, 2].map(() => el("span", {}));
    const values = lines.map((line, index) =>
      el("span", { class: "value" }, lines.length > 1 ? el("i", { class: `key s${index + 1}` }) : null, lines.length > 1 ? `${line.title} ` : null, this.#now[index]),
    );
    this.#drawing = svg(
      "svg",
      { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", "aria-label": title },
      ...[0, 0.5, 1].map((part) => svg("line", { class: "grid", x1: 0, x2: WIDTH, y1: HEIGHT * part, y2: HEIGHT * part })),
      ...[0.5].map((part) => svg("line", { class: "grid", x1: WIDTH * part, x2: WIDTH * part, y1: 0, y2: HEIGHT })),
      ...this.#paths.flat(),
      this.#cursor,
    );
    this.element = el(
      "figure",
      { class: "plot", pointermove: (event) => this.#point(event), pointerleave: () => this.#point(null) },
      el("figcaption", {}, el("span", { class: "title" }, title), ...values),
      el("div", { class: "drawing" }, this.#drawing, this.#top, this.#hint),
      el("div", { class: "times muted", "aria-hidden": "true" }, ...this.#times),
    );
  }

  // Samples, oldest first, that were taken each `stepMs`; the last `spanMs` of them are drawn.
  show(samples, spanMs, stepMs) {
    this.#spanMs = spanMs;
    this.#stepMs = stepMs;
    const from = (samples.at(-1)?.ms ?? 0) - spanMs;
    this.#points = samples.filter((sample) => sample.ms >= from);
    this.#draw();
  }

  #draw() {
    const points = this.#points;
    const end = points.at(-1)?.ms ?? Date.now();
    const start = end - this.#spanMs;
    const values = this.#lines.map((line) => points.map((sample) => line.value(sample)));
    const highest = ceiling(values.flat().reduce((most, value) => (Number.isFinite(value) ? Math.max(most, value) : most), 0), this.#least);
    const x = (index) => ((points[index].ms - start) / this.#spanMs) * WIDTH;
    const y = (value) => HEIGHT - (value / highest) * (HEIGHT - 2) - 1;
    values.forEach((series, number) => {
      const [area, line] = this.#paths[number];
      const runs = [];
      let run = null;
      series.forEach((value, index) => {
        if (!Number.isFinite(value)) return (run = null);
        if (run !== null && points[index].ms - points[index - 1].ms > HOLE_STEPS * this.#stepMs) run = null;
        if (run === null) runs.push((run = []));
        run.push(`${x(index).toFixed(1)},${y(value).toFixed(1)}`);
      });
      line.setAttribute("d", runs.map((each) => `M${each.join("L")}`).join(""));
      const shapes = runs.map((each) => `M${each[0].split(",")[0]},${HEIGHT}L${each.join("L")}L${each.at(-1).split(",")[0]},${HEIGHT}Z`);
      area.setAttribute("d", number === 0 ? shapes.join("") : "");
    });
    say(this.#top, this.#format(highest));
    [start, start + this.#spanMs / 2, end].forEach((ms, index) => say(this.#times[index], points.length ? clock(ms, this.#spanMs <= 600_000) : ""));
    const chosen = this.#at === null ? points.length - 1 : Math.min(this.#at, points.length - 1);
    const told = values.map((series) => this.#format(series[chosen]));
    told.forEach((text, index) => say(this.#now[index], text));
    this.#drawing.setAttribute("aria-label", `${this.#title}: ${this.#lines.map((line, index) => (line.title ? `${line.title} ${told[index]}` : told[index])).join(", ")}`);
    const isPointed = this.#at !== null && points.length > 0;
    this.#cursor.setAttribute("visibility", isPointed ? "visible" : "hidden");
    if (isPointed) {
      this.#cursor.setAttribute("x1", x(chosen));
      this.#cursor.setAttribute("x2", x(chosen));
    }
    say(this.#hint, isPointed ? clock(points[chosen].ms, true) : "");
  }

  #point(event) {
    this.#at = null;
    const points = this.#points;
    if (event && points.length) {
      const box = this.#drawing.getBoundingClientRect();
      const part = Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
      const wanted = points.at(-1).ms - this.#spanMs * (1 - part);
      let nearest = 0;
      points.forEach((sample, index) => {
        if (Math.abs(sample.ms - wanted) < Math.abs(points[nearest].ms - wanted)) nearest = index;
      });
      this.#at = nearest;
    }
    this.#draw();
  }
}
