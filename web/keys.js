// orderkeys.js - ordering keys: how deep they are, which wait behind another message, and what holds them.
import { h } from './dom.js';
import { get, namespaces, queues } from './api.js';
import { age, duration, number, plural } from './format.js';
import { table } from './table.js';
import { act, app, command, empty, head, href, pill, sendDialog } from './ui.js';

const PAGE = 1000, FIRST = 5000, STEP = 20000, KEEP_MS = 10e3, SHOWN = 200;

// What was found so far, for one place: pages are added up, and a page that refreshes itself begins anew after a while.
let found = null;

const nameOf = (k) => `${k.namespace}/${k.queue} ${k.key}`;
const COUNTS = ['messages', 'ready', 'delayed', 'leased', 'held', 'dead'];

function merge(all, k) {
  const old = all.get(nameOf(k));
  if (!old) { all.set(nameOf(k), { ...k }); return; }
  for (const name of COUNTS) old[name] += k[name];
  if (k.oldest_at && (!old.oldest_at || k.oldest_at < old.oldest_at)) old.oldest_at = k.oldest_at;
  if (k.front) Object.assign(old, { front: k.front, front_state: k.front_state, owner: k.owner, until: k.until });
}

// Looks until `most` messages were examined in all; not further if the list has ended.
async function look(most, signal) {
  const own = found;
  while (own.at < own.spaces.length && own.looked < most) {
    const page = await get('/v1/admin/keys', { ...own.place, namespace: own.spaces[own.at], cursor: own.cursor, limit: PAGE }, signal);
    page.keys.forEach((k) => merge(own.all, k));
    own.looked += page.looked;
    own.plain += page.without_key;
    if (page.of !== undefined) own.of += page.of;
    own.cursor = page.cursor;
    if (page.cursor === undefined) own.at++;
  }
  own.done = own.at === own.spaces.length;
}

export async function keysOf(place, signal) {
  const name = JSON.stringify(place);
  if (found?.name !== name || Date.now() - found.began > (KEEP_MS * found.looked) / FIRST) {
    const { namespace, ...rest } = place, most = found?.name === name ? found.looked : FIRST;
    found = { name, place: rest, spaces: namespace ? [namespace] : namespaces(), at: 0, all: new Map(), looked: 0, plain: 0, of: 0, began: Date.now() };
    await look(Math.max(FIRST, most), signal);
  }
  return found;
}

const onward = async () => { await look(found.looked + STEP); app.refresh(); };

// --- the table --------------------------------------------------------------------------------

function holder(k) {
  if (!k.front) return '';
  const link = h('a', { href: href(['message', k.namespace, k.front]) }, pill(k.front_state, k.front_state === 'leased' ? 'in flight' : k.front_state), h('span', { class: 'hidden' }, ` the message in front of ${k.key}`));
  if (k.front_state === 'leased') return [link, k.owner && ` ${k.owner}`, h('span', { class: 'muted' }, `, ends in ${duration(Math.max(0, Date.parse(k.until) - Date.now()))}`)];
  if (k.front_state === 'delayed') return [link, h('span', { class: 'muted' }, ` due in ${duration(Math.max(0, Date.parse(k.until) - Date.now()))}`)];
  return link;
}

const search = (k, state) => href(['messages'], { q: `queue:${k.namespace}/${k.queue} key:${JSON.stringify(k.key)}${state ? ` state:${state}` : ''}` });

export function keyTable(list, { path, params, sort = '-messages', withQueue }) {
  const count = (id, label, title) => ({ id, label, title, num: true, value: (k) => k[id], cell: (k) => h('span', { class: k[id] ? null : 'zero' }, number(k[id])) });
  const columns = [
    { id: 'key', label: 'Key', class: 'clip', value: (k) => k.key, cell: (k) => h('a', { class: 'row-link', href: search(k), title: k.key }, k.key) },
    withQueue && { id: 'queue', label: 'Queue', value: (k) => `${k.namespace}/${k.queue}`, cell: (k) => h('a', { href: href(['queue', k.namespace, k.queue], { tab: 'keys' }) }, `${k.namespace}/${k.queue}`) },
    count('messages', 'Messages', 'in any state'), { ...count('held', 'Held', 'behind the message in front'), cell: (k) => (k.held ? h('a', { href: search(k, 'held') }, number(k.held)) : h('span', { class: 'zero' }, '0')) },
    count('dead', 'Dead'),
    { label: 'In front', cell: holder },
    { id: 'oldest', label: 'Oldest', num: true, title: 'when its oldest message was accepted', value: (k) => (k.oldest_at ? age(k.oldest_at) : null), cell: (k) => (k.oldest_at ? `${duration(age(k.oldest_at))} ago` : '') },
  ].filter(Boolean);
  return table({ columns, rows: list, keyOf: nameOf, sort, path, params, caption: 'Ordering keys' });
}

const VIEWS = { all: ['all', () => true], held: ['with held messages', (k) => k.held > 0], leased: ['held by a worker', (k) => k.held > 0 && k.front_state === 'leased'], delayed: ['waiting for a retry', (k) => k.held > 0 && k.front_state === 'delayed'] };

// For the page and for the tab of a queue. q: the words of the filter.
export function keysView(data, { path, params, withQueue }) {
  const only = VIEWS[params.only] ? params.only : 'all', text = (params.q || '').toLowerCase();
  const rows = [...data.all.values()].filter((k) => VIEWS[only][1](k) && nameOf(k).toLowerCase().includes(text));
  const deepest = rows.sort((a, b) => b.messages - a.messages);
  const link = (more) => href(path, { ...params, ...more });
  return [
    h('div', { class: 'bar' },
      h('input', { type: 'search', id: 'filter', class: 'grow', value: params.q || '', placeholder: withQueue ? 'Filter by key or queue' : 'Filter by key', 'aria-label': 'Filter', oninput: (e) => history.replaceState(null, '', link({ q: e.target.value })) || app.redraw() }),
      h('nav', { class: 'chips', 'aria-label': 'Which keys' }, Object.entries(VIEWS).map(([id, [label]]) => h('a', { href: link({ only: id }), 'aria-current': only === id && 'true' }, label)))),
    h('p', { class: 'muted bar', 'aria-live': 'polite' }, `${plural(data.all.size, 'key')} found; looked at ${number(data.looked)}${data.of >= data.looked ? ` of ${number(data.of)}` : ''} messages, ${number(data.plain)} without a key. `,
      !data.done && h('button', { type: 'button', class: 'btn small', onclick: onward }, 'Look further')),
    deepest.length ? keyTable(deepest.slice(0, SHOWN), { path, params, sort: params.sort, withQueue })
      : empty(data.all.size ? 'No key matches' : 'No message has a key', 'Messages of one key run one at a time, in order. The others of the key are held until the one in front has ended.', command("sluice push jobs --key customer-7 'hello'"), act('Send a sample', () => sendDialog({ namespace: params.namespace || path[1], queue: params.queue || path[2] }, { key: 'customer-7' }), { right: 'write', namespace: params.namespace || path[1] || 'default', kind: 'primary' })),
    deepest.length > SHOWN && h('p', { class: 'muted' }, `The ${SHOWN} deepest of ${number(deepest.length)} are shown.`),
  ];
}

// --- the page -----------------------------------------------------------------------------------

export async function load(route, signal) {
  const { namespace, queue } = route.params;
  const place = queue ? { namespace: namespace || 'default', queue } : { namespace };
  const [data, list] = await Promise.all([keysOf(place, signal), queues(signal)]);
  return { data, list: list.rows.filter((q) => q.held > 0).sort((a, b) => b.held - a.held) };
}

export function view({ data, list }, route) {
  const { namespace, queue } = route.params;
  return h('div', null, head('Keys'),
    h('p', { class: 'chips bar' }, h('a', { href: '#/keys', 'aria-current': !queue && !namespace && 'true' }, 'all queues'),
      list.slice(0, 12).map((q) => h('a', { href: href(['keys'], { namespace: q.namespace, queue: q.queue }), 'aria-current': queue === q.queue && namespace === q.namespace && 'true' }, `${q.namespace}/${q.queue}`, h('b', null, ` ${number(q.held)} held`)))),
    keysView(data, { path: ['keys'], params: route.params, withQueue: !queue }));
}

export const title = 'Keys';
