// overview.js - what needs attention first, then what the server does.
import { h } from './dom.js';
import { get, queues, ApiError } from './api.js';
import { attentionCard } from './attention.js';
import { chart, layers, spark } from './charts.js';
import { duration, plural, rate, short, clock } from './format.js';
import { history, nameOf, noteQueues, rateOf, seriesOf } from './samples.js';
import { act, card, command, empty, head, href, pill, queueLink, sendDialog, tabs, wide } from './ui.js';

async function ready(signal) {
  try {
    return await get('/readyz', {}, signal);
  } catch (error) {
    if (error instanceof ApiError) return { status: 'not_ready', reasons: [{ reason: error.name, message: error.message }] };
    throw error;
  }
}

const isKnown = (past) => past?.in?.filter((v) => v !== null).length > 2;

// Of a server that has just begun the last hour says nothing yet: then the last 10 minutes.
async function pastOf(params, signal) {
  const hour = await history({ range: '1h' }, signal);
  const range = params.range || (hour && !isKnown(hour) ? '10m' : '1h');
  const [past, storage] = await Promise.all([range === '1h' ? hour : history({ range }, signal), hour && history({ range, of: 'storage' }, signal)]);
  return { range, past, storage, hour: isKnown(hour) ? hour : past };
}

export async function load(route, signal) {
  const [list, state, past] = await Promise.all([queues(signal), ready(signal), pastOf(route.params, signal)]);
  noteQueues(list.rows);
  return { ...list, state, ...past };
}

const tile = (label, value, values, kind, note) => h('div', { class: 'tile' },
  h('span', { class: 'label' }, label), h('span', { class: 'value' }, value), spark(values, `${label}, recent`, kind), h('span', { class: 'note' }, note || ' '));

const last = (values) => (values || []).filter((v) => v !== null).slice(-1)[0];

// How much a count has grown in a minute, step by step.
const growthOf = (values) => values?.map((v, i) => (i && v !== null && values[i - 1] !== null ? Math.max(0, v - values[i - 1]) : null));

// Values of now, above the last hour.
function tiles({ rows, hour, more }) {
  const sum = (name) => rows.reduce((n, q) => n + q[name], 0);
  const oldest = rows.reduce((most, q) => Math.max(most, q.oldest_ready_ms || 0), 0);
  const of = more && !hour ? 'of the first queues' : '';
  const part = more && hour; // the list has not all queues
  const now = (counter, name) => (part ? null : rateOf('*', counter)) ?? last(hour?.[name]);
  const dead = part ? last(hour.dead) : sum('dead');
  const grown = (growthOf(hour?.dead) || []).reduce((n, v) => n + (v || 0), 0);
  return h('div', { class: 'tiles' },
    tile('In, per second', rate(now('accepted', 'in')), hour?.in || seriesOf('*', 'accepted'), 'in', of),
    tile('Done, per second', rate(now('finished', 'done')), hour?.done || seriesOf('*', 'finished'), 'done', of),
    tile('Failed, per second', rate(now('failed', 'failed')), hour?.failed || seriesOf('*', 'failed'), 'failed', of),
    tile('Oldest ready', oldest ? duration(oldest) : 'none', hour?.oldest_ms, 'wait', of),
    tile('In flight', short(part ? last(hour.leased) : sum('leased')), hour?.leased, 'leased', `${short(part ? last(hour.ready) : sum('ready'))} ready`),
    tile('Dead letters', short(dead), hour?.dead, 'dead', hour ? `${short(grown)} more in the last hour` : `${rate(rateOf('*', 'died'))} a second`));
}

const RANGES = [['10m', '10 minutes'], ['1h', '1 hour'], ['24h', '24 hours'], ['7d', '7 days']];
const PERCENTILES = [['p50', 'in'], ['p95', 'wait'], ['p99', 'failed']];
const STATES = ['ready', 'delayed', 'leased', 'held', 'dead'];

// Without a history of the server: what this page has seen.
function ownCharts() {
  const values = (counter) => seriesOf('*', counter);
  return h('div', { class: 'charts' },
    chart('Throughput, per second', [{ name: 'in', values: values('accepted'), kind: 'in' }, { name: 'done', values: values('finished'), kind: 'done' }, { name: 'failed', values: values('failed'), kind: 'failed' }], { format: rate, from: 'since this page opened', empty: 'The chart fills while this page is open.' }),
    chart('Backlog', [{ name: 'messages', values: values('depth'), kind: 'ready' }], { from: 'since this page opened', empty: 'The chart fills while this page is open.' }));
}

// How long the disk and the store take: what an answer waits for.
function storageChart(storage, options) {
  if (!storage) return null;
  const store = storage.put_p99_ms?.some((v) => v !== null);
  return chart('Disk and store', [{ name: 'sync p50', values: storage.sync_p50_ms, kind: 'done' }, { name: 'sync p99', values: storage.sync_p99_ms, kind: 'wait' },
    ...store ? [{ name: 'store put p50', values: storage.put_p50_ms, kind: 'in' }, { name: 'store put p99', values: storage.put_p99_ms, kind: 'failed' }] : []], { ...options, past: storage });
}

function charts({ past, storage, range }) {
  if (!past) return ownCharts();
  const begin = clock(new Date(Date.parse(past.end) - past.steps * past.step_ms).toISOString());
  const options = { past, from: ['24h', '7d'].includes(range) ? `${range} ago` : begin };
  const small = { ...options, format: duration, width: 340 };
  const times = (name) => PERCENTILES.map(([p, kind]) => ({ name: p, values: past[`${name}_${p}_ms`], kind }));
  return [tabs(range, RANGES, (id) => href(['overview'], { range: id }), 'How far back'), h('div', { class: 'charts' },
    layers('Throughput, per second', [{ name: 'done', values: past.done, kind: 'done' }, { name: 'failed', values: past.failed, kind: 'failed' }], { ...options, format: rate, line: { name: 'in', values: past.in, kind: 'in' } }),
    layers('Backlog', STATES.map((name) => ({ name: name === 'leased' ? 'in flight' : name, values: past[name], kind: name })), options)),
  h('div', { class: 'charts three' }, chart('Wait before delivery', times('wait'), small), chart('Run time', times('run'), small), storageChart(storage, small))];
}

function busiest({ rows, more }) {
  const order = [...rows].sort((a, b) => (rateOf(nameOf(b), 'accepted') || 0) - (rateOf(nameOf(a), 'accepted') || 0) || b.total - a.total).slice(0, 8);
  return card('Busiest queues', wide('Busiest queues', h('table', { class: 'table' }, h('caption', { class: 'hidden' }, 'Busiest queues'),
    h('thead', null, h('tr', null, ['Queue', 'Ready', 'In flight', 'Dead', 'In/s', 'Done/s', 'Backlog'].map((t, i) => h('th', { scope: 'col', class: i && i < 6 && 'num' }, t)))),
    h('tbody', null, order.map((q) => h('tr', { 'data-k': nameOf(q) }, h('th', { scope: 'row' }, queueLink(q), q.paused && pill('paused'), q.draining && pill('draining')),
      [q.ready, q.leased, q.dead].map((n) => h('td', { class: `num ${n ? '' : 'zero'}` }, short(n))),
      ['accepted', 'finished'].map((c) => h('td', { class: 'num' }, rate(rateOf(nameOf(q), c)))),
      h('td', null, spark(seriesOf(nameOf(q), 'depth'), `backlog of ${nameOf(q)}`, 'ready'))))))),
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
