// Short lines on what was done, or was not. They are read out, and go by themselves.

import { el } from "./dom.js";

const STAYS_MS = 6000;
const MOST = 4;

export function notice(text, isFailure = false) {
  const place = document.getElementById("notices");
  const line = el("p", { class: isFailure ? "notice failure" : "notice" }, text);
  place.append(line);
  while (place.children.length > MOST) place.firstChild.remove();
  setTimeout(() => line.remove(), STAYS_MS);
}

// Does something, and says what has become of it.
export async function doing(what, done) {
  try {
    notice(done(await what()));
    return true;
  } catch (failure) {
    notice(failure.message, true);
    return false;
  }
}
