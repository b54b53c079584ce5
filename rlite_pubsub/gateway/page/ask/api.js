// Asking the server, and following its streams.
//
// Promises: a stream comes back by itself, from the id that it was at; a request that needs a login waits until there is one,
// and none is sent twice with a token that was refused.

import { bearer, currentToken, newToken } from "./session.js";
import { EventCutter } from "./sse.js";

const FIRST_DELAY_MS = 500;
const LONGEST_DELAY_MS = 10_000;
// It asks again when it is less busy, starting or paused.
const PASSING = new Set([408, 425, 429, 500, 502, 503, 504]);

export class Refused extends Error {
  constructor(status, title, detail) {
    super(detail || title || `HTTP ${status}`);
    this.status = status;
  }
}

async function send(path, options) {
  for (;;) {
    const used = currentToken();
    const headers = new Headers(options.headers);
    if (used !== null) headers.set("Authorization", bearer(used));
    const response = await fetch(path, { ...options, headers, credentials: "omit", cache: "no-store", redirect: "error" });
    if (response.ok) return response;
    if (response.status !== 401) throw await refusal(response);
    await response.body?.cancel();
    await newToken(used);
  }
}

async function refusal(response) {
  let said = {};
  try {
    said = JSON.parse(await response.text());
  } catch {
    // Something between us and the server has answered; its status says enough.
  }
  return new Refused(response.status, said.title, said.detail);
}

export async function ask(path, options = {}) {
  return (await send(path, options)).json();
}

export function post(path, body = "", headers = {}) {
  return ask(path, { method: "POST", body, headers });
}

// Follows a stream until `close()`; after `pause()` it ends, and `resume()` goes on at the id that it was at. `take` gets the events of each piece; `state` hears live, waiting or refused.
// A stream that is silent for longer than `silenceMs` is taken for dead.
export function follow(path, { take, state, silenceMs = 0 }) {
  let ending = new AbortController();
  const place = { lastId: "", retryMs: null };
  run(ending);
  return {
    close: () => ending.abort(),
    pause: () => ending.abort(),
    resume: () => {
      ending = new AbortController();
      run(ending);
    },
  };

  async function run(ending) {
    let failures = 0;
    while (!ending.signal.aborted) {
      const connection = new AbortController();
      const end = () => connection.abort();
      ending.signal.addEventListener("abort", end);
      let why = "The server has ended the stream.";
      try {
        await read(connection, ending, () => {
          failures = 0;
          state("live", "");
        });
      } catch (failure) {
        if (ending.signal.aborted) return;
        if (failure instanceof Refused && !PASSING.has(failure.status)) return state("refused", failure.message);
        why = failure.message;
      } finally {
        ending.signal.removeEventListener("abort", end);
        connection.abort();
      }
      if (ending.signal.aborted) return;
      state("waiting", why);
      const delay = (place.retryMs ?? FIRST_DELAY_MS) * 2 ** Math.min(failures, 6);
      failures += 1;
      await rest(Math.min(delay, LONGEST_DELAY_MS) * (0.75 + Math.random() / 2), ending.signal);
    }
  }

  async function read(connection, ending, begun) {
    const headers = { Accept: "text/event-stream" };
    if (place.lastId) headers["Last-Event-ID"] = place.lastId;
    const response = await send(path, { headers, signal: connection.signal });
    begun();
    const fresh = new EventCutter(place.lastId);
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let watch = 0;
    try {
      for (;;) {
        if (silenceMs) watch = setTimeout(() => connection.abort(), silenceMs);
        const { done, value } = await reader.read();
        clearTimeout(watch);
        if (done || ending.signal.aborted) return;
        const events = fresh.cut(value);
        Object.assign(place, { lastId: fresh.lastId, retryMs: fresh.retryMs ?? place.retryMs });
        if (events.length) take(events);
      }
    } finally {
      clearTimeout(watch);
    }
  }
}

function rest(milliseconds, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(done, milliseconds);
    function done() {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    }
    signal.addEventListener("abort", done);
  });
}
