// node-redis: prints one line of JSON per thing that happened. What it prints against two servers must be the same.
// Usage: node node-redis.mjs PORT PROTOCOL
import { createClient } from "redis";
import { fail, say, tls, until } from "./story.mjs";

const [port, protocol] = process.argv.slice(2).map(Number);
const client = createClient({ RESP: protocol, name: "story", socket: { port, tls: tls !== undefined, ...tls, reconnectStrategy: () => 20 } });
client.on("error", fail);
await client.connect();
say("ping", await client.ping());
say("name", await client.clientGetName());

// -- publish, subscribe, psubscribe, ssubscribe
const subscriber = client.duplicate({ name: "subscriber" });
subscriber.on("error", () => {});
await subscriber.connect();
const heard = [];
const hear = (kind) => (message, channel) => heard.push([kind, channel, message]);
await subscriber.subscribe(["a", "b"], hear("message"));
await subscriber.pSubscribe("a*", hear("pmessage"));
await subscriber.sSubscribe("s", hear("smessage"));
say("publish", await client.publish("a", "1"), await client.publish("b", "2"), await client.publish("c", "3"));
say("spublish", await client.sPublish("s", "4"));
await until(() => heard.length === 4);
say("heard", heard.splice(0));
say("channels", (await client.pubSubChannels()).sort(), await client.pubSubNumSub(["a", "b"]));
if (protocol === 3) say("while subscribed", await subscriber.ping(), await subscriber.echo("x"));

// -- binary
const bytes = Buffer.from([0, 255, 13, 10, 128]);
const binary = new Promise((resolve) => subscriber.subscribe("raw", resolve, true));
await until(async () => (await client.pubSubNumSub(["raw"])).raw === 1);
say("binary", await client.publish("raw", bytes), (await binary).equals(bytes));

// -- killed, it comes back and holds its names
const [id] = (await client.sendCommand(["CLIENT", "LIST", "TYPE", "pubsub"])).match(/(?<=id=)\d+/);
const back = new Promise((resolve) => subscriber.once("ready", resolve));
say("killed", await client.sendCommand(["CLIENT", "KILL", "ID", id]));
await back;
await until(async () => (await client.pubSubNumPat()) === 1 && (await client.pubSubNumSub(["b"])).b === 1);
say("publish", await client.publish("a", "back"));
await until(() => heard.length === 2);
say("heard", heard.splice(0));

// -- transactions
say("exec", await client.multi().publish("a", "m").ping().exec());
await until(() => heard.length === 2);
say("heard", heard.splice(0));
say("refused", await client.sendCommand(["NOPE", "x"]).catch((error) => error.message));
say("aborted", await client.multi().addCommand(["NOPE"]).exec().catch((error) => error.message));

await subscriber.unsubscribe("a");
await subscriber.pUnsubscribe();
await subscriber.sUnsubscribe();
say("left", await client.publish("a", "x"), await client.publish("b", "y"), await client.sPublish("s", "z"));
await subscriber.close();
await client.close();
say("closed", subscriber.isOpen, client.isOpen);
