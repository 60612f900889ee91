// shares.js - the shares of a queue: what each has and gets, beside what its weight is worth; and the priorities.
import { h } from './dom.js';
import { get, has } from './api.js';
import { bars, gauge } from './charts.js';
import { duration, number, plural } from './format.js';
import { table } from './table.js';
import { act, card, command, empty, href, pill, sendDialog } from './ui.js';

const NOISY = 2; // a share that waits with so many times its part of the messages is noisy

const percent = (part) => `${(part * 100).toFixed(part < 0.1 ? 1 : 0)} %`;
const part = (value, whole, label) => (whole ? h('span', { class: 'meter' }, gauge(value, whole, label), ` ${percent(value / whole)}`) : '');

// Has it much more of the backlog than its weight is worth, beside others?
export const isNoisy = (share, of) => of.shares > 1 && share.messages > 10 && share.messages / of.messages > NOISY * (share.weight / of.weight) && share.messages / of.messages > 0.5;

function shareCard(q, { limits, shares }) {
  const rows = limits.filter((r) => r.scope === 'share');
  const sum = (name) => rows.reduce((n, r) => n + (r[name] || 0), 0);
  const of = { shares: rows.length, messages: sum('messages'), delivered: sum('delivered'), weight: sum('weight') };
  const columns = [
    { label: 'Share', cell: (r) => r.name ?? h('span', { class: 'muted' }, '(no share)') },
    { label: 'Messages', num: true, cell: (r) => number(r.messages) }, { label: 'Of the backlog', cell: (r) => part(r.messages, of.messages, `${r.name ?? 'no share'}: part of the backlog`) },
    { label: 'Ready', num: true, cell: (r) => number(r.ready) }, { label: 'Oldest', num: true, title: 'how long its oldest ready message has waited', cell: (r) => duration(r.oldest_ready_ms) }, { label: 'In flight', num: true, cell: (r) => number(r.leased) },
    { label: 'Weight', num: true, cell: (r) => number(r.weight) }, { label: 'Its weight is worth', num: true, cell: (r) => (of.weight ? percent(r.weight / of.weight) : '') },
    { label: 'Of the deliveries', cell: (r) => part(r.delivered || 0, of.delivered, `${r.name ?? 'no share'}: part of the deliveries`) },
    { label: 'State', cell: (r) => [isNoisy(r, of) && pill('warn', 'noisy'), r.hold_until && pill('paused', `on hold for ${duration(Date.parse(r.hold_until) - Date.now())}`)] },
  ];
  return card(['Shares ', h('small', null, shares > rows.length ? `the ${rows.length} with the most messages of ${number(shares)}` : plural(rows.length, 'share'))],
    table({ columns, rows, keyOf: (r) => r.name ?? '', caption: 'Shares' }),
    h('p', { class: 'muted' }, 'Deliveries are counted since a share has messages. Noisy: more than half of the backlog, and more than twice what its weight is worth.'));
}

// --- priorities -------------------------------------------------------------------------

const CALLS = 8, KEEP_MS = 10e3; // of 128,000 messages each

let counted = { name: '', at: 0, value: null }; // of a long queue it takes a while

async function count(place, signal) {
  const all = new Map();
  let cursor, looked = 0;
  for (let i = 0; i < CALLS && (i === 0 || cursor !== undefined); i++) {
    const page = await get('/v1/admin/queue/priorities', { ...place, cursor }, signal);
    for (const p of page.priorities) all.set(p.priority, { priority: p.priority, ...Object.fromEntries(['messages', 'ready', 'leased'].map((name) => [name, p[name] + (all.get(p.priority)?.[name] || 0)])) });
    ({ cursor } = page);
    looked += page.looked;
  }
  return { rows: [...all.values()].sort((a, b) => a.priority - b.priority), looked, whole: cursor === undefined };
}

// null: this server cannot count them.
export async function prioritiesOf(place, signal) {
  const name = `${place.namespace}/${place.queue}`;
  if (!has('GET', '/v1/admin/queue/priorities')) return null;
  if (counted.name !== name || Date.now() - counted.at > KEEP_MS || counted.value?.looked < 10000)
    counted = { name, at: Date.now(), value: await count(place, signal).catch((error) => { if (!error.status) throw error; return null; }) };
  return counted.value;
}

const SHOWN = 20;

function priorityCard(q, { rows, looked, whole }) {
  const shown = rows.slice(0, SHOWN), sum = rows.reduce((n, r) => n + r.messages, 0);
  return card(['Priorities ', h('small', null, whole ? plural(sum, 'message') : `of the first ${number(looked)} messages`)],
    bars(shown.map((r) => ({ label: String(r.priority), value: r.messages })), 'Messages by priority'),
    h('p', { class: 'muted' }, 'The lowest number goes first. ', rows.length > shown.length && `${number(rows.length - shown.length)} more priorities: `, rows.length > shown.length && h('code', null, `sluice queue priorities ${q.queue}`)));
}

export function sharesView(q, usage, priorities) {
  const waits = q.ready + q.delayed + q.held + q.leased;
  if (!waits && !usage?.shares) return empty('No waiting messages', 'The shares of a queue take turns. The lowest priority goes first.', command(`sluice push --namespace ${q.namespace} ${q.queue} --share gold --priority 1 'hello'`), act('Send a sample', () => sendDialog(q), { right: 'write', namespace: q.namespace, kind: 'primary' }));
  return [usage && shareCard(q, usage), priorities?.rows.length > 0 && priorityCard(q, priorities),
    h('p', null, h('a', { href: href(['queue', q.namespace, q.queue], { tab: 'limits' }) }, 'Limits and holds of shares'))];
}
