// connect-redis, rate-limiter-flexible, graphql-redis-subscriptions, and Socket.IO with both of its adapters.
const assert = require('node:assert/strict')
const http = require('node:http')
const Redis = require('ioredis')
const { createClient } = require('redis')

const url = process.env.REDIS_URL
const listen = server => new Promise(resolve => server.listen(0, '127.0.0.1', () => resolve(server.address().port)))

async function sessions () {
  const express = require('express')
  const session = require('express-session')
  const { RedisStore } = require('connect-redis')
  const client = await createClient({ url }).connect()
  const app = express()
  const store = new RedisStore({ client, prefix: 'web:', ttl: 60 })
  app.use(session({ store, secret: 'secret', resave: false, saveUninitialized: false }))
  app.get('/', (request, response) => {
    request.session.count = (request.session.count ?? 0) + 1
    response.send(String(request.session.count))
  })
  app.get('/leave', (request, response) => request.session.destroy(() => response.send('')))
  const base = `http://127.0.0.1:${await listen(http.createServer(app))}`
  const first = await fetch(base)
  const headers = { cookie: first.headers.get('set-cookie').split(';')[0] }
  assert.equal(await first.text(), '1')
  assert.equal(await (await fetch(base, { headers })).text(), '2')
  assert.equal((await store.all()).length, 1)
  await (await fetch(base + '/leave', { headers })).text()
  assert.equal(await (await fetch(base, { headers })).text(), '1')
  assert.ok(await store.length() <= 1)
}

async function limits () {
  const { RateLimiterRedis, RLWrapperTimeouts } = require('rate-limiter-flexible')
  assert.ok(RateLimiterRedis, RLWrapperTimeouts)
  for (const [name, storeClient] of [['io', new Redis(url)], ['node', await createClient({ url }).connect()]]) {
    const useRedisPackage = name === 'node'
    const limiter = new RateLimiterRedis({ storeClient, useRedisPackage, keyPrefix: name, points: 5, duration: 60 })
    const answers = await Promise.allSettled([...Array(8)].map(() => limiter.consume('me')))
    assert.equal(answers.filter(answer => answer.status === 'fulfilled').length, 5)
    assert.equal((await limiter.get('me')).consumedPoints, 8)
    await limiter.delete('me')
    assert.equal((await limiter.consume('me')).remainingPoints, 4)
  }
}

async function subscriptions () {
  const { RedisPubSub } = require('graphql-redis-subscriptions')
  const { graphql, subscribe, parse, GraphQLSchema, GraphQLObjectType, GraphQLString } = require('graphql')
  const make = () => new RedisPubSub({ publisher: new Redis(url), subscriber: new Redis(url) })
  const [one, two] = [make(), make()]
  const query = new GraphQLObjectType({ name: 'Query', fields: { ok: { type: GraphQLString, resolve: () => 'ok' } } })
  const said = { type: GraphQLString, subscribe: () => one.asyncIterableIterator ? one.asyncIterableIterator('said') : one.asyncIterator('said') }
  const schema = new GraphQLSchema({ query, subscription: new GraphQLObjectType({ name: 'S', fields: { said } }) })
  assert.equal((await graphql({ schema, source: '{ ok }' })).data.ok, 'ok')
  const events = await subscribe({ schema, document: parse('subscription { said }') })
  const next = events.next()
  const again = setInterval(() => two.publish('said', { said: 'hello' }), 50)
  assert.equal((await next).value.data.said, 'hello')
  clearInterval(again)
  const seen = new Promise(resolve => one.subscribe('room.*', resolve, { pattern: true }))
  const more = setInterval(() => two.publish('room.1', { n: 1 }), 50)
  assert.deepEqual(await seen, { n: 1 })
  clearInterval(more)
}

async function sockets (adapterOf) {
  const { Server } = require('socket.io')
  const { io } = require('socket.io-client')
  const nodes = []
  for (let n = 0; n < 2; n++) {
    const server = http.createServer()
    const node = new Server(server, { adapter: await adapterOf() })
    node.on('connection', socket => socket.on('join', (room, done) => { socket.join(room); done() }))
    nodes.push({ node, port: await listen(server) })
  }
  const clients = nodes.map(({ port }) => io(`http://127.0.0.1:${port}`, { transports: ['websocket'] }))
  await Promise.all(clients.map(client => new Promise(resolve => client.on('connect', resolve))))
  const hear = client => new Promise(resolve => client.once('said', resolve))
  const until = async condition => { while (!await condition()) await new Promise(resolve => setTimeout(resolve, 50)) }
  await until(async () => (await nodes[0].node.fetchSockets()).length === 2)
  const both = clients.map(hear)
  nodes[0].node.emit('said', 'all')
  assert.deepEqual(await Promise.all(both), ['all', 'all'])
  await clients[1].emitWithAck('join', 'room')
  await until(async () => (await nodes[0].node.in('room').fetchSockets()).length === 1)
  const one = hear(clients[1])
  nodes[0].node.to('room').emit('said', 'room')
  assert.equal(await one, 'room')
  clients.forEach(client => client.close())
}

async function socketIo () {
  const { createAdapter } = require('@socket.io/redis-adapter')
  const publisher = new Redis(url)
  await sockets(async () => createAdapter(publisher, publisher.duplicate()))
  const sharded = require('@socket.io/redis-adapter').createShardedAdapter
  const client = await createClient({ url }).connect()
  await sockets(async () => sharded(client, await client.duplicate().connect()))
}

async function socketIoStreams () {
  const { createAdapter } = require('@socket.io/redis-streams-adapter')
  await sockets(async () => createAdapter(await createClient({ url }).connect()))
}

const parts = { sessions, limits, subscriptions, socketIo, socketIoStreams }
parts[process.argv[2]]().then(() => {
  console.log('done')
  process.exit(0)
}, error => {
  console.error(error)
  process.exit(1)
})
