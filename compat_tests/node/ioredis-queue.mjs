// ioredis's cluster client on a queue that is spread over several members: it asks for the queue's own key, and knows
// nothing of segments.
import { Cluster } from "ioredis";

const [port, queue, pushes, pops] = process.argv.slice(2);
const cluster = new Cluster([{ host: "127.0.0.1", port: Number(port) }], { redisOptions: { connectTimeout: 5000 } });
const call = (...words) => cluster.call(...words);

for (let number = 0; number < Number(pushes); number += 1) {
  await call("QUEUE.PUSH", queue, `from ioredis ${number}`);
}
const found = [];
while (found.length < Number(pops)) {
  const entry = await call("QUEUE.POP", queue, "ioredis", "BLOCK", "1000");
  if (entry !== null) found.push(entry[1][1]);
}
console.log(JSON.stringify(found));
cluster.disconnect();
