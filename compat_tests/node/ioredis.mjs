// ioredis: prints one line of JSON per thing that happened. What it prints against two servers must be the same.
// Usage: node ioredis.mjs PORT PROTOCOL
import Redis from "ioredis";
import { fail, ready, say, tls, until } from "./story.mjs";

const [port, protocol] = process.argv.slice(2).map(Number);
const client = new Redis({ port, protocol, tls, connectionName: "story", retryStrategy: () => 20 });
client.on("error", fail);
await ready(client);
say("ping", await client.ping());
say("name", await client.client("GETNAME"));

// -- publish, subscribe, psubscribe, ssubscribe
const subscriber = client.duplicate({ connectionName: "subscriber" });
subscriber.on("error", () => {});
const heard = [];
subscriber.on("message", (channel, message) => heard.push(["message", channel, message]));
subscriber.on("pmessage", (pattern, channel, message) => heard.push(["pmessage", pattern, channel, message]));
subscriber.on("smessage", (channel, message) => heard.push(["smessage", channel, message]));
say("subscribe", await subscriber.subscribe("a", "b"));
say("psubscribe", await subscriber.psubscribe("a*"));
say("ssubscribe", await subscriber.ssubscribe("s"));
say("publish", await client.publish("a", "1"), await client.publish("b", "2"), await client.publish("c", "3"));
say("spublish", await client.spublish("s", "4"));
await until(() => heard.length === 4);
say("heard", heard.splice(0));
say("channels", (await client.pubsub("CHANNELS")).sort(), await client.pubsub("NUMSUB", "a", "b"));

// -- binary
const bytes = Buffer.from([0, 255, 13, 10, 128]);
const binary = new Promise((resolve) => subscriber.once("messageBuffer", (channel, message) => resolve(message)));
say("binary", await client.publish("a", bytes), (await binary).equals(bytes));
await until(() => heard.length === 2);
heard.length = 0;

// -- killed, it comes back and holds its names
const [id] = (await client.client("LIST", "TYPE", "pubsub")).match(/(?<=id=)\d+/);
const back = new Promise((resolve) => subscriber.once("ready", resolve));
say("killed", await client.client("KILL", "ID", id));
await back;
await until(async () => (await client.pubsub("NUMPAT")) === 1 && (await client.pubsub("NUMSUB", "a", "b"))[3] === 1);
say("publish", await client.publish("a", "back"));
await until(() => heard.length === 2);
say("heard", heard.splice(0));

// -- transactions and pipelines
say("exec", await client.multi().publish("a", "m").ping().exec());
say("pipeline", await client.pipeline().publish("b", "p").echo("e").exec());
await until(() => heard.length === 3);
say("heard", heard.splice(0));
say("refused", await client.call("NOPE", "x").catch((error) => error.message));
say("aborted", await client.multi().call("NOPE").exec().catch((error) => error.message));

say("unsubscribe", await subscriber.unsubscribe("a", "b"));
say("punsubscribe", await subscriber.punsubscribe("a*"));
say("sunsubscribe", await subscriber.sunsubscribe("s"));
say("quit", await subscriber.quit(), await client.quit());
