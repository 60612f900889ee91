// locks.js - lock keys that are held: their holder, the end of the lease, and how many wait.
import { h } from './dom.js';
import { get, namespaces, post, queues } from './api.js';
import { duration, number } from './format.js';
import { table } from './table.js';
import { act, app, ask, command, empty, head, href, tabs, toast } from './ui.js';

export const VIEWS = [['locks', 'Held locks'], ['documents', 'Documents']];

export async function load(route, signal) {
  let names = namespaces();
  if (names[0] === undefined) names = [...new Set(['default', ...(await queues(signal)).rows.map((q) => q.namespace)])];
  const pages = await Promise.all(names.slice(0, 50).map((namespace) => get('/v1/admin/locks', { namespace, prefix: route.params.prefix }, signal)));
  return { list: pages.flatMap((p) => p.locks), more: pages.some((p) => p.cursor !== undefined) };
}

export const release = (l) => ask({
  title: `Release ${l.key}`, danger: true, confirm: 'Release', typed: l.key,
  text: `${l.holder || 'Its holder'} loses the lock and what it staged. The next of ${number(l.waiters)} waiting gets it. Refused if another holder has it meanwhile.`,
  run: async () => { await post('/v1/admin/lock/release', { namespace: l.namespace, key: l.key, token: l.token }); toast('Released.'); },
});

export function view({ list, more }, route) {
  const columns = [
    { label: 'Key', cell: (l) => h('a', { class: 'row-link', href: href(['lock', l.namespace, l.key]) }, h('span', { class: 'ns' }, `${l.namespace}/`), l.key) }, { label: 'Holder', cell: (l) => l.holder ?? '' }, { label: 'Token', num: true, cell: (l) => l.token ?? '' },
    { label: 'Ends in', num: true, cell: (l) => duration(Date.parse(l.expires_at) - Date.now()) }, { label: 'Waiting', num: true, cell: (l) => number(l.waiters) }, { label: 'Version', num: true, cell: (l) => number(l.version) },
    { label: 'Actions', cell: (l) => act(h('span', null, 'Release', h('span', { class: 'hidden' }, ` ${l.key}`)), () => release(l), { namespace: l.namespace, kind: 'small danger' }) },
  ];
  return h('div', null, head('Locks and state'), tabs('locks', VIEWS, (id) => href([id])),
    h('form', { class: 'bar', role: 'search', 'aria-label': 'This page', onsubmit: (e) => { e.preventDefault(); app.go(href(['locks'], { prefix: e.target.elements.prefix.value })); } }, h('input', { type: 'search', name: 'prefix', class: 'grow', value: route.params.prefix || '', 'aria-label': 'Keys that begin with', placeholder: 'Keys that begin with' })),
    list.length ? table({ columns, rows: list, keyOf: (l) => `${l.namespace}/${l.key}`, caption: 'Held locks' }) : empty('No lock is held', 'A lock key is held by one owner at a time, with a fencing token and a document beside it.', command('sluice lock run report/nightly -- ./report')),
    more && h('p', { class: 'muted' }, ['Only the first of each namespace are shown; ', h('code', null, 'sluice lock list'), ' has all.']));
}

export const title = 'Locks and state';
