// Questions that stand before everything else until they are answered. The browser makes the rest of the page inert;
// Tab stays within, Escape and the browser's Back say no, and the focus goes back to where it was.

import { el } from "./dom.js";

// Promises what the form said, or null. `fields` are elements with names.
export function question({ title, text, fields = [], yes, no = "Cancel", isDanger = false }) {
  return new Promise((resolve) => {
    const before = document.activeElement;
    const refuse = no ? el("button", { type: "button", click: () => end(null) }, no) : null;
    const agree = el("button", { type: "submit", class: isDanger ? "danger" : "primary" }, yes);
    const form = el("form", {
      submit: (event) => {
        event.preventDefault();
        end(Object.fromEntries(new FormData(form)));
      },
    });
    form.append(
      el("h2", { id: "question" }, title),
      el("p", { id: "question-text" }, text),
      ...fields,
      el("div", { class: "answers" }, refuse, agree),
    );
    const dialog = el(
      "dialog",
      {
        "aria-labelledby": "question",
        "aria-describedby": "question-text",
        close: () => end(null), // Escape
        keydown: (event) => event.key === "Tab" && stay(event, dialog),
      },
      form,
    );
    const leave = () => end(null);
    addEventListener("hashchange", leave);
    document.body.append(dialog);
    dialog.showModal();
    (fields[0]?.querySelector("input") ?? refuse ?? agree).focus();

    function end(answer) {
      if (!dialog.isConnected) return;
      removeEventListener("hashchange", leave);
      dialog.remove();
      if (before?.isConnected) before.focus();
      resolve(answer);
    }
  });
}

function stay(event, dialog) {
  const stops = [...dialog.querySelectorAll("button, input, textarea, select, pre")];
  const edge = event.shiftKey ? stops[0] : stops.at(-1);
  if (document.activeElement !== edge) return;
  event.preventDefault();
  (event.shiftKey ? stops.at(-1) : stops[0]).focus();
}
