// Text to be taken elsewhere: with a button that copies it.

import { el, say } from "./dom.js";

const SAID_MS = 1500;

// `text()` is asked for when the button is pressed.
export function copyButton(text, label = "Copy") {
  const button = el("button", { type: "button", class: "copy", click: copy }, label);
  return button;

  async function copy() {
    const isCopied = await write(text());
    say(button, isCopied ? "Copied" : "Not copied");
    setTimeout(() => say(button, label), SAID_MS);
  }
}

// A command line to copy; `command` may be a promise of it.
export function line(command) {
  const code = el("code");
  Promise.resolve(command).then((text) => say(code, text));
  return el("span", { class: "command" }, code, copyButton(() => code.textContent));
}

async function write(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return selectAndCopy(text);
  }
}

// Over plain HTTP from another machine a browser has no clipboard for pages.
function selectAndCopy(text) {
  const place = el("textarea", { class: "unseen", readonly: true, "aria-hidden": "true" });
  place.value = text;
  (document.querySelector("dialog[open]") ?? document.body).append(place);
  place.select();
  const isCopied = document.execCommand("copy");
  place.remove();
  return isCopied;
}
