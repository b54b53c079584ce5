// What changes something and is asked twice: pausing, resuming and requeueing.

import { post } from "./api.js";
import { question } from "./dialog.js";
import { el, path, shown } from "./dom.js";
import { doing } from "./notices.js";
import { count, some } from "./numbers.js";

const TOPICS = "/api/topics/";

// Each promises whether it was done.
export async function pauseOrResumeTopic(topic) {
  const name = shown(topic.name);
  const verb = topic.paused ? "resume" : "pause";
  const text = topic.paused
    ? `The groups of ${name} that are not paused themselves go on.`
    : `No group of ${name} is given anything new until it is resumed. Publishing, and what is in flight, go on.`;
  return change(verb, `topic ${name}`, text, () => path(TOPICS, topic.name, `/${verb}`));
}

export async function pauseOrResumeGroup(group) {
  const name = `${shown(group.name)} of ${shown(group.topic)}`;
  const verb = group.paused ? "resume" : "pause";
  const text = group.paused
    ? `Its consumers are given again what comes. Entries that wait: ${count(group.lag)}.${group.topicPaused ? " The topic is still paused." : ""}`
    : "Its consumers are given nothing new until it is resumed. What is in flight may still be acknowledged.";
  return change(verb, `group ${name}`, text, () => groupPath(group, verb));
}

async function change(verb, what, text, where) {
  const Verb = verb === "pause" ? "Pause" : "Resume";
  const answer = await question({ title: `${Verb} ${what}?`, text, yes: Verb, isDanger: verb === "pause" });
  return answer !== null && doing(() => post(where()), () => `${verb === "pause" ? "Paused" : "Resumed"} ${what}.`);
}

export async function requeueGroup(group) {
  const name = `${shown(group.name)} of ${shown(group.topic)}`;
  const answer = await question({
    title: `Requeue group ${name}?`,
    text: `In flight: ${some(group.pending, "entry", "entries")}. What is taken from its consumer is delivered again, so what a consumer is working on just now may be done twice.`,
    fields: [
      el(
        "label",
        { class: "field" },
        "Delay in ms",
        el("input", { name: "delay", type: "number", min: 0, max: 31536000000, step: 1, value: 0, inputmode: "numeric" }),
      ),
    ],
    yes: "Requeue",
    isDanger: true,
  });
  if (answer === null) return false;
  const said = JSON.stringify({ delayMs: Number(answer.delay) });
  return doing(
    () => post(groupPath(group, "requeue"), said, { "Content-Type": "application/json" }),
    (said) => `Requeued ${some(said.requeued, "entry", "entries")} of ${name}.`,
  );
}

function groupPath(group, verb) {
  return path(path(TOPICS, group.topic, "/groups/"), group.name, `/${verb}`);
}
