// The views, one at a time: arrows, Home and End go from tab to tab; the address says which one is open, and where in it.
// A view with a `parent` has no tab of its own: it is opened from there.

import { el } from "./dom.js";

export function tabs(list, place, views) {
  const buttons = new Map();
  let open = null;
  for (const view of views) {
    const panel = el("section", { role: "tabpanel", id: `view-${view.id}`, "aria-labelledby": `tab-${view.parent ?? view.id}`, hidden: true }, view.element);
    place.append(panel);
    if (view.parent) continue;
    const button = el(
      "button",
      { type: "button", role: "tab", id: `tab-${view.id}`, "aria-controls": `view-${view.id}`, click: () => go(view.id), keydown: press },
      view.title,
    );
    buttons.set(view, button);
    list.append(button);
  }
  addEventListener("hashchange", read);

  function offered() {
    return [...buttons].filter(([view]) => !buttons.get(view).hidden).map(([, button]) => button);
  }

  function press(event) {
    const all = offered();
    const at = all.indexOf(event.target);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: all.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    const next = all[(to + all.length) % all.length];
    next.focus();
    next.click();
  }

  function read() {
    const [id, query] = location.hash.replace(/^#\/?/, "").split("?");
    const wanted = views.find((each) => each.id === id);
    const view = wanted && isOffered(wanted) ? wanted : views.find(isOffered);
    if (open !== view) open?.hide();
    open = view;
    for (const each of views) document.getElementById(`view-${each.id}`).hidden = each !== view;
    for (const [each, button] of buttons) {
      const isOpen = each.id === (view.parent ?? view.id);
      button.setAttribute("aria-selected", isOpen);
      button.tabIndex = isOpen ? 0 : -1;
      if (isOpen) button.scrollIntoView({ block: "nearest", inline: "nearest" });
    }
    document.title = view.parent || view.id !== "overview" ? `${view.title} – rlite-pubsub` : "rlite-pubsub";
    view.show(Object.fromEntries(new URLSearchParams(query ?? "")));
  }

  function isOffered(view) {
    return view.isOffered?.() ?? true;
  }

  return {
    open: () => open,
    // What the user may do is known, or has changed.
    begin() {
      for (const [view, button] of buttons) button.hidden = !isOffered(view);
      read();
    },
  };
}

export function address(id, said = {}) {
  const query = new URLSearchParams(said).toString();
  return `#/${id}${query ? `?${query}` : ""}`;
}

export function go(id, said = {}) {
  location.hash = address(id, said);
}
