// One plot: up to two lines over the last two minutes, the value of now, and the highest in sight.

import { el, say, svg } from "./dom.js";

const SAMPLES = 120;
const LEAST_SAMPLES = 30;
const WIDTH = 480;
const HEIGHT = 120;

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
  #points = [];
  #at = null;

  // `lines` are `{title, value(sample)}`; a value that is not known leaves a hole.
  constructor({ title, lines, format, least = 1 }) {
    this.#lines = lines;
    this.#format = format;
    this.#least = least;
    this.#now = lines.map(() => el("b", {}, "–"));
    this.#top = el("span", { class: "top muted" });
    this.#paths = lines.map((_, index) => [svg("path", { class: `area s${index + 1}` }), svg("path", { class: `line s${index + 1}` })]);
    this.#cursor = svg("line", { class: "cursor", y1: 0, y2: HEIGHT, visibility: "hidden" });
    this.#hint = el("span", { class: "when muted" });
    const values = lines.map((line, index) =>
      el("span", { class: "value" }, lines.length > 1 ? el("i", { class: `key s${index + 1}` }) : null, lines.length > 1 ? `${line.title} ` : null, this.#now[index]),
    );
    this.#drawing = svg(
      "svg",
      { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", "aria-label": title },
      ...[0, 0.5, 1].map((part) => svg("line", { class: "grid", x1: 0, x2: WIDTH, y1: HEIGHT * part, y2: HEIGHT * part })),
      ...this.#paths.flat(),
      this.#cursor,
    );
    this.#title = title;
    this.element = el(
      "figure",
      { class: "plot", pointermove: (event) => this.#point(event), pointerleave: () => this.#point(null) },
      el("figcaption", {}, el("span", { class: "title" }, title), ...values),
      el("div", { class: "drawing" }, this.#drawing, this.#top, this.#hint),
    );
  }

  set samples(samples) {
    this.#points = samples.slice(-SAMPLES);
    this.#draw();
  }

  // A page that has just come has less to show, and shows it larger.
  get #span() {
    return Math.max(LEAST_SAMPLES, this.#points.length);
  }

  #draw() {
    const points = this.#points;
    const values = this.#lines.map((line) => points.map((sample) => line.value(sample)));
    const highest = ceiling(Math.max(0, ...values.flat().filter(Number.isFinite)), this.#least);
    const span = this.#span;
    const x = (index) => ((span - points.length + index) / (span - 1)) * WIDTH;
    const y = (value) => HEIGHT - (value / highest) * (HEIGHT - 2) - 1;
    values.forEach((series, number) => {
      const [area, line] = this.#paths[number];
      const runs = [];
      let run = null;
      series.forEach((value, index) => {
        if (!Number.isFinite(value)) return (run = null);
        if (run === null) runs.push((run = []));
        run.push(`${x(index).toFixed(1)},${y(value).toFixed(1)}`);
      });
      line.setAttribute("d", runs.map((each) => `M${each.join("L")}`).join(""));
      const shapes = runs.map((each) => `M${each[0].split(",")[0]},${HEIGHT}L${each.join("L")}L${each.at(-1).split(",")[0]},${HEIGHT}Z`);
      area.setAttribute("d", number === 0 ? shapes.join("") : "");
    });
    say(this.#top, this.#format(highest));
    const chosen = this.#at === null ? points.length - 1 : this.#at;
    const told = values.map((series) => this.#format(series[chosen]));
    told.forEach((text, index) => say(this.#now[index], text));
    this.#drawing.setAttribute("aria-label", `${this.#title}: ${told.join(", ")}`);
    this.#cursor.setAttribute("visibility", this.#at === null ? "hidden" : "visible");
    if (this.#at !== null) {
      this.#cursor.setAttribute("x1", x(this.#at));
      this.#cursor.setAttribute("x2", x(this.#at));
    }
    const ago = this.#at === null || !points.length ? 0 : Math.round((points.at(-1).ms - points[this.#at].ms) / 1000);
    say(this.#hint, this.#at === null ? "" : `${ago} s ago`);
  }

  #point(event) {
    this.#at = null;
    if (event && this.#points.length) {
      const box = this.#drawing.getBoundingClientRect();
      const part = Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
      const at = Math.round(part * (this.#span - 1)) - (this.#span - this.#points.length);
      this.#at = at < 0 ? null : at;
    }
    this.#draw();
  }
}
