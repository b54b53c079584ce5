// A BullMQ worker and its jobs: `node bullmq_jobs.js URL FOLDER JOBS`. It speaks as celery_tasks.py does.
const { Queue, Worker } = require('bullmq')
const readline = require('node:readline')

const [url, , jobs] = process.argv.slice(2)
const CONCURRENCY = 10
const AT_ONCE = 500
const { hostname: host, port } = new URL(url)
const connection = { host, port: Number(port), maxRetriesPerRequest: null }
const say = what => console.log(JSON.stringify(what))

async function main () {
  const lines = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]()
  say('ready')
  for (let number = 0; !(await lines.next()).done; number++) {
    const queue = new Queue(`jobs ${number}`, { connection })
    for (let left = Number(jobs); left > 0; left -= AT_ONCE) {
      await queue.addBulk([...Array(Math.min(left, AT_ONCE)).keys()].map(n => ({ name: 'add', data: { a: n, b: 1 } })))
    }
    const worker = new Worker(queue.name, async job => job.data.a + job.data.b, { connection, concurrency: CONCURRENCY, autorun: false })
    await worker.waitUntilReady()
    say('sent')
    await lines.next()
    const begin = performance.now()
    await new Promise((resolve, reject) => {
      let done = 0
      worker.on('completed', () => { if (++done === Number(jobs)) resolve() })
      worker.on('failed', (job, error) => reject(error))
      worker.on('error', reject)
      worker.run()
    })
    say((performance.now() - begin) / 1000)
    await worker.close()
    await queue.close()
  }
}

main().then(() => process.exit(0), error => {
  console.error(error)
  process.exit(1)
})
