// ioredis on topics: prints one line of JSON per thing that happened. What it prints against two servers must be the same.
// Usage: node ioredis-streams.mjs PORT PROTOCOL
import Redis from "ioredis";
import { fail, ready, say, tls, until } from "./story.mjs";

const [port, protocol] = process.argv.slice(2).map(Number);
const client = new Redis({ port, protocol, tls });
client.on("error", fail);
await ready(client);
await client.flushall();
const blocked = async (count) => (await client.info("clients")).includes(`blocked_clients:${count}\r`);

// -- appending and reading
say("xadd", await client.xadd("log", "1-1", "a", "1"), await client.xadd("log", "1-*", "b", "2", "c", "3"));
say("xadd", await client.xadd("log", "MAXLEN", "~", 100, "2-0", "d", "4"), await client.xlen("log"));
say("xrange", await client.xrange("log", "-", "+", "COUNT", 2), await client.xrevrange("log", "+", "(1-1"));
say("xread", await client.xread("COUNT", 1, "STREAMS", "log", "none", "1-1", "0"));
say("nothing", await client.xread("STREAMS", "log", "2-0"));

// -- blocked readers
const reader = client.duplicate();
await ready(reader);
const coming = reader.xread("BLOCK", 15000, "STREAMS", "log", "$");
await until(() => blocked(1));
await client.xadd("log", "3-0", "e", "5");
say("came", await coming, await reader.xread("BLOCK", 5, "STREAMS", "log", "$"));

// -- a group and its workers
say("xgroup", await client.xgroup("CREATE", "log", "g", "0"), await client.xgroup("CREATE", "new", "g", "$", "MKSTREAM"));
const work = async (worker, name, done) => {
  for (;;) {
    const reply = await worker.xreadgroup("GROUP", "g", name, "COUNT", 3, "BLOCK", 200, "STREAMS", "log", ">");
    if (reply === null) return;
    for (const [id] of reply[0][1]) {
      done.push(id);
      await worker.xack("log", "g", id);
    }
  }
};
const done = [];
const other = client.duplicate();
await Promise.all([work(reader, "one", done), work(other, "two", done)]);
say("done", done.sort(), await client.xpending("log", "g"));
const pipeline = client.pipeline();
for (let number = 0; number < 5; number++) pipeline.xadd("log", `4-${number}`, "n", number);
say("pipeline", await pipeline.exec());
await client.xreadgroup("GROUP", "g", "gone", "COUNT", 4, "STREAMS", "log", ">");
say("xclaim", await client.xclaim("log", "g", "heir", 0, "4-0", "JUSTID"), await client.xdel("log", "4-1"));
say("xautoclaim", await client.xautoclaim("log", "g", "heir", 0, "-", "COUNT", 10));
say("refused", await client.xadd("log", "1-1", "a", "1").catch((error) => error.message));
say("no group", await client.xreadgroup("GROUP", "no", "c", "STREAMS", "log", ">").catch((error) => error.message));

// -- binary, transactions, keys
const bytes = Buffer.from([0, 255, 13, 10, 128]);
await client.xadd("raw", "1-1", bytes, bytes);
const [[, fields]] = await client.xrangeBuffer("raw", "-", "+");
say("binary", fields.map((field) => field.equals(bytes)));
say("exec", await client.multi().xadd("log", "5-0", "a", "1").xlen("log").set("text", "x").exec());
const found = [];
for await (const keys of client.scanStream({ match: "*", type: "stream" })) found.push(...keys);
say("scanned", found.sort());
say("strings", await client.set("count", 1, "NX"), await client.set("count", 2, "NX"), await client.incr("count"));
say("wrong type", await client.xlen("count").catch((error) => error.message));
await other.quit();
await reader.quit();
say("quit", "OK", await client.quit());
