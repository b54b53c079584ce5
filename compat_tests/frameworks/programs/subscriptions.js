// As subscriptions_program.py: `KIND hear` in one process, `KIND tell` in another.
const fs = require('node:fs')
const http = require('node:http')
const Redis = require('ioredis')
const { createClient } = require('redis')

const url = process.env.REDIS_URL
const [kind, part] = process.argv.slice(2)
const PAUSE_MS = 50
const sleep = ms => new Promise(resolve => setTimeout(resolve, ms))
const heard = number => console.log('heard', number)
const complain = error => console.log('disturbed', String(error)) // who does not listen to errors ends by them
const ioredis = () => new Redis(url, { maxRetriesPerRequest: null }).on('error', complain)
const nodeRedis = () => createClient({ url }).on('error', complain).connect()

async function tell (send) {
  for (let number = 0; !fs.existsSync('enough'); number++) {
    try {
      await send(number)
      console.log('told', number)
    } catch (error) {
      console.log('refused', number, String(error))
    }
    await sleep(PAUSE_MS)
  }
}

async function sockets (adapter) {
  const { Server } = require('socket.io')
  const server = http.createServer()
  const node = new Server(server, { adapter })
  if (part === 'tell') return tell(number => node.emit('number', number))
  await new Promise(resolve => server.listen(0, '127.0.0.1', resolve))
  const client = require('socket.io-client').io(`http://127.0.0.1:${server.address().port}`, { transports: ['websocket'] })
  client.on('number', heard)
  await new Promise(resolve => client.on('connect', resolve))
  console.log('hears')
  await new Promise(() => {})
}

const kinds = {
  async socketIo () {
    await sockets(require('@socket.io/redis-adapter').createAdapter(ioredis(), ioredis()))
  },
  async socketIoSharded () {
    const client = await nodeRedis()
    const subscriber = client.duplicate().on('error', complain)
    await sockets(require('@socket.io/redis-adapter').createShardedAdapter(client, await subscriber.connect()))
  },
  async socketIoStreams () {
    await sockets(require('@socket.io/redis-streams-adapter').createAdapter(await nodeRedis()))
  },
  async graphql () {
    const { RedisPubSub } = require('graphql-redis-subscriptions')
    const pubsub = new RedisPubSub({ publisher: ioredis(), subscriber: ioredis() })
    if (part === 'tell') return tell(number => pubsub.publish('numbers', number))
    await pubsub.subscribe('numbers', heard)
    console.log('hears')
    await new Promise(() => {})
  }
}

kinds[kind]().then(() => process.exit(0), error => {
  console.error(error)
  process.exit(1)
})
