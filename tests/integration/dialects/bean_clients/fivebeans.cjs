// fivebeans, unmodified: its client, then its worker. PORT and NODE_MODULES are in the environment.
const beans = require('module').createRequire(process.env.NODE_MODULES + '/')('fivebeans')
const at = ['127.0.0.1', Number(process.env.PORT)]

const call = (client, name, ...args) => new Promise((resolve, reject) =>
  client[name](...args, (err, ...values) => (err ? reject(new Error(`${name}: ${err}`)) : resolve(values))))

async function main(client) {
  await call(client, 'use', 'fivebeans')
  await call(client, 'watch', 'fivebeans')
  await call(client, 'ignore', 'default')
  const [id] = await call(client, 'put', 1, 0, 60, 'by hand')
  const [got, payload] = await call(client, 'reserve')
  await call(client, 'bury', got, 1)
  const [kicked] = await call(client, 'kick', 5)
  const [peeked] = await call(client, 'peek_ready')
  await call(client, 'destroy', id)
  const [tubes] = await call(client, 'list_tubes')
  const [stats] = await call(client, 'stats_tube', 'fivebeans')
  for (let i = 0; i < 5; i++) await call(client, 'put', 1, 0, 60, JSON.stringify({ type: 'add', payload: i }))
  const seen = await work()
  console.log(JSON.stringify({
    same: got === id && peeked === id, payload: String(payload), kicked: Number(kicked), tubes: tubes.includes('fivebeans'),
    ready: stats['current-jobs-ready'], seen,
  }))
  process.exit(0)
}

function work() {
  return new Promise((resolve) => {
    const seen = []
    const add = { type: 'add', work: (n, done) => { seen.push(n); done('success'); if (seen.length === 5) resolve(seen) } }
    const worker = new beans.worker({ id: 'w', host: at[0], port: at[1], handlers: { add }, ignoreDefault: true })
    worker.on('error', (e) => { console.error(e); process.exit(1) })
    worker.start(['fivebeans'])
  })
}

const client = new beans.client(...at)
client.on('connect', () => main(client).catch((e) => { console.error(e); process.exit(1) }))
client.on('error', (e) => { console.error(e); process.exit(1) })
client.connect()
