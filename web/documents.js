// documents.js - the documents of lock keys: of one namespace, by a selector.
import { h } from './dom.js';
import { get, namespaces, queues } from './api.js';
import { plural } from './format.js';
import { VIEWS } from './locks.js';
import { table } from './table.js';
import { app, command, empty, head, href, messageOf, tabs } from './ui.js';

const LIMIT = 200;

export async function load(route, signal) {
  let names = namespaces();
  if (names[0] === undefined) names = [...new Set(['default', ...(await queues(signal)).rows.map((q) => q.namespace)])];
  const namespace = route.params.namespace || names[0];
  try {
    return { names, namespace, page: await get('/v1/query', { namespace, selector: route.params.q, limit: LIMIT, cursor: route.params.cursor }, signal) };
  } catch (error) {
    if (!error.status || error.status === 401) throw error;
    return { names, namespace, wrong: messageOf(error) };
  }
}

export function view({ names, namespace, page, wrong }, route) {
  const submit = (event) => { event.preventDefault(); app.go(href(['documents'], Object.fromEntries(new FormData(event.target)))); };
  const columns = [{ label: 'Key', cell: (key) => h('a', { class: 'row-link', href: href(['lock', namespace, key]) }, h('span', { class: 'ns' }, `${namespace}/`), key) }];
  return h('div', null, head('Locks and state'), tabs('documents', VIEWS, (id) => href([id])),
    h('form', { class: 'bar', role: 'search', 'aria-label': 'This page', onsubmit: submit },
      h('select', { name: 'namespace', 'aria-label': 'Namespace' }, names.map((name) => h('option', { value: name, selected: name === namespace }, name))),
      h('input', { type: 'search', name: 'q', class: 'grow mono', value: route.params.q || '', 'aria-label': 'Selector', placeholder: '/status="paid",/attempts>=2', spellcheck: 'false' }), h('button', { type: 'submit', class: 'btn primary' }, 'Search')),
    wrong && h('p', { class: 'error', role: 'alert' }, wrong),
    page && (page.keys.length ? [h('p', { class: 'muted', 'aria-live': 'polite' }, `${plural(page.keys.length, 'document')} shown`), table({ columns, rows: page.keys, keyOf: (key) => key, caption: 'Documents' })]
      : empty('No document matches', 'A lock key can have a JSON document beside it, which its holder changes under the lease.', command('sluice state edit KEY'))),
    page?.cursor && h('p', null, h('a', { class: 'btn', href: href(['documents'], { ...route.params, cursor: page.cursor }) }, 'Continue')));
}

export const title = 'Documents';
