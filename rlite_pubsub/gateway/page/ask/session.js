// Who uses the page, and what they may do. Nothing else is offered.
//
// Promises: a password is sent once, in a header, and not kept; what is kept, in this tab only, is the session's token that the
// server answers with, or a token of `http-tokens`. Nobody's password is in a URL.

import { question } from "../look/dialog.js";
import { el } from "../look/dom.js";

const KEY = "rlite-token";
const ANY = ["*"];

let token = sessionStorage.getItem(KEY);
let asking = null;
let may = { see_all: true, see_connections: true, close_connections: true, see_keys: true, publish: ANY, subscribe: ANY, append: ANY, read: ANY, pause: ANY, requeue: ANY };

export function currentToken() {
  return token;
}

function keep(said) {
  token = said;
  if (said === null) sessionStorage.removeItem(KEY);
  else sessionStorage.setItem(KEY, said);
}

// `refused`: what was sent, and is not known (any more). Whoever asks meanwhile waits for the same answer.
export function newToken(refused) {
  if (token !== refused) return Promise.resolve();
  asking ??= logIn(refused !== null).finally(() => {
    asking = null;
  });
  return asking;
}

async function logIn(wasRefused) {
  let why = wasRefused ? "Your session has ended. Log in again." : "Log in as a user of this server (ACL), or with a token of http-tokens.";
  let name = "";
  for (;;) {
    const user = el("input", { name: "user", autocomplete: "username", spellcheck: "false", placeholder: "default", value: name });
    const password = el("input", { name: "password", type: "password", autocomplete: "current-password", required: true });
    const answer = await question({
      title: "Log in",
      text: why,
      fields: [el("label", { class: "field" }, "User, empty for a token", user), el("label", { class: "field" }, "Password or token", password)],
      yes: "Log in",
      no: null,
    });
    name = answer?.user ?? name;
    if (!answer?.password) continue;
    try {
      why = await tryIn(answer.user.trim(), answer.password);
      if (why === null) return;
    } catch {
      why = "The server does not answer. Try again.";
    }
  }
}

// Promises null, or why not. With no user it may be a token, or else the default user's password.
async function tryIn(user, password) {
  if (!user) {
    const known = await send("GET", bearer(password));
    if (known.ok && (await known.json()).user === null) {
      keep(password);
      return null;
    }
  }
  const answer = await send("POST", `Basic ${btoa(bytes(`${user || "default"}:${password}`))}`);
  if (answer.ok) {
    keep((await answer.json()).token);
    return null;
  }
  return answer.status === 401 ? "That user, password or token is not right." : `Not logged in: HTTP ${answer.status}.`;
}

function send(method, authorization) {
  return fetch("/api/session", { method, headers: { Authorization: authorization }, credentials: "omit", cache: "no-store", redirect: "error" });
}

// A header has bytes, and a token may be any text.
function bytes(text) {
  return String.fromCharCode(...new TextEncoder().encode(text));
}

export function bearer(said) {
  return `Bearer ${bytes(said)}`;
}

export async function logOut() {
  const said = token;
  keep(null);
  if (said !== null) await fetch("/api/session?end=1", { method: "POST", headers: { Authorization: bearer(said) }, credentials: "omit" }).catch(() => {});
}

// -- what they may do, and where

let tellAddress;
const address = new Promise((resolve) => {
  tellAddress = resolve;
});

// `told` is what /api/session answers.
export function learn(told) {
  may = told.may;
  tellAddress(told.redis);
}

// Promises what to type for a command, as soon as the server has said where Redis clients connect.
export async function redisCli(words) {
  const { port, tls_port: tlsPort, unix_socket: socket } = await address;
  if (!port && !tlsPort && socket) return `redis-cli -s ${socket}${words}`;
  const isHere = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(location.hostname);
  const host = isHere ? "" : ` -h ${location.hostname.replace(/^\[|\]$/g, "")}`;
  const where = port ? ` -p ${port}` : tlsPort ? ` --tls -p ${tlsPort}` : "";
  return `redis-cli${host}${where}${words}`;
}

export function allowed(what) {
  return may[what] === true;
}

export function allowedSome(what) {
  return may[what].length > 0;
}

// Whether a command may be used with this name.
export function allowedOn(what, name) {
  return may[what].some((pattern) => pattern === "*" || glob(pattern).test(name));
}

const known = new Map();

// A pattern of Redis as a regular expression.
function glob(pattern) {
  let found = known.get(pattern);
  if (found) return found;
  let text = "";
  for (let at = 0; at < pattern.length; at += 1) {
    const sign = pattern[at];
    const end = sign === "[" ? pattern.indexOf("]", at + 1) : -1;
    if (sign === "*") text += ".*";
    else if (sign === "?") text += ".";
    else if (end > at + 1) {
      text += `[${pattern.slice(at + 1, end).replace(/[\\\]]/g, "\\$&")}]`;
      at = end;
    } else {
      if (sign === "\\" && at + 1 < pattern.length) at += 1;
      text += pattern[at].replace(/[.*+?^${}()|[\]\\/-]/g, "\\$&");
    }
  }
  found = new RegExp(`^${text}$`, "s");
  known.set(pattern, found);
  return found;
}
