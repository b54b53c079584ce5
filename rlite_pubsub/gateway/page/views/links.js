// The links of the store to other servers: how each is, as a part of the overview that is there while there are any.

import { el, shown } from "../look/dom.js";
import { bytes, count, milliseconds } from "../look/numbers.js";
import { Table } from "../look/table.js";

const MOST_ROWS = 8;
const TONES = { down: "warning", stopped: "warning", paused: "warning" };

export function linkTable() {
  const table = new Table({
    label: "Links",
    columns: [
      { title: "Link", width: "minmax(4rem, 1fr)", sort: (row) => row.name, text: (row) => shown(row.name), hint: (row) => shown(row.url), isName: true },
      { title: "To", width: "minmax(6rem, 2fr)", sort: (row) => row.url, text: (row) => shown(row.url), hint: (row) => shown(row.url), minor: true },
      { title: "State", width: "6.5rem", sort: (row) => row.state, text: (row) => row.state, tone: (row) => TONES[row.state] ?? "" },
      { title: "Lag", width: "4rem", sort: (row) => row.lag, text: (row) => count(row.lag), isNumber: true },
      { title: "Behind", width: "4.5rem", sort: (row) => row.lag_ms, text: (row) => (row.lag_ms ? milliseconds(row.lag_ms) : "–"), isNumber: true, minor: true },
      { title: "In", width: "5rem", sort: (row) => row.bytes_in, text: (row) => bytes(row.bytes_in), isNumber: true, minor: true },
      { title: "Out", width: "5rem", sort: (row) => row.bytes_out, text: (row) => bytes(row.bytes_out), isNumber: true, minor: true },
      { title: "Error", width: "minmax(6rem, 2fr)", text: (row) => shown(row.error), hint: (row) => shown(row.error), minor: true },
    ],
    key: (row) => row.name,
    empty: "No links.",
  });
  const element = el("div", { class: "part few-rows", hidden: true }, el("h3", {}, "Links"), table.element);
  return {
    element,
    show(links) {
      element.hidden = !links.length;
      element.style.setProperty("--rows", Math.min(MOST_ROWS, links.length));
      table.rows = links;
    },
  };
}
