// The page: its views, its colors, who uses it, and the samples that say whether the server is there.

import { ask, follow, Refused } from "./ask/api.js";
import { allowed, currentToken, learn, logOut, newToken } from "./ask/session.js";
import { say } from "./look/dom.js";
import { clock, milliseconds } from "./look/numbers.js";
import { tabs } from "./look/tabs.js";
import { channels, patterns } from "./views/channels.js";
import { connections } from "./views/connections.js";
import { group } from "./views/group.js";
import { groups } from "./views/groups.js";
import { help } from "./views/help.js";
import { key, keys } from "./views/keys.js";
import { overview } from "./views/overview.js";
import { subscribers } from "./views/subscribers.js";
import { tail } from "./views/tail.js";
import { topic } from "./views/topic.js";
import { topics } from "./views/topics.js";

const SILENCE_MS = 10_000;
const AGAIN_MS = 1000;
const THEMES = ["auto", "light", "dark"];
const THEME_KEY = "rlite-theme";

const $ = (id) => document.getElementById(id);

$("logout").addEventListener("click", async () => {
  await logOut();
  location.reload();
});

// Whoever needs no password may have few rights, and another user more.
$("login").addEventListener("click", async () => {
  await newToken(null);
  location.reload();
});

$("theme").addEventListener("click", () => {
  const now = document.documentElement.dataset.theme ?? "auto";
  const next = THEMES[(THEMES.indexOf(now) + 1) % THEMES.length];
  if (next === "auto") {
    delete document.documentElement.dataset.theme;
    localStorage.removeItem(THEME_KEY);
  } else {
    document.documentElement.dataset.theme = next;
    localStorage.setItem(THEME_KEY, next);
  }
  nameTheme();
});

function nameTheme() {
  const now = document.documentElement.dataset.theme ?? "auto";
  say($("theme"), `Colors: ${now === "auto" ? "system" : now}`);
}
nameTheme();

const seen = overview();
seen.isOffered = () => allowed("see_all");
const views = [seen, connections(), channels(), patterns(), topics(), topic(), groups(), group(), subscribers(), keys(), key(), tail(), help()];
const open = tabs($("tabs"), $("views"), views);

addEventListener("keydown", (event) => {
  const isTyping = event.target.closest?.("input, textarea, select, dialog");
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || isTyping) return;
  const { focusFilter } = open.open();
  if (focusFilter) {
    event.preventDefault();
    focusFilter();
  }
});

// -- who it is

async function meet() {
  for (;;) {
    try {
      const told = await ask("/api/session");
      learn(told);
      const { user, needs_login: needsLogin, may } = told;
      const isKnown = currentToken() !== null;
      $("user").hidden = $("logout").hidden = !isKnown;
      $("login").hidden = isKnown || needsLogin || may.see_all;
      say($("user"), user === null ? "token" : `user ${user}`);
      return open.begin();
    } catch (failure) {
      if (failure instanceof Refused && failure.status === 403) {
        tell("refused", failure.message);
        return open.begin();
      }
      await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
    }
  }
}

// -- whether the server is there

let samples = null;
let heardAt = 0;
let awaySince = 0;

function tell(state, text) {
  $("state").dataset.state = state;
  say($("state"), text);
}

function heard() {
  heardAt = Date.now();
  if (!awaySince) return;
  awaySince = 0;
  $("away").hidden = true;
  delete document.body.dataset.server;
}

// What is seen is old from then on, and says so.
function away() {
  awaySince ||= heardAt || Date.now();
  document.body.dataset.server = "away";
  $("away").hidden = false;
  say($("away"), `The server at ${location.host} does not answer. What you see is from ${clock(awaySince, true)}, ${milliseconds(Date.now() - awaySince)} ago; this page keeps trying.`);
}

setInterval(() => awaySince && away(), 1000);

// A page that nobody sees asks for nothing.
function look() {
  if (document.hidden) {
    samples?.close();
    samples = null;
    return tell("off", "paused");
  }
  if (!allowed("see_all")) return tell("off", "");
  samples ??= follow("/api/stats", {
    silenceMs: SILENCE_MS,
    state: (state, why) => {
      tell(state, { live: "live", waiting: "reconnecting", refused: why }[state]);
      if (state === "waiting") away();
      else heard();
    },
    take: (events) => {
      heard();
      const found = events.map((event) => JSON.parse(event.data));
      say($("version"), found.at(-1).version);
      seen.add(found);
    },
  });
}

await meet();
document.addEventListener("visibilitychange", look);
look();
