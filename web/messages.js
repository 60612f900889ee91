// messages.js - search messages with a query: queue:ops/jobs state:ready key:a text:"x y" error:timeout age>5m
import { h } from './dom.js';
import { get, has, may, namespaces, queues } from './api.js';
import { acted, actsOnAll, actsOnSelected } from './bulk.js';
import { age, duration, number, plural, when } from './format.js';
import { suggestInto } from './suggest.js';
import { selected, table } from './table.js';
import { app, command, empty, head, href, messageOf, pill } from './ui.js';

const QUALIFIERS = {
  'queue:': 'NAMESPACE/QUEUE; without it, all queues', 'state:': 'ready, delayed, leased, held, dead, damaged', 'id:': 'an id or a uid', 'key:': 'the key of the order',
  'kind:': 'the kind of work; or type:', 'share:': 'the share; or tenant:', 'batch:': 'members of the batch with this id', 'correlation:': 'correlation id', 'attribute:': 'NAME=VALUE; or tag:', 'body.': 'body.user.id:42, a value of a JSON body',
  'text:': 'a text in the body', 'error:': 'a text in the last error', 'reason:': 'max_attempts, expired, rejected', 'prio>=': 'this number or a higher one', 'prio<=': 'this number or a lower one',
  'worker:': 'that has it in flight', 'attempt>': 'delivered more often', 'attempt<': 'delivered less often', 'age>': '5m: older', 'age<': '5m: newer',
};
const SUGGESTED = Object.keys(QUALIFIERS);
const PARAMS = {
  'id:': 'id', 'key:': 'key', 'kind:': 'kind', 'type:': 'kind', 'share:': 'share', 'tenant:': 'share', 'batch:': 'batch', 'correlation:': 'correlation_id', 'attribute:': 'attribute', 'tag:': 'attribute', 'text:': 'text', 'error:': 'error', 'error~': 'error', 'reason:': 'reason', 'worker:': 'owner', 'state:': 'state',
  'prio>=': 'priority_min', 'prio<=': 'priority_max', 'attempt>': 'attempts_over', 'attempt<': 'attempts_under', 'age>': 'older_than', 'age<': 'newer_than',
};
const ID = /^(\d{6,19}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})$/i;

// Returns {params, free, wrong}: what the call takes, the words without a qualifier, and why it is no query.
export function readQuery(text) {
  const found = { params: {}, free: [], wrong: '' };
  const set = (key, name, value) => {
    if (name in found.params) found.wrong ||= `${key} twice: one is expected`;
    else if (value === '') found.wrong ||= `${key} without a value`;
    else found.params[name] = value;
  };
  for (const [, name, sign, quoted, word, bare] of text.matchAll(/([a-z]+(?:\.[^\s:"]+)?)(>=|<=|[:<>]|(?<=error)~)(?:"((?:[^"\\]|\\.)*)"|(\S*))|(\S+)/gi)) {
    const value = quoted !== undefined ? quoted.replace(/\\(.)/g, '$1') : word;
    const key = `${name}${sign}`;
    if (bare !== undefined) found.free.push(bare);
    else if (key === 'queue:') {
      const at = value.indexOf('/');
      set(key, 'namespace', at < 0 ? 'default' : value.slice(0, at));
      set(key, 'queue', value.slice(at + 1));
    } else if (name.startsWith('body.') && sign === ':') set('body.', 'body', `${name.slice(5)}=${value}`);
    else if (PARAMS[key]) set(key, PARAMS[key], value);
    else found.wrong ||= `unknown qualifier ${key}; expected ${SUGGESTED.join(' ')}`;
  }
  if (found.free.length === 1 && ID.test(found.free[0])) found.params.id = found.free.pop();
  if (found.free.length && !found.params.text) found.params.text = found.free.join(' ');
  return found;
}

// The message with this id, in any namespace that the caller may read.
export async function findById(id, signal) {
  let names = namespaces();
  if (names[0] === undefined) names = [...new Set((await queues(signal)).rows.map((q) => q.namespace))];
  for (const namespace of names) {
    try { return await get('/v1/admin/message', { namespace, id, mask: true }, signal); } catch (error) { if (error.status !== 404) throw error; }
  }
  return null;
}

export async function load(route, signal) {
  const text = route.params.q || '';
  const query = readQuery(text);
  const { params } = query;
  if (query.wrong) return { query, wrong: query.wrong };
  if (!params.queue && params.id) {
    const found = await findById(params.id, signal);
    return { query, page: { messages: found ? [found] : [], looked: 1 } };
  }
  try {
    if (params.queue) return { query, page: await get('/v1/admin/messages', { ...params, limit: 100, cursor: route.params.cursor, mask: true }, signal) };
    if (Object.keys(params).length && has('GET', '/v1/admin/search')) return { query, page: await search(params, route.params, signal) };
  } catch (error) {
    if (!error.status || error.status === 401) throw error;
    return { query, wrong: messageOf(error) };
  }
  return { query, known: (await queues(signal)).rows };
}

const SEARCH_MS = 30e3;
let last = null; // of a search over all queues: a page that refreshes itself does not search again and again

async function search(params, { cursor, seen, of }, signal) {
  const key = JSON.stringify([params, cursor]);
  if (last?.key === key && last.at > acted.at && Date.now() - last.at < SEARCH_MS) return last.page;
  const page = await get('/v1/admin/search', { namespace: namespaces()[0], ...params, cursor, mask: true }, signal);
  page.looked += Number(seen) || 0;
  page.of ??= of && Number(of);
  last = { key, page, at: Date.now() };
  return page;
}

function due(m) {
  if (m.status === 'leased' || m.status === 'processing') return m.lease_expires_at ? `lease ends in ${duration(Date.parse(m.lease_expires_at) - Date.now())}` : '';
  if (m.status === 'delayed') return `due in ${duration(Date.parse(m.next_delivery || m.deliver_after) - Date.now())}`;
  if (m.status === 'dead') return `dead for ${duration(age(m.dead_since))}`;
  return `waits for ${duration(age(m.deliver_after || m.enqueued_at))}`;
}

export const preview = (m) => {
  if (m.payload === undefined) return `(${number(m.payload_size)} bytes)`;
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Uint8Array.from(atob(m.payload.slice(0, 160)), (c) => c.charCodeAt(0)), { stream: true });
  } catch { return `(${number(m.payload_size)} bytes)`; }
};

export function messageTable(messages, { short = false, select, caption = 'Messages' } = {}) {
  const columns = [
    { label: 'Message', cell: (m) => h('a', { class: 'row-link mono', href: href(['message', m.namespace, m.uid]) }, m.uid) },
    !short && { label: 'Queue', cell: (m) => `${m.namespace}/${m.queue}` },
    { label: 'State', cell: (m) => pill(m.status === 'processing' ? 'leased' : m.status, m.status === 'leased' || m.status === 'processing' ? 'in flight' : m.status) },
    messages.some((m) => m.kind) && { label: 'Kind', class: 'clip', cell: (m) => m.kind ?? '' },
    { label: 'Prio', num: true, cell: (m) => m.priority },
    { label: 'Key', class: 'clip', cell: (m) => m.key ?? '' },
    { label: 'Tries', num: true, cell: (m) => `${m.failure_attempts}/${m.max_attempts}` },
    { label: 'When', cell: (m) => h('span', { title: when(m.enqueued_at) }, due(m)) },
    { label: 'Worker', class: 'clip', cell: (m) => m.owner ?? '' },
    { label: 'Body', class: 'clip mono', cell: (m) => (m.error ? h('span', { class: 'bad' }, m.error.slice(0, 120)) : preview(m)) },
  ].filter(Boolean);
  return table({ columns, rows: messages, keyOf: (m) => m.uid, select, caption });
}

// --- the page ---------------------------------------------------------------------------------

function hints(known = []) {
  return h('div', { class: 'hints' }, h('h2', null, 'What can be searched'),
    h('dl', { class: 'facts wide' }, Object.entries(QUALIFIERS).map(([q, text]) => h('div', null, h('dt', null, h('code', null, q)), h('dd', null, text)))),
    known.length > 0 && [h('h2', null, 'Queues'), h('p', { class: 'chips' }, known.slice(0, 24).map((q) => h('a', { href: href(['messages'], { q: `queue:${q.namespace}/${q.queue}` }) }, `${q.namespace}/${q.queue}`)))],
    command('sluice browse QUEUE --state ready --key a'));
}

export function view({ query, page, wrong, known }, route) {
  const submit = (event) => { event.preventDefault(); app.go(href(['messages'], { q: event.target.elements.q.value })); };
  const chosen = page ? page.messages.filter((m) => selected.has(m.uid)) : [];
  const link = (more) => href(['messages'], { ...route.params, cursor: undefined, seen: undefined, of: undefined, ...more });
  return h('div', null, head('Messages'),
    h('form', { class: 'bar', role: 'search', 'aria-label': 'This page', onsubmit: submit },
      h('input', { type: 'search', id: 'query', name: 'q', class: 'grow mono', list: 'suggestions', oninput: (e) => suggestInto(e.target, SUGGESTED), value: route.params.q || '', 'aria-label': 'Query', placeholder: 'queue:ops/jobs state:ready error:timeout', spellcheck: 'false', autocomplete: 'off' }), h('datalist', { id: 'suggestions', 'data-keep': true }),
      h('button', { type: 'submit', class: 'btn primary' }, 'Search')),
    wrong && h('p', { class: 'error', role: 'alert' }, wrong),
    page && [
      h('div', { class: 'bar' }, query.params.queue && h('nav', { class: 'chips', 'aria-label': 'State' }, ['all', 'ready', 'delayed', 'leased', 'held', 'dead'].map((state) => h('a', { 'aria-current': state === (query.params.state || 'all') && 'true', href: link({ q: `${(route.params.q || '').replace(/\s*state:\S+/, '')} state:${state}`.trim() }) }, state === 'leased' ? 'in flight' : state))),
        h('span', { class: 'grow' }), chosen.length ? actsOnSelected(chosen) : query.params.queue && page.messages.length > 0 && actsOnAll(query.params),
        h('span', { class: 'muted', 'aria-live': 'polite' }, `${plural(page.messages.length, 'message')} shown, ${number(page.looked)}${page.of !== undefined ? ` of ${number(page.of)}` : ''} examined`)),
      page.messages.length ? messageTable(page.messages, { short: Boolean(query.params.queue), select: may('admin', page.messages[0].namespace) && app.redraw })
        : empty('No message matches', page.cursor !== undefined ? 'None so far. There is more to look at.' : 'Check the spelling, or leave out a condition.'),
      page.cursor !== undefined && h('p', null, h('a', { class: 'btn', href: link({ cursor: page.cursor, ...(query.params.queue ? {} : { seen: page.looked, of: page.of }) }) }, 'Continue')),
    ],
    !page && hints(known));
}

export const title = 'Messages';
