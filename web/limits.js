// limits.js - which queues have limits and weights, and how near to them they are.
import { h } from './dom.js';
import { get, queues } from './api.js';
import { gauge } from './charts.js';
import { number, rate } from './format.js';
import { nameOf, noteQueues, rateOf } from './samples.js';
import { table } from './table.js';
import { command, empty, head, queueLink } from './ui.js';

const MOST = 50; // queues whose settings are read

export async function load(route, signal) {
  const found = await queues(signal);
  noteQueues(found.rows);
  const busiest = [...found.rows].sort((a, b) => b.total - a.total).slice(0, MOST);
  const list = await Promise.all(busiest.map((q) => get('/v1/admin/queue', { namespace: q.namespace, queue: q.queue }, signal).catch(() => null)));
  return { list: list.filter((q) => q && isLimited(q.policy)), all: found.rows.length, more: found.more };
}

const NAMES = ['concurrency', 'share_concurrency', 'rate', 'share_rate', 'key_rate', 'max_rate', 'max_depth', 'warn_depth'];
const isLimited = (p) => NAMES.some((n) => p[n] > 0) || p.share_weights;

const near = (part, whole, text) => (whole ? h('span', { class: 'meter' }, gauge(part || 0, whole, text), ` ${text}`) : h('span', { class: 'zero' }, '–'));

export function view({ list, all, more }) {
  const columns = [
    { label: 'Queue', cell: (q) => queueLink(q, { tab: 'settings' }) },
    { label: 'In flight', cell: (q) => near(q.leased, q.policy.concurrency, `${number(q.leased)}/${number(q.policy.concurrency)}`) },
    { label: 'Delivered/s', cell: (q) => near(rateOf(nameOf(q), 'delivered'), q.policy.rate, `${rate(rateOf(nameOf(q), 'delivered'))}/${number(q.policy.rate)}`) },
    { label: 'Accepted/s', cell: (q) => near(rateOf(nameOf(q), 'accepted'), q.policy.max_rate, `${rate(rateOf(nameOf(q), 'accepted'))}/${number(q.policy.max_rate)}`) },
    { label: 'Depth', cell: (q) => near(q.total - q.dead, q.policy.max_depth || q.policy.warn_depth, `${number(q.total - q.dead)}/${number(q.policy.max_depth || q.policy.warn_depth)}${q.policy.max_depth ? '' : ' (warns)'}`) },
    { label: 'Each share', cell: (q) => [q.policy.share_concurrency > 0 && `${number(q.policy.share_concurrency)} in flight `, q.policy.share_rate > 0 && `${number(q.policy.share_rate)}/s`] },
    { label: 'Each key', cell: (q) => (q.policy.key_rate ? `${number(q.policy.key_rate)}/s` : '') },
    { label: 'Weights', cell: (q) => h('code', null, q.policy.share_weights) },
  ];
  return h('div', null, head('Shares and limits'),
    list.length ? table({ columns, rows: list, keyOf: nameOf, caption: 'Queues with limits' }) : empty('No queue has a limit', 'Limits bound what a queue, a share or a key may do at once or in a second. Weights let shares take turns.', command("sluice queue set jobs concurrency=100 share_rate=50 share_weights='gold=4'")),
    (more || all > MOST) && h('p', { class: 'muted' }, `Of the ${MOST} deepest queues.`));
}

export const title = 'Shares and limits';
