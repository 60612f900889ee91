// message.js - one message: where it stands, why it waits, what it holds, what was tried.
import { h } from './dom.js';
import { get, getDocument, has, may, post, session } from './api.js';
import { age, bytes, duration, number, when } from './format.js';
import { parse, tree } from './json.js';
import { stack } from './charts.js';
import { asCode } from './code.js';
import { INVERSE } from './bulk.js';
import { act, app, ask, card, copy, facts, head, href, pill, tabs, toast, wide } from './ui.js';
import { noteVersion, versionsCard } from './versions.js';

export async function load(route, signal) {
  const [, namespace, id] = route.path;
  const m = await get('/v1/admin/message', { namespace, id, mask: route.params.show ? undefined : true }, signal);
  const why = m.status === 'dead' || m.status === 'damaged' ? null : await get('/why', { namespace, id, queue: m.queue }, signal).catch((error) => {
    if (!error.status) throw error;
    return null; // finished meanwhile, or a Redis shard
  });
  const batch = m.batch === undefined ? null : await get('/batch', { namespace, id: m.batch }, signal).catch((error) => {
    if (!error.status) throw error;
    return null; // it has ended, or the caller may not see it
  });
  const versions = await checkpointsOf(m, signal);
  return { m, why, batch, versions };
}

// What the last holder has stored: a checkpoint, or the state of the message (docs/locks.md), as far as this tab has seen it.
async function checkpointsOf(m, signal) {
  if (m.status === 'damaged' || !m.attempts) return [];
  const found = await getDocument('/v1/get', { namespace: m.namespace, key: `q/${m.queue}/state/${m.uid}`, public: '1' }, signal).catch((error) => {
    if (!error.status) throw error;
    return { text: null }; // a shard without documents
  });
  return noteVersion(`message ${m.namespace} ${m.uid}`, found.version, found.text);
}

// --- the way of the message -------------------------------------------------------------------

const WAY = ['accepted', 'delayed', 'held', 'ready', 'leased', 'done', 'dead'];
const SIGNS = { accepted: 'ok', leased: 'leased' };

// When the message came into each of these states, as far as it is known: the last time counts.
function moments(m) {
  const at = { accepted: m.enqueued_at, dead: m.dead_since };
  for (const e of m.history || []) if (e.event === 'leased') at.leased = e.at;
  if (m.claimed_at) at.leased = m.claimed_at;
  if (m.status === 'delayed') at.ready = m.next_delivery || m.deliver_after; // it will be
  else if (m.status === 'held') at.held = m.deliver_after;
  else if (!m.attempts) at.ready = m.deliver_after;
  return at;
}

function diagram(m) {
  const now = m.status === 'processing' ? 'leased' : m.status, at = moments(m);
  const passed = WAY.indexOf(now);
  return h('ol', { class: 'way', 'aria-label': 'State' }, WAY.map((state, i) => h('li', { class: [state === now && `now k-${state}`, i < passed && at[state] && 'passed', state === 'dead' && 'or'].filter(Boolean).join(' ') || null, 'aria-current': state === now && 'step' },
    h('span', null, pill(SIGNS[state] || state, state === 'leased' ? 'in flight' : state), at[state] && h('time', { datetime: at[state], title: at[state] }, Date.parse(at[state]) > Date.now() ? `in ${duration(Date.parse(at[state]) - Date.now())}` : when(at[state]))))));
}

function events(m) {
  return h('ol', { class: 'events' }, (m.history || []).map((e) => h('li', null,
    h('b', null, e.event), ' ', h('time', { datetime: e.at, title: e.at }, when(e.at)), ' ',
    h('span', { class: 'muted' }, [e.attempt && `attempt ${e.attempt}`, e.until && `until ${when(e.until)}`, e.reason].filter(Boolean).join(', ')))));
}

function whyCard(m, why) {
  if (m.status === 'dead') return card('Why it does not run', h('p', null, pill('dead'), ` It is a dead letter: ${{ max_attempts: 'it failed too often', expired: 'it outlived its ttl', rejected: 'a consumer refused it for good' }[m.reason] || m.reason}.`), m.error && h('pre', { class: 'text' }, m.error));
  if (!why) return null;
  return card(m.status === 'leased' || m.status === 'processing' ? 'It runs' : 'Why it does not run now', h('ul', { class: 'why' }, why.reasons.map((r) => h('li', null, h('code', null, r.reason), ' ', r.text))),
    facts([['Expected', why.estimate && `${when(why.estimate)} (in ${duration(Math.max(0, Date.parse(why.estimate) - Date.now()))})`], ['Consumers that wait', number(why.consumers_waiting)], ['In flight in the queue', number(why.leased)],
      ['Lease ends', m.lease_expires_at && `in ${duration(Date.parse(m.lease_expires_at) - Date.now())}`]]));
}

function attemptsCard(m) {
  const rows = m.attempts_log || [];
  if (!rows.length) return null;
  return card('Attempts', wide('Attempts', h('table', { class: 'table' }, h('caption', { class: 'hidden' }, 'Attempts'), h('thead', null, h('tr', null, ['#', 'Began', 'Took', 'Worker', 'Token', 'Outcome', 'Error'].map((t) => h('th', { scope: 'col' }, t)))),
    h('tbody', null, rows.map((a) => h('tr', null, h('td', null, a.attempt), h('td', null, when(a.at)), h('td', null, duration(a.took_ms)), h('td', null, a.owner || '', a.version && h('small', { class: 'muted' }, ` ${a.version}`)), h('td', { class: 'num' }, a.fencing_token), h('td', null, pill('bad', String(a.outcome).replace('_', ' '))), h('td', { class: 'wrap' }, a.error || '')))))));
}

function batchCard(m, b) {
  if (m.batch === undefined) return null;
  if (!b) return card('Batch', h('p', { class: 'muted' }, `Member of the batch ${m.batch}, which cannot be shown: it has ended long ago, or you may not see it.`));
  const left = b.members - b.done - b.failed;
  return card('Batch', h('p', null, pill({ open: 'running', closed: 'running', done: 'done' }[b.status] || 'bad', b.status), ` ${number(b.members)} members`),
    stack([{ name: 'done', value: b.done, kind: 'done' }, { name: 'failed', value: b.failed, kind: 'failed' }, { name: 'waiting', value: left, kind: 'held' }], `members: ${b.done} done, ${b.failed} failed, ${left} waiting`),
    facts([['Done', number(b.done)], ['Failed', number(b.failed)], ['Waiting', number(left)], ['Then begins', [b.callback?.queue && h('a', { href: href(['queue', m.namespace, b.callback.queue]) }, `${m.namespace}/${b.callback.queue}`), b.callback?.uid && [', message ', h('a', { href: href(['message', m.namespace, b.callback.uid]) }, b.callback.uid)]]],
      ['Members', left + b.failed > 0 && h('a', { href: href(['messages'], { q: `batch:${b.uid}` }) }, 'those that wait, run or are dead letters')], ['Deadline', b.deadline && when(b.deadline)], ['Ended', b.ended_at && when(b.ended_at)], ['Id', h('code', null, b.uid)]]));
}

// --- the body -----------------------------------------------------------------------------------

const bytesOf = (m) => Uint8Array.from(atob(m.payload || ''), (c) => c.charCodeAt(0));

function textOf(data) {
  try { return new TextDecoder('utf-8', { fatal: true }).decode(data); } catch { return null; }
}

function hex(data) {
  const lines = [];
  for (let at = 0; at < Math.min(data.length, 16384); at += 16) {
    const row = [...data.slice(at, at + 16)];
    lines.push(`${at.toString(16).padStart(8, '0')}  ${row.map((b) => b.toString(16).padStart(2, '0')).join(' ').padEnd(47)}  ${row.map((b) => (b > 31 && b < 127 ? String.fromCharCode(b) : '.')).join('')}`);
  }
  if (data.length > 16384) lines.push(`… ${number(data.length - 16384)} bytes more`);
  return lines.join('\n');
}

// What the setting mask hides: *** until who may see it asks for it.
function hidden(m, route) {
  const sees = ['admin', 'write', 'consume'].some((right) => may(right, m.namespace));
  if (!m.masked) return route.params.show && h('p', null, h('a', { class: 'btn small', href: href(route.path, { ...route.params, show: undefined }) }, 'Hide values'));
  return h('p', { class: 'muted' }, 'Some values are hidden: *** ', sees ? h('a', { class: 'btn small', href: href(route.path, { ...route.params, show: 1 }) }, 'Show hidden values') : 'You may look, and may not see them.');
}

function bodyCard(m, route) {
  const link = (id) => href(route.path, { ...route.params, body: id });
  if (m.payload === undefined) return card('Body', h('p', null, `${bytes(m.payload_size)}: too large to show here. `), h('code', null, `sluice get --namespace ${m.namespace} ${m.uid}`));
  const data = bytesOf(m), text = textOf(data);
  let value, isJson = false;
  try { value = parse(text); isJson = true; } catch { /* not JSON */ }
  const views = [isJson && ['json', 'JSON'], text !== null && ['raw', 'Raw'], ['hex', 'Hex']].filter(Boolean);
  const now = views.some(([id]) => id === route.params.body) ? route.params.body : views[0][0];
  return card(['Body ', h('small', null, `${bytes(m.payload_size)}${m.content_type ? `, ${m.content_type}` : ''}`)], tabs(now, views, link),
    hidden(m, route), now === 'json' ? tree(value) : h('pre', { class: 'text', tabindex: '0' }, now === 'raw' ? text : hex(data)));
}

// --- what belongs to it ---------------------------------------------------------------------------

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const COPY_OF = 'copy_of'; // attribute of a copy: the id of what was copied

// A page of the system that keeps the traces: the setting trace.url, with {trace} for the id.
function traceLink(parent) {
  const id = parent.split('-')[1], url = (session.traceUrl || '').replaceAll('{trace}', encodeURIComponent(id));
  return [h('code', null, parent), /^https?:\/\//.test(url) && [' ', h('a', { href: url, target: '_blank', rel: 'noreferrer' }, 'open the trace')]];
}

const search = (text, words) => h('a', { href: href(['messages'], { q: words }) }, text);

function relatives(m) {
  const source = m.attributes?.[COPY_OF], queue = `queue:${m.namespace}/${m.queue}`;
  const rows = [
    typeof source === 'string' && UUID.test(source) && ['Copy of', h('a', { href: href(['message', m.namespace, source]) }, source)],
    ['Copies', search('copies in this queue', `${queue} attribute:${COPY_OF}=${m.uid}`)],
    m.correlation_id && ['Correlation', search('others with this correlation id', `correlation:"${m.correlation_id.replace(/["\\]/g, '\\$&')}"`)],
    m.key !== undefined && ['Key', search('others of this key', `${queue} key:"${m.key.replace(/["\\]/g, '\\$&')}"`)],
  ];
  return card('Related', facts(rows));
}

// --- actions ------------------------------------------------------------------------------------

// Another message may take the place of m: the page follows it. inverse(before): the verb and the body that undo it.
async function change(m, verb, body, inverse) {
  const { namespace } = m;
  const send = (what, more) => post(`/v1/admin/message/${what}`, { namespace, ...more });
  const follow = (answer) => { app.go(href(['message', namespace, answer.uid])); app.refresh(); };
  const answer = await send(verb, { queue: m.queue, id: m.uid, version: m.version, ...body });
  follow(answer);
  toast('Done.', inverse && answer.version && { undo: async () => {
    const [back, more] = inverse(answer.before);
    follow(await send(back, { queue: body.to || m.queue, id: answer.uid, version: answer.version, ...more }));
  } });
}

const replay = (m) => ask({
  title: 'Replay as copy', confirm: 'Send', text: 'A new message with the same body, key and attributes. This one stays as it is.',
  fields: [{ name: 'queue', label: 'Queue', value: m.queue, required: true }, { name: 'noted', kind: 'checkbox', value: true, label: `Note this message in the attribute ${COPY_OF}` }],
  run: async ({ queue, noted }) => {
    const item = { namespace: m.namespace, queue, payload: m.payload, priority: m.priority };
    for (const field of ['key', 'share', 'kind', 'correlation_id', 'content_type', 'attributes']) if (m[field] !== undefined) item[field] = m[field];
    if (noted) item.attributes = { ...item.attributes, [COPY_OF]: m.uid };
    const [id] = await post('/enqueue', [item], { ids: 'uid' });
    toast(`Sent: ${id}`);
  },
});

function actions(m) {
  const { namespace } = m, name = { namespace, queue: m.queue, id: m.uid };
  const can = (verb) => has('POST', `/v1/admin/message/${verb}`);
  const waits = !['dead', 'damaged', 'leased', 'processing'].includes(m.status), runs = m.status === 'leased' || m.status === 'processing';
  return [
    m.status === 'dead' && act('Redrive', async () => { await post('/dlq/redrive', { namespace, queue: m.queue, ids: [m.uid] }); toast('It is ready again.'); app.refresh(); }, { namespace, kind: 'primary', key: 'r' }),
    waits && can('run') && m.status === 'delayed' && act('Run now', () => change(m, 'run', {}, INVERSE.run), { namespace, kind: 'primary', key: 'r' }),
    waits && can('delay') && act('Delay', () => ask({ title: 'Delay', confirm: 'Delay', fields: [{ name: 'delay', label: 'For', value: '10m', required: true }], run: ({ delay }) => change(m, 'delay', { delay }, INVERSE.delay) }), { namespace }),
    waits && can('priority') && act('Priority', () => ask({ title: 'Priority', confirm: 'Set', fields: [{ name: 'priority', label: 'The lowest number goes first', value: m.priority, required: true }], run: ({ priority }) => change(m, 'priority', { priority: Number(priority) }, INVERSE.priority) }), { namespace }),
    !runs && m.status !== 'damaged' && can('move') && act('Move', () => ask({ title: 'Move to another queue', confirm: 'Move', fields: [{ name: 'to', label: 'Queue', required: true }], run: ({ to }) => change(m, 'move', { to }, m.status !== 'dead' && INVERSE.move) }), { namespace }),
    !runs && can('edit') && !m.masked && m.payload !== undefined && textOf(bytesOf(m)) !== null && act('Edit', () => ask({ title: 'Edit and requeue', confirm: 'Requeue', fields: [{ name: 'text', label: 'Body', kind: 'area', rows: 12, value: textOf(bytesOf(m)) }], run: ({ text }) => change(m, 'edit', { text }, m.status !== 'dead' && (() => ['edit', { payload: m.payload }])) }), { namespace }),
    runs && !m.canceled && can('cancel') && act('Cancel', () => ask({ title: 'Cancel a message that runs', danger: true, confirm: 'Cancel it', text: 'Its worker learns it at the next extend. Its key stays held until the worker answers or the lease ends.', run: async () => { await post('/v1/admin/message/cancel', { namespace, id: m.uid }); toast('Canceled.'); app.refresh(); } }), { namespace, kind: 'danger' }),
    runs && !m.canceled && act('Extend lease', () => ask({ title: 'Extend the lease', confirm: 'Extend', text: 'For a worker that needs longer than it asked for. Its lease ends so long from now.', fields: [{ name: 'lease', label: 'For', value: '5m', required: true }],
      run: async ({ lease }) => { const done = await post('/extend', { ...name, lease }); toast(`The lease ends ${when(done.lease_expires_at)}.`); } }), { namespace, right: 'consume' }),
    m.payload !== undefined && !m.masked && act('Replay as copy', () => replay(m), { namespace, right: 'write' }),
    !runs && act('Delete', () => ask({ title: 'Delete this message', danger: true, confirm: 'Delete', text: 'It is deleted for good.', run: async () => { await post('/v1/admin/message/delete', name); toast('Deleted.'); app.go(href(['queue', namespace, m.queue])); } }), { namespace, kind: 'danger' }),
  ];
}

const uniqueText = ({ key, until }) => `${key}, until ${/^\d/.test(until) ? when(until) : `it has ${until === 'done' ? 'ended' : 'begun'}`}`;
const sourceOf = (m) => [h('a', { href: href(['queue', m.namespace, m.dead_letter_of.queue]) }, `${m.namespace}/${m.dead_letter_of.queue}`), `, ${String(m.dead_letter_of.reason || '').replace('_', ' ')}`];

const fields = (m) => card('Fields', facts([
  ['Id', h('code', null, m.uid)], ['Priority', m.priority], ['Tries', `${m.failure_attempts} of ${m.max_attempts} failed; delivered ${m.attempts} times`], ['Key', m.key], ['Share', m.share], ['Kind', m.kind], ['Rule', m.rule],
  ['Unique', m.unique && uniqueText(m.unique)], ['Dead letter of', m.dead_letter_of && sourceOf(m)], ['Worker', m.owner], ['Canceled', m.canceled && 'it is gone when its worker answers, or its lease ends'],
  ['Leased since', m.claimed_at && when(m.claimed_at)], ['Correlation id', m.correlation_id], ['Idempotency key', m.idempotency_key], ['Due', when(m.deliver_after)], ['Expires', m.expires_at && when(m.expires_at)], ['Trace', m.traceparent && traceLink(m.traceparent)],
  ['Last error', m.error && h('pre', { class: 'text' }, m.error)], ['Attributes', m.attributes !== undefined && h('pre', { class: 'text' }, JSON.stringify(m.attributes, null, 2))]]));

function codeCard(m) {
  if (m.payload === undefined || m.masked) return null;
  const data = bytesOf(m);
  return card(['Copy as ', h('small', null, 'a program that sends the same message')], h('div', { class: 'buttons left' }, asCode(m, data, textOf(data)).map(([name, text]) => h('button', { type: 'button', class: 'btn small', onclick: () => copy(text) }, name))));
}

export function view({ m, why, batch, versions }, route) {
  return h('div', null,
    head([h('span', { class: 'mono' }, m.uid), ' ', pill(m.status === 'processing' ? 'leased' : m.status, m.status === 'leased' ? 'in flight' : m.status)], actions(m)),
    h('p', { class: 'crumb' }, h('a', { href: href(['queue', m.namespace, m.queue]) }, `${m.namespace}/${m.queue}`), ` · accepted ${duration(age(m.enqueued_at))} ago`),
    card(null, diagram(m), (m.history || []).length > 1 && events(m)),
    h('div', { class: 'columns' },
      h('div', null, whyCard(m, why), versions.length > 0 && versionsCard(['Checkpoint ', h('small', null, 'how far its last holder has come; the next one gets it')], versions, route), bodyCard(m, route), attemptsCard(m)),
      h('div', null, batchCard(m, batch), fields(m), relatives(m), codeCard(m))));
}

export const title = (route) => `Message ${route.path[2]}`;
