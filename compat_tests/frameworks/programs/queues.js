// BullMQ, Bull and bee-queue: `node queues.js KIND worker` in one process, `node queues.js KIND client|killed|offer` in another.
const assert = require('node:assert/strict')
const fs = require('node:fs')

const [kind, part] = process.argv.slice(2)
const port = Number(process.env.REDIS_PORT)
const load = require('./load')
const tell = error => console.log('error', String(error)) // who does not listen to errors ends by them
const connection = { host: '127.0.0.1', port, maxRetriesPerRequest: null }

async function work (job) {
  if ('number' in job.data) return load.run(job.data.number)
  if (job.data.slow && !fs.existsSync('begun')) {
    fs.writeFileSync('begun', '')
    console.log('slow begins')
    await new Promise(resolve => setTimeout(resolve, 3600000))
  }
  if (job.data.slow) return 'done by another'
  const attempt = job.attemptsMade ?? 0
  if (job.data.flaky && !fs.existsSync('tried')) {
    fs.writeFileSync('tried', '')
    throw new Error(`once, at attempt ${attempt}`)
  }
  return job.data.flaky ? 'mended' : job.data.a + job.data.b
}

async function bullmq () {
  const { Queue, QueueEvents, Worker, FlowProducer } = require('bullmq')
  if (part === 'worker') {
    const worker = new Worker('jobs', work, { connection, concurrency: 4, lockDuration: 1000, stalledInterval: 500 })
    worker.on('error', tell)
    await worker.waitUntilReady()
    return
  }
  const queue = new Queue('jobs', { connection })
  queue.on('error', tell)
  if (part === 'offer') return load.offer(number => queue.add('numbered', { number }))
  const events = new QueueEvents('jobs', { connection, lastEventId: '0-0' }) // its first read may come late
  await events.waitUntilReady()
  if (part === 'killed') {
    const job = await queue.add('slow', { slow: true })
    console.log('result:', await job.waitUntilFinished(events, 120000))
  } else {
    const jobs = await queue.addBulk([...Array(20).keys()].map(n => ({ name: 'add', data: { a: n, b: 1 } })))
    assert.deepEqual(await Promise.all(jobs.map(job => job.waitUntilFinished(events, 60000))), jobs.map((_, n) => n + 1))
    const mended = await queue.add('flaky', { flaky: true }, { attempts: 3, backoff: { type: 'fixed', delay: 100 } })
    assert.equal(await mended.waitUntilFinished(events, 60000), 'mended')
    const late = await queue.add('add', { a: 2, b: 2 }, { delay: 300, priority: 2 })
    assert.equal(await late.waitUntilFinished(events, 60000), 4)
    const flow = await new FlowProducer({ connection }).add({
      name: 'add',
      queueName: 'jobs',
      data: { a: 3, b: 3 },
      children: [{ name: 'add', queueName: 'jobs', data: { a: 4, b: 4 } }]
    })
    assert.equal(await flow.job.waitUntilFinished(events, 60000), 6)
    assert.deepEqual(Object.values(await flow.job.getChildrenValues()), [8])
    await queue.upsertJobScheduler('often', { every: 200 }, { name: 'add', data: { a: 1, b: 1 } })
    const before = await queue.getCompletedCount()
    while (await queue.getCompletedCount() < before + 3) await new Promise(resolve => setTimeout(resolve, 50))
    await queue.removeJobScheduler('often')
    await queue.obliterate({ force: true })
  }
}

async function bull () {
  const Queue = require('bull')
  const queue = new Queue('jobs', { redis: { ...connection, enableReadyCheck: false }, settings: { lockDuration: 1000, stalledInterval: 500 } })
  queue.on('error', tell)
  await queue.isReady()
  if (part === 'worker') {
    queue.process(4, work)
  } else if (part === 'killed') {
    const job = await queue.add({ slow: true })
    console.log('result:', await job.finished())
  } else if (part === 'offer') {
    await load.offer(number => queue.add({ number }))
  } else {
    const jobs = await Promise.all([...Array(20).keys()].map(n => queue.add({ a: n, b: 1 })))
    assert.deepEqual(await Promise.all(jobs.map(job => job.finished())), jobs.map((_, n) => n + 1))
    const mended = await queue.add({ flaky: true }, { attempts: 3, backoff: 100 })
    assert.equal(await mended.finished(), 'mended')
    assert.equal(await (await queue.add({ a: 2, b: 2 }, { delay: 300 })).finished(), 4)
    assert.equal((await queue.getJobCounts()).failed, 0)
  }
}

async function bee () {
  const Queue = require('bee-queue')
  const options = { redis: { host: '127.0.0.1', port }, isWorker: part === 'worker', stallInterval: 1000, activateDelayedJobs: true }
  const queue = new Queue('jobs', options)
  queue.on('error', tell)
  await queue.ready()
  const finished = job => new Promise((resolve, reject) => job.on('succeeded', resolve).on('failed', reject))
  if (part === 'worker') {
    await queue.checkStalledJobs(1000)
    queue.process(4, work)
  } else if (part === 'killed') {
    const job = queue.createJob({ slow: true })
    const result = finished(job)
    await job.save()
    console.log('result:', await result)
  } else if (part === 'offer') {
    await load.offer(number => queue.createJob({ number }).save())
  } else {
    const jobs = [...Array(20).keys()].map(n => queue.createJob({ a: n, b: 1 }))
    const results = jobs.map(finished)
    await queue.saveAll(jobs)
    assert.deepEqual(await Promise.all(results), jobs.map((_, n) => n + 1))
    const mended = queue.createJob({ flaky: true }).retries(3)
    const result = finished(mended)
    await mended.save()
    assert.equal(await result, 'mended')
    const late = queue.createJob({ a: 2, b: 2 }).delayUntil(Date.now() + 300)
    const value = finished(late)
    await late.save()
    assert.equal(await value, 4)
  }
}

({ bullmq, bull, bee })[kind]().then(() => {
  if (part === 'worker') return console.log('ready')
  console.log('done')
  process.exit(0)
}, error => {
  console.error(error)
  process.exit(1)
})
