// Publishing from the page: to a channel, to a topic, or an event.

import { post } from "../ask/api.js";
import { allowedSome } from "../ask/session.js";
import { el, path, shown } from "../look/dom.js";
import { doing } from "../look/notices.js";
import { some } from "../look/numbers.js";

const FORMS = {
  text: { title: "as text", query: "", type: "text/plain; charset=utf-8" },
  json: { title: "as JSON fields", query: "", type: "application/json" },
  base64: { title: "from base64", query: "?encoding=base64", type: "text/plain; charset=utf-8" },
};

const PLACES = {
  channel: { title: "Channel", forms: ["text", "base64"], where: (name, form) => path("/api/channels/", name) + form.query, told: (said) => `${some(said.receivers, "subscriber")} received it` },
  topic: { title: "Topic", forms: ["text", "json", "base64"], where: (name, form) => path("/api/topics/", name) + form.query, told: (said) => `its id is ${said.id}` },
  event: { title: "Event", forms: ["text"], where: (name) => `/api/events?${new URLSearchParams({ type: name })}`, told: (said) => `its id is ${said.id}` },
};

export function publishing() {
  const kind = el("select", { id: "publish-kind", change: adapt }, ...Object.entries(PLACES).map(([value, each]) => el("option", { value }, each.title)));
  const name = el("input", { id: "publish-name", type: "text", required: true, spellcheck: "false", autocomplete: "off" });
  const form = el("select", { id: "publish-form" });
  const body = el("textarea", { id: "publish-body", rows: 2, spellcheck: "false", placeholder: "message (Ctrl+Enter)", keydown: press });
  const button = el("button", { type: "submit", class: "primary" }, "Publish");
  const element = el(
    "form",
    { class: "publish", "aria-label": "Publish", submit: (event) => event.preventDefault() || send() },
    el("label", { for: "publish-kind", class: "unseen" }, "Publish to"),
    kind,
    el("label", { for: "publish-name", class: "unseen" }, "Name"),
    name,
    el("label", { for: "publish-form", class: "unseen" }, "Format of the message"),
    form,
    el("label", { for: "publish-body", class: "unseen" }, "Message"),
    body,
    button,
  );
  adapt();

  function adapt() {
    form.replaceChildren(...PLACES[kind.value].forms.map((each) => el("option", { value: each }, FORMS[each].title)));
    name.placeholder = kind.value === "event" ? "type" : "name";
  }

  function press(event) {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    if (element.reportValidity()) send();
  }

  function send() {
    const place = PLACES[kind.value];
    const how = FORMS[form.value];
    button.disabled = true;
    doing(
      () => Promise.resolve().then(() => post(place.where(name.value, how), body.value, { "Content-Type": how.type })),
      (said) => `Published to ${shown(name.value)}: ${place.told(said)}.`,
    ).finally(() => {
      button.disabled = false;
    });
  }

  return {
    element,
    // What the user may not do is not offered.
    offer() {
      element.hidden = !allowedSome("publish") && !allowedSome("append");
    },
    // What is followed is where one will want to publish.
    aim(to, called) {
      kind.value = { channel: "channel", topic: "topic", events: "event" }[to] ?? "channel";
      name.value = to === "pattern" || to === "events" ? "" : called;
      adapt();
    },
  };
}
