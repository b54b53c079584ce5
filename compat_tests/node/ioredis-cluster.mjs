// ioredis's Cluster: node ioredis-cluster.mjs PORT, of any member
import { Cluster } from "ioredis"

const say = (...words) => console.log(JSON.stringify(words))
const cluster = new Cluster([{ host: "127.0.0.1", port: Number(process.argv[2]) }])
await cluster.flushall().catch(() => {})
for (const node of cluster.nodes("master")) await node.flushall()
for (let n = 0; n < 100; n++) await cluster.set(`key-${n}`, n)
const values = await Promise.all([...Array(100).keys()].map((n) => cluster.get(`key-${n}`)))
say("values", values)
say("tag", await cluster.mset("{t}a", 1, "{t}b", 2), await cluster.mget("{t}a", "{t}b"))
try {
  await cluster.mget("a", "b", "c")
} catch (error) {
  say("refused", error.message)
}
say("list", await cluster.rpush("list", "a", "b"), await cluster.blpop("list", 1))
say("stream", await cluster.xadd("stream", "1-1", "f", "v"), await cluster.xrange("stream", "-", "+"))
const sizes = await Promise.all(cluster.nodes("master").map((node) => node.dbsize()))
say("spread", sizes.length, sizes.every((size) => size > 0))
say("all", values.filter((value, n) => value === String(n)).length)
cluster.disconnect()
