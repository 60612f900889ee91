// overview.js - what needs attention first, then what the server does.
import { h } from './dom.js';
import { get, queues, ApiError } from './api.js';
import { chart, spark } from './charts.js';
import { duration, number, plural, rate, short, clock } from './format.js';
import { history, nameOf, noteQueues, rateOf, seriesOf } from './samples.js';
import { pause, pauseText } from './pause.js';
import { act, card, command, empty, head, href, pill, queueLink, sendDialog, tabs } from './ui.js';

const OLD_MS = 5 * 60e3; // a ready message that waits longer needs attention

async function ready(signal) {
  try {
    return await get('/readyz', {}, signal);
  } catch (error) {
    if (error instanceof ApiError) return { status: 'not_ready', reasons: [{ reason: error.name, message: error.message }] };
    throw error;
  }
}

export async function load(route, signal) {
  const range = route.params.range || '1h';
  const [list, state, past] = await Promise.all([queues(signal), ready(signal), history({ range }, signal)]);
  noteQueues(list.rows);
  return { ...list, state, past, range };
}

// Worst first: [{rank, kind, what, why, action}].
function attention({ rows, state, partial }) {
  const found = [];
  for (const r of state.reasons || []) found.push({ rank: 0, kind: 'bad', what: r.name ? `Shard ${r.name}` : 'Server', why: r.message, go: '#/shards' });
  for (const w of state.warnings || []) found.push({ rank: 3, kind: 'warn', what: `Shard ${w.name}`, why: w.message, go: '#/shards' });
  if (partial) found.push({ rank: 1, kind: 'bad', what: 'Some shards', why: partial, go: '#/shards' });
  for (const q of rows) {
    const busy = (rateOf(nameOf(q), 'delivered') || 0) > 0 || q.leased > 0;
    const growth = rateOf(nameOf(q), 'died');
    if (q.damaged) found.push({ rank: 1, q, kind: 'bad', why: `${plural(q.damaged, 'damaged message')}: their bytes on disk have changed`, go: href(['messages'], { q: `queue:${nameOf(q)} state:damaged` }) });
    if (growth > 0) found.push({ rank: 2, q, kind: 'bad', why: `dead letters rise by ${rate(growth)} a second; ${number(q.dead)} now`, go: href(['dead', q.namespace, q.queue]) });
    else if (q.dead) found.push({ rank: 6, q, kind: 'warn', why: plural(q.dead, 'dead letter'), go: href(['dead', q.namespace, q.queue]) });
    if (q.paused && q.ready) found.push({ rank: 4, q, kind: 'paused', why: `${pauseText(q)}, with ${number(q.ready)} ready`, resume: true });
    else if (q.oldest_ready_ms > OLD_MS) found.push({ rank: 3, q, kind: 'bad', why: `the oldest ready message waits for ${duration(q.oldest_ready_ms)}${busy ? '' : '; nothing takes messages'}`, go: href(['queue', q.namespace, q.queue]) });
    if (q.warning) found.push({ rank: 5, q, kind: 'warn', why: `deeper than its warn_depth: ${number(q.total - q.dead)}`, go: href(['queue', q.namespace, q.queue], { tab: 'settings' }) });
  }
  return found.sort((a, b) => a.rank - b.rank || (b.q?.dead || 0) - (a.q?.dead || 0));
}

function attentionCard(data) {
  const found = attention(data), shown = found.slice(0, 12);
  if (!found.length)
    return h('section', { class: 'card calm' }, h('h2', null, 'Needs attention'), h('p', null, pill('ok', 'Nothing.'), ` ${data.state.status === 'ready' ? 'Every shard takes work' : data.state.status}, no queue is stuck, and there are no dead letters.`));
  return h('section', { class: 'card' }, h('h2', null, 'Needs attention ', h('span', { class: 'count' }, number(found.length))),
    h('ul', { class: 'attention' }, shown.map((a) => h('li', { class: `k-${a.kind}` },
      pill(a.kind, { bad: 'Problem', warn: 'Look', paused: 'Paused' }[a.kind]),
      h('span', { class: 'what' }, a.q ? queueLink(a.q) : a.what),
      h('span', { class: 'why' }, a.why),
      a.resume ? act('Resume', () => pause(a.q, false), { namespace: a.q.namespace, kind: 'small' }) : h('a', { class: 'btn small', href: a.go }, 'Open', h('span', { class: 'hidden' }, ` ${a.q ? nameOf(a.q) : a.what}: ${a.why}`))))),
    found.length > shown.length && h('p', null, h('a', { href: '#/queues?sort=-oldest' }, `and ${number(found.length - shown.length)} more`)));
}

const tile = (label, value, values, kind, note) => h('div', { class: 'tile' },
  h('span', { class: 'label' }, label), h('span', { class: 'value' }, value), spark(values, `${label}, recent`, kind), h('span', { class: 'note' }, note || ' '));

const last = (values) => (values || []).filter((v) => v !== null).slice(-1)[0];

function tiles({ rows, past, more }) {
  const sum = (name) => rows.reduce((n, q) => n + q[name], 0);
  const oldest = rows.reduce((most, q) => Math.max(most, q.oldest_ready_ms || 0), 0);
  const of = more && !past ? 'of the first queues' : '';
  const now = (counter, name) => (past && last(past[name]) !== undefined ? last(past[name]) : rateOf('*', counter));
  return h('div', { class: 'tiles' },
    tile('In, per second', rate(now('accepted', 'in')), past?.in || seriesOf('*', 'accepted'), 'in', of),
    tile('Done, per second', rate(now('finished', 'done')), past?.done || seriesOf('*', 'finished'), 'done', of),
    tile('Failed, per second', rate(now('failed', 'failed')), past?.failed || seriesOf('*', 'failed'), 'failed', of),
    tile('Oldest ready', duration(oldest), past?.oldest_ms, 'wait', of),
    tile('In flight', short(more && past ? last(past.leased) : sum('leased')), past?.leased, 'leased', `${short(more && past ? last(past.ready) : sum('ready'))} ready`),
    tile('Dead letters', short(more && past ? last(past.dead) : sum('dead')), past?.dead, 'dead', `${rate(rateOf('*', 'died'))} a second`));
}

function charts({ past, range }) {
  const ranges = [['10m', '10 minutes'], ['1h', '1 hour'], ['24h', '24 hours'], ['7d', '7 days']];
  if (!past) {
    const values = (counter) => seriesOf('*', counter);
    return h('div', { class: 'charts' },
      chart('Throughput, per second', [{ name: 'in', values: values('accepted'), kind: 'in' }, { name: 'done', values: values('finished'), kind: 'done' }, { name: 'failed', values: values('failed'), kind: 'failed' }], { format: rate, from: 'since this page opened', empty: 'The chart fills while this page is open.' }),
      chart('Backlog', [{ name: 'messages', values: values('depth'), kind: 'ready' }], { from: 'since this page opened', empty: 'The chart fills while this page is open.' }));
  }
  const begin = clock(new Date(Date.parse(past.end) - past.steps * past.step_ms).toISOString());
  const options = { past, from: ['24h', '7d'].includes(range) ? `${range} ago` : begin };
  return [tabs(range, ranges, (id) => href(['overview'], { range: id })), h('div', { class: 'charts' },
    chart('Throughput, per second', [{ name: 'in', values: past.in, kind: 'in' }, { name: 'done', values: past.done, kind: 'done' }, { name: 'failed', values: past.failed, kind: 'failed' }], { ...options, format: rate }),
    chart('Backlog', ['ready', 'delayed', 'leased', 'held', 'dead'].map((name) => ({ name, values: past[name], kind: name })), options),
    chart('Wait before delivery', [['p50', 'in'], ['p95', 'wait'], ['p99', 'failed']].map(([p, kind]) => ({ name: p, values: past[`wait_${p}_ms`], kind })), { ...options, format: duration }),
    chart('Run time', [['p50', 'in'], ['p95', 'wait'], ['p99', 'failed']].map(([p, kind]) => ({ name: p, values: past[`run_${p}_ms`], kind })), { ...options, format: duration }))];
}

function busiest({ rows, more }) {
  const order = [...rows].sort((a, b) => (rateOf(nameOf(b), 'accepted') || 0) - (rateOf(nameOf(a), 'accepted') || 0) || b.total - a.total).slice(0, 8);
  return card('Busiest queues', h('table', { class: 'table' }, h('caption', { class: 'hidden' }, 'Busiest queues'),
    h('thead', null, h('tr', null, ['Queue', 'Ready', 'In flight', 'Dead', 'In/s', 'Done/s', 'Backlog'].map((t, i) => h('th', { scope: 'col', class: i && i < 6 && 'num' }, t)))),
    h('tbody', null, order.map((q) => h('tr', { 'data-k': nameOf(q) }, h('th', { scope: 'row' }, queueLink(q), q.paused && pill('paused')),
      [q.ready, q.leased, q.dead].map((n) => h('td', { class: `num ${n ? '' : 'zero'}` }, short(n))),
      ['accepted', 'finished'].map((c) => h('td', { class: 'num' }, rate(rateOf(nameOf(q), c)))),
      h('td', null, spark(seriesOf(nameOf(q), 'depth'), `backlog of ${nameOf(q)}`, 'ready')))))),
  h('p', null, h('a', { href: '#/queues' }, more ? 'All queues' : `All ${plural(rows.length, 'queue')}`)));
}

export function view(data) {
  if (!data.rows.length) return h('div', null, head('Overview'), welcome());
  return h('div', null,
    head('Overview', act('Send a message', () => sendDialog(data.rows[0]), { right: 'write', namespace: data.rows[0].namespace, key: 'e' })),
    attentionCard(data), tiles(data), charts(data), busiest(data));
}

export const welcome = () => empty('No queue yet', 'A queue exists from its first message on. Send one: this page shows it by itself.',
  command(`sluice push hello '{"hello": "world"}'`),
  command(`curl -s ${new URL('../enqueue', location.href.split('#')[0])} -d '{"namespace": "default", "queue": "hello", "text": "hello"}'`),
  act('Send a sample', () => sendDialog(), { right: 'write', namespace: 'default', kind: 'primary', key: 'e' }));

export const title = 'Overview';
export const available = () => true;
