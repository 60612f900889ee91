// attention.js - what needs attention, worst first, each with what can be done about it.
import { h } from './dom.js';
import { skew } from './api.js';
import { duration, number, plural, rate } from './format.js';
import { nameOf, rateOf } from './samples.js';
import { pause, pauseText, rest } from './pause.js';
import { act, card, href, pill, queueLink } from './ui.js';

const OLD_MS = 5 * 60e3;    // a ready message that waits longer needs attention, unless its queue says when: warn_age
const ALONE_MS = 30e3;      // the same, if nothing takes messages
const SKEW_MS = 5e3;
const SHOWN = 12;
const KINDS = { bad: 'Problem', warn: 'Look', paused: 'Paused', draining: 'Draining', drained: 'Drained' };

const shardName = (names) => (names.length ? `${names.length > 1 ? 'Shards' : 'Shard'} ${names.join(', ')}` : 'Server');

// Those with the same words are one: several shards on a disk, several queues of a shard.
function together(list, word) {
  const found = new Map();
  for (const one of list || []) {
    const key = `${one[word]} ${one.message}`;
    if (!found.has(key)) found.set(key, { ...one, names: [] });
    if (one.name) found.get(key).names.push(one.name);
  }
  return [...found.values()];
}

const WARNINGS = { disk_space: [1, 'bad'], clock: [2, 'bad'], lost_writes: [1, 'bad'] };
const look = (go, label) => ({ go, label });

function ofServer({ state, partial }) {
  const shards = look('#/shards', 'Shards');
  const found = together(state.reasons, 'reason').map((r) => ({ rank: 0, kind: 'bad', what: shardName(r.names), why: r.message, ...shards }));
  for (const w of together(state.warnings, 'warning')) {
    const [rank, kind] = WARNINGS[w.warning] || [3, 'warn'];
    found.push({ rank, kind, what: shardName(w.names), why: w.message, ...shards });
  }
  if (partial) found.push({ rank: 1, kind: 'bad', what: 'Some shards', why: partial, ...shards });
  if (Math.abs(skew()) > SKEW_MS) found.push({ rank: 4, kind: 'warn', what: 'This browser', why: `its clock is ${duration(Math.abs(skew()))} ${skew() > 0 ? 'behind' : 'ahead of'} the clock of the server: times and ages on these pages are off by so much`, ...look('#/settings', 'Settings') });
  return found;
}

const depth = (q) => q.total - q.dead - q.damaged;

// Why the oldest ready message waits, or null.
function waiting(q) {
  const old = q.oldest_ready_ms || 0;
  const taken = q.leased > 0 || (rateOf(nameOf(q), 'delivered') || 0) > 0;
  if (!q.ready || q.paused) return null;
  if (!taken && old > ALONE_MS) return { rank: 2, kind: 'bad', why: `no consumer: ${plural(q.ready, 'message')} ready, the oldest for ${duration(old)}, and nothing takes them`, ...look(href(['queue', q.namespace, q.queue], { tab: 'consumers' }), 'Consumers') };
  return old > (q.warn_age_ms || OLD_MS) ? { rank: 3, kind: 'bad', why: `the oldest ready message waits for ${duration(old)}${q.warn_age_ms ? `; its warn_age is ${duration(q.warn_age_ms)}` : ''}`, ...look(href(['queue', q.namespace, q.queue]), 'Queue') } : null;
}

function ofQueue(q) {
  const growth = rateOf(nameOf(q), 'died'), dead = look(href(['dead', q.namespace, q.queue]), 'Dead letters');
  return [
    q.damaged && { rank: 1, kind: 'bad', why: `${plural(q.damaged, 'damaged message')}: their bytes on disk have changed`, ...look(href(['messages'], { q: `queue:${nameOf(q)} state:damaged` }), 'Messages') },
    growth > 0 ? { rank: 2, kind: 'bad', why: `dead letters rise by ${rate(growth)} a second; ${number(q.dead)} now`, ...dead } : q.dead && { rank: 6, kind: 'warn', why: plural(q.dead, 'dead letter'), ...dead },
    q.paused && q.ready && { rank: 4, kind: 'paused', why: `${pauseText(q)}, with ${number(q.ready)} ready`, resume: true },
    q.draining && { rank: 5, kind: rest(q) ? 'draining' : 'drained', why: `refuses new messages; ${rest(q) ? `${plural(rest(q), 'message')} left` : 'nothing is left'}`, resume: true },
    waiting(q),
    depth(q) > q.warn_depth && { rank: 5, kind: 'warn', why: `deeper than its warn_depth: ${number(depth(q))}`, ...look(href(['queue', q.namespace, q.queue], { tab: 'settings' }), 'Settings') },
  ].filter(Boolean).map((a) => ({ ...a, q }));
}

// Worst first: [{rank, kind, what or q, why, and go with label, or resume}].
export const attention = (data) => [...ofServer(data), ...data.rows.flatMap(ofQueue)].sort((a, b) => a.rank - b.rank || Number(Boolean(a.q)) - Number(Boolean(b.q)) || (b.q?.dead || 0) - (a.q?.dead || 0) || (b.q?.oldest_ready_ms || 0) - (a.q?.oldest_ready_ms || 0));

const action = (a) => (a.resume && act('Resume', () => pause(a.q, false), { namespace: a.q.namespace, kind: 'small' })) || (a.go && h('a', { class: 'btn small', href: a.go }, a.label, h('span', { class: 'hidden' }, ` of ${a.q ? nameOf(a.q) : a.what}: ${a.why}`)));

export function attentionCard(data) {
  const found = attention(data), shown = found.slice(0, SHOWN);
  if (!found.length)
    return h('section', { class: 'card calm' }, h('h2', null, 'Needs attention'), h('p', null, pill('ok', 'Nothing.'), ` ${data.state.status === 'ready' ? 'Every shard takes work' : data.state.status}, no queue is stuck, and there are no dead letters.`));
  return card(['Needs attention ', h('span', { class: 'count' }, number(found.length))],
    h('ul', { class: 'attention' }, shown.map((a) => h('li', { class: `k-${a.kind}` }, pill(a.kind, KINDS[a.kind]), h('span', { class: 'what' }, a.q ? queueLink(a.q) : a.what), h('span', { class: 'why' }, a.why), action(a)))),
    found.length > shown.length && h('p', null, h('a', { href: '#/queues?sort=-oldest' }, `and ${number(found.length - shown.length)} more`)));
}
