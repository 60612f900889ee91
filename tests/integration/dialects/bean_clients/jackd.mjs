// jackd, unmodified: put, reserve, touch, release, bury, kick, delete, stats. PORT and NODE_MODULES are in the environment.
import { createRequire } from 'node:module'

const module = createRequire(process.env.NODE_MODULES + '/')('jackd')
const Jackd = module.default ?? module
const client = new Jackd()
await client.connect({ host: '127.0.0.1', port: Number(process.env.PORT) })
await client.use('jackd')
await client.watch('jackd')
await client.ignore('default')
const id = await client.put({ hello: 'wörld' }, { priority: 5, ttr: 30 })
const job = await client.reserve()
await client.touch(job.id)
await client.release(job.id)
const again = await client.reserveWithTimeout(10)
await client.bury(again.id, 5)
const kicked = await client.kick(10)
const last = await client.reserve()
const stats = await client.statsJob(last.id)
await client.delete(last.id)
const tube = await client.statsTube('jackd')
let none
try {
  await client.reserveWithTimeout(0)
} catch (e) {
  none = e.message
}
console.log(JSON.stringify({
  same: new Set([id, job.id, again.id, last.id].map(String)).size,
  payload: String(last.payload),
  kicked: Number(kicked),
  ready: /current-jobs-ready: 0/.test(tube) ? 0 : tube,
  ttr: /ttr: 30\n/.test(stats) ? 30 : stats,
  none,
}))
await client.disconnect()
