// As state_program.py: sessions of connect-redis and limits of rate-limiter-flexible.
const assert = require('node:assert/strict')
const fs = require('node:fs')
const session = require('express-session')
const Redis = require('ioredis')
const { createClient } = require('redis')
const { RedisStore } = require('connect-redis')
const { RateLimiterRedis } = require('rate-limiter-flexible')

const url = process.env.REDIS_URL
const complain = error => console.log('disturbed', String(error))

async function main (part) {
  const client = await createClient({ url }).on('error', complain).connect()
  const store = new RedisStore({ client, prefix: 'web:', ttl: 600 })
  assert.ok(store instanceof session.Store)
  const limiter = new RateLimiterRedis({ storeClient: new Redis(url).on('error', complain), points: 5, duration: 3600 })
  const find = async consumed => {
    assert.equal((await store.get('visitor')).count, 3)
    assert.equal((await limiter.consume('me')).consumedPoints, consumed)
  }
  if (part === 'check') return find(5)
  await store.set('visitor', { cookie: {}, count: 3 })
  for (let n = 0; n < 3; n++) await limiter.consume('me')
  console.log('kept')
  while (!fs.existsSync('go on')) await new Promise(resolve => setTimeout(resolve, 20))
  await find(4)
  console.log('found')
  await new Promise(resolve => setTimeout(resolve, 3600000))
}

main(process.argv[2]).then(() => process.exit(0), error => {
  console.error(error)
  process.exit(1)
})
