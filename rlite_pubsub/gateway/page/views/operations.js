// What changes something and is confirmed first: pausing, resuming, requeueing, redelivering, disconnecting a client.

import { post } from "../ask/api.js";
import { question } from "../look/dialog.js";
import { el, path, shown } from "../look/dom.js";
import { doing } from "../look/notices.js";
import { bytes, count, some } from "../look/numbers.js";

const TOPICS = "/api/topics/";

// Each promises whether it was done.
export async function pauseOrResumeTopic(topic) {
  const name = shown(topic.name);
  const verb = topic.paused ? "resume" : "pause";
  const text = topic.paused
    ? `The groups of ${name} are given entries again, unless they are paused themselves.`
    : `No group of ${name} is given new entries until you resume it. Publishing goes on, and so does work on pending entries.`;
  return change(verb, `topic ${name}`, text, () => path(TOPICS, topic.name, `/${verb}`));
}

export async function pauseOrResumeGroup(group) {
  const name = `${shown(group.name)} of ${shown(group.topic)}`;
  const verb = group.paused ? "resume" : "pause";
  const text = group.paused
    ? `Its consumers are given entries again. ${some(group.lag, "entry waits", "entries wait")}.${group.topic_paused ? " The topic itself is still paused." : ""}`
    : "Its consumers are given no new entries until you resume it. They can still acknowledge what is pending.";
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
    text: `${some(group.pending, "entry is", "entries are")} pending: delivered and not acknowledged. They are taken from their consumers and delivered again, so what a consumer is working on right now may be done twice.`,
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
  const said = JSON.stringify({ delay_ms: Number(answer.delay) });
  return doing(
    () => post(groupPath(group, "requeue"), said, { "Content-Type": "application/json" }),
    (said) => `Requeued ${some(said.requeued, "entry", "entries")} of ${name}.`,
  );
}

// Promises whether it was done.
export async function redeliver(group, letters) {
  const name = `${shown(group.name)} of ${shown(group.topic)}`;
  const answer = await question({
    title: `Requeue ${some(letters.length, "dead letter", "dead letters")} of ${name}?`,
    text: "The group is given these entries again, as if for the first time, and they leave the topic of dead letters. Entries that the topic no longer has stay dead letters.",
    yes: "Requeue",
    isDanger: true,
  });
  if (answer === null) return false;
  const said = JSON.stringify({ ids: letters.map((letter) => letter.id) });
  return doing(
    () => post(groupPath(group, "redeliver"), said, { "Content-Type": "application/json" }),
    (told) => `Requeued ${some(told.redelivered, "dead letter")} of ${name}${told.gone ? `; ${count(told.gone)} no longer in the topic` : ""}.`,
  );
}

// Promises whether it was done.
export async function closeConnection(row) {
  const name = `connection ${row.id}${row.name ? ` (${shown(row.name)})` : ""} from ${shown(row.addr)}`;
  const waiting = row.buffered_bytes + row.disk_bytes + row.unsent_bytes;
  const lost = row.durable ? " What waits for its durable subscriber stays." : waiting ? ` ${bytes(waiting)} that wait for it are lost.` : "";
  const answer = await question({
    title: `Disconnect ${name}?`,
    text: `The client is disconnected at once; most clients connect again by themselves.${lost}`,
    yes: "Disconnect",
    isDanger: true,
  });
  if (answer === null) return false;
  return doing(
    async () => {
      const said = JSON.stringify({ process: row.process, id: row.id });
      const told = await post("/api/connections/kill", said, { "Content-Type": "application/json" });
      if (!told.killed) throw new Error(`Not disconnected: process ${row.pid} has no such connection any more, or does not answer.`);
    },
    () => `Disconnected ${name}.`,
  );
}

export function groupPath(group, verb) {
  return path(path(TOPICS, group.topic, "/groups/"), group.name, `/${verb}`);
}
