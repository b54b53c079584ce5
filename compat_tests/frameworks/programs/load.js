// As load.py: numbered jobs for a test that kills workers and the server meanwhile.
const fs = require('node:fs')

const AHEAD = 20
const A_JOB_MS = 20
const sleep = ms => new Promise(resolve => setTimeout(resolve, ms))
const note = (file, number) => fs.appendFileSync(file, `${number}\n`)
const count = file => fs.existsSync(file) ? fs.readFileSync(file, 'latin1').split('\n').length - 1 : 0

async function run (number) {
  await sleep(A_JOB_MS)
  note('done', number)
}

async function offer (enqueue) {
  const before = fs.existsSync('acknowledged') ? fs.readFileSync('acknowledged', 'latin1').trim().split('\n').map(Number) : []
  for (let number = Math.max(-1, ...before) + 1; !fs.existsSync('enough');) {
    if (count('acknowledged') - count('done') >= AHEAD) {
      await sleep(5)
      continue
    }
    try {
      await enqueue(number)
      note('acknowledged', number)
    } catch (error) {
      console.log('refused', number, String(error))
      await sleep(100)
    }
    number++
  }
}

module.exports = { run, offer }
