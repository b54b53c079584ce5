// The page: its views, its colours, its token, and the samples that say whether the server is there.

import { follow, forgetToken, hasToken, onTokenWanted } from "./api.js";
import { question } from "./dialog.js";
import { el, say } from "./dom.js";
import { channels, groups, patterns, subscribers, topics } from "./lists.js";
import { overview } from "./overview.js";
import { tabs } from "./tabs.js";
import { tail } from "./tail.js";

const SILENCE_MS = 10_000;
const THEMES = ["auto", "light", "dark"];
const THEME_KEY = "rlite-theme";

const $ = (id) => document.getElementById(id);

onTokenWanted(async (isRefused) => {
  for (;;) {
    const answer = await question({
      title: "A token, please",
      text: isRefused ? "The server does not know that token, or no longer. Which one is it?" : "This server wants its password, a user as NAME:PASSWORD, or one of its tokens. It is kept until this tab is closed.",
      fields: [el("label", { class: "field" }, "Token", el("input", { name: "token", type: "password", autocomplete: "current-password", required: true }))],
      yes: "Go on",
      no: null,
    });
    if (answer?.token) {
      $("forget").hidden = false;
      return answer.token;
    }
  }
});

$("forget").hidden = !hasToken();
$("forget").addEventListener("click", () => {
  forgetToken();
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
  say($("theme"), `\u25d0 ${now[0].toUpperCase()}${now.slice(1)}`);
  $("theme").setAttribute("aria-label", `Colours: ${now === "auto" ? "as the system has them" : now}`);
}
nameTheme();

const seen = overview();
const views = [seen, channels(), patterns(), topics(), groups(), subscribers(), tail()];
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

let samples = null;

function tell(state, text) {
  $("state").dataset.state = state;
  say($("state"), text);
}

// A page that nobody sees asks for nothing.
function look() {
  if (document.hidden) {
    samples?.close();
    samples = null;
    return tell("off", "asleep");
  }
  samples ??= follow("/api/stats", {
    silenceMs: SILENCE_MS,
    state: (state, why) => tell(state, { live: "live", waiting: "reconnecting", refused: why }[state]),
    take: (events) => {
      const found = events.map((event) => JSON.parse(event.data));
      say($("version"), found.at(-1).version);
      seen.add(found);
    },
  });
}
document.addEventListener("visibilitychange", look);
look();
