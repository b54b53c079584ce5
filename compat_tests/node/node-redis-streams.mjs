// node-redis on topics: prints one line of JSON per thing that happened. What it prints against two servers must be the
// same. Usage: node node-redis-streams.mjs PORT PROTOCOL
import { createClient } from "redis";
import { fail, say, tls, until } from "./story.mjs";

const [port, protocol] = process.argv.slice(2).map(Number);
const client = createClient({ RESP: protocol, socket: { port, tls: tls !== undefined, ...tls } });
client.on("error", fail);
await client.connect();
await client.flushAll();
const blocked = async (count) => (await client.info("clients")).includes(`blocked_clients:${count}\r`);

// -- appending and reading
say("xAdd", await client.xAdd("log", "1-1", { a: "1" }), await client.xAdd("log", "1-*", { b: "2", c: "3" }));
const trim = { TRIM: { strategy: "MAXLEN", strategyModifier: "~", threshold: 100 } };
say("xAdd", await client.xAdd("log", "2-0", { d: "4" }, trim), await client.xLen("log"));
say("xRange", await client.xRange("log", "-", "+", { COUNT: 2 }), await client.xRevRange("log", "+", "(1-1"));
say("xRead", await client.xRead([{ key: "log", id: "1-1" }, { key: "none", id: "0" }], { COUNT: 1 }));
say("nothing", await client.xRead({ key: "log", id: "2-0" }));

// -- blocked readers
const reader = client.duplicate();
await reader.connect();
const coming = reader.xRead({ key: "log", id: "$" }, { BLOCK: 15000 });
await until(() => blocked(1));
await client.xAdd("log", "3-0", { e: "5" });
say("came", await coming, await reader.xRead({ key: "log", id: "$" }, { BLOCK: 5 }));

// -- a group and its workers
say("xGroup", await client.xGroupCreate("log", "g", "0"), await client.xGroupCreate("new", "g", "$", { MKSTREAM: true }));
const [taken] = await client.xReadGroup("g", "one", { key: "log", id: ">" }, { COUNT: 3 });
say("taken", taken.messages ?? taken);
say("xAck", await client.xAck("log", "g", ["1-1", "1-2", "9-9"]), await client.xPending("log", "g"));
say("xClaim", await client.xClaim("log", "g", "heir", 0, ["2-0"]), await client.xClaimJustId("log", "g", "heir", 0, ["2-0"]));
await client.xDel("log", "2-0");
say("xAutoClaim", await client.xAutoClaim("log", "g", "heir", 0, "-"));
say("xInfo", (await client.xInfoGroups("log")).map((group) => [group.name, group.pending, group.lag]));
say("xTrim", await client.xTrim("log", "MAXLEN", 1), await client.xLen("log"));
say("refused", await client.xAdd("log", "1-1", { a: "1" }).catch((error) => error.message));
const nobody = { key: "log", id: ">" };
say("no group", await client.xReadGroup("no", "c", nobody).catch((error) => error.message));

// -- transactions and keys
say("exec", await client.multi().xAdd("log", "5-0", { a: "1" }).xLen("log").set("text", "x").exec());
const found = [];
for await (const keys of client.scanIterator({ TYPE: "stream" })) found.push(...keys);
say("scanned", found.sort());
say("strings", await client.set("count", "1", { NX: true }), await client.set("count", "2", { NX: true }));
say("strings", await client.incr("count"), await client.getDel("count"), await client.get("count"));
say("wrong type", await client.xLen("text").catch((error) => error.message));
await reader.close();
await client.close();
say("closed", reader.isOpen, client.isOpen);
