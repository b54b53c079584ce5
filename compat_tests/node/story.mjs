// What both stories share: saying, waiting for a condition, and failing aloud.
import { readFileSync } from "node:fs";

const PATIENCE_MS = Number(process.env.PATIENCE_MS);

// What a client needs to speak TLS, where the authority's file is named.
export const tls = process.env.STORY_CA ? { ca: readFileSync(process.env.STORY_CA) } : undefined;

export function say(...words) {
  console.log(JSON.stringify(words));
}

export function fail(error) {
  console.error(error);
  process.exit(1);
}

export function ready(client) {
  return new Promise((resolve) => client.once("ready", resolve));
}

export async function until(holds) {
  const deadline = Date.now() + PATIENCE_MS;
  while (!(await holds())) {
    if (Date.now() > deadline) fail(new Error(`it never came to that: ${holds}`));
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}
