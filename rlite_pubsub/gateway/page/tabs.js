// The views, one at a time: arrows, Home and End go from tab to tab; the address says which one is open, and where in it.

import { el } from "./dom.js";

export function tabs(list, place, views) {
  const buttons = new Map();
  let open = null;
  for (const view of views) {
    const button = el(
      "button",
      { type: "button", role: "tab", id: `tab-${view.id}`, "aria-controls": `view-${view.id}`, click: () => go(view.id), keydown: press },
      view.title,
    );
    buttons.set(view, button);
    list.append(button);
    place.append(el("section", { role: "tabpanel", id: `view-${view.id}`, "aria-labelledby": `tab-${view.id}`, hidden: true }, view.element));
  }
  addEventListener("hashchange", read);
  read();

  function press(event) {
    const all = [...buttons.values()];
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
    const view = views.find((each) => each.id === id) ?? views[0];
    if (open !== view) open?.hide();
    open = view;
    for (const [each, button] of buttons) {
      const isOpen = each === view;
      button.setAttribute("aria-selected", isOpen);
      button.tabIndex = isOpen ? 0 : -1;
      document.getElementById(`view-${each.id}`).hidden = !isOpen;
    }
    buttons.get(view).scrollIntoView({ block: "nearest", inline: "nearest" });
    view.show(Object.fromEntries(new URLSearchParams(query ?? "")));
  }

  return { open: () => open };
}

export function go(id, said = {}) {
  const query = new URLSearchParams(said).toString();
  location.hash = `#/${id}${query ? `?${query}` : ""}`;
}
