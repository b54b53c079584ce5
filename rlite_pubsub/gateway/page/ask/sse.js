// A stream's text, cut into events by the rules of Server-Sent Events. No I/O.

export class EventCutter {
  #rest = "";
  #data = [];
  #type = "";
  #afterReturn = false;
  #id;
  #hasId = false;

  // `lastId` is that of the last whole event: of one that is cut off nothing counts.
  constructor(lastId = "") {
    this.lastId = this.#id = lastId;
    this.retryMs = null;
  }

  // All events that a piece of the stream completes.
  cut(text) {
    if (this.#afterReturn && text.startsWith("\n")) text = text.slice(1);
    if (text) this.#afterReturn = text.endsWith("\r");
    const lines = (this.#rest + text).split(/\r\n|\n|\r/);
    this.#rest = lines.pop();
    const events = [];
    for (const line of lines) {
      if (line) this.#field(line);
      else {
        this.lastId = this.#id;
        if (this.#data.length) {
          events.push({ type: this.#type || "message", id: this.lastId, hasId: this.#hasId, data: this.#data.join("\n") });
        }
        this.#hasId = false;
        this.#data = [];
        this.#type = "";
      }
    }
    return events;
  }

  #field(line) {
    const colon = line.indexOf(":");
    if (colon === 0) return;
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(line[colon + 1] === " " ? colon + 2 : colon + 1);
    if (name === "data") this.#data.push(value);
    else if (name === "event") this.#type = value;
    else if (name === "id" && !value.includes("\0")) {
      this.#id = value;
      this.#hasId = true;
    } else if (name === "retry" && /^\d+$/.test(value)) this.retryMs = Number(value);
  }
}
