// audit.js - who did what.
import { h } from './dom.js';
import { get } from './api.js';
import { number, when } from './format.js';
import { table } from './table.js';
import { app, command, empty, head, href } from './ui.js';

export async function load(route, signal) {
  const { who, verb, namespace, queue } = route.params;
  try {
    return await get('/v1/admin/audit', { limit: 200, who, verb, namespace, queue }, signal);
  } catch (error) {
    if (error.status === 404) return { none: true };
    throw error;
  }
}

export function view(data, route) {
  if (data.none) return h('div', null, head('Audit'), empty('No audit file', 'With an audit file the server writes a line for every change: who, what, where.', command('sluiced --audit-file audit.jsonl')));
  const submit = (e) => { e.preventDefault(); app.go(href(['audit'], Object.fromEntries(new FormData(e.target)))); };
  const field = (name) => h('input', { type: 'search', name, value: route.params[name] || '', 'aria-label': name, placeholder: name });
  const columns = [{ label: 'Time', cell: (l) => when(l.time) }, { label: 'Who', cell: (l) => l.who || 'this machine' }, { label: 'What', cell: (l) => h('code', null, l.verb ?? l.action ?? '') }, { label: 'Where', cell: (l) => [l.namespace, l.queue].filter(Boolean).join('/') }, { label: 'Count', num: true, cell: (l) => l.count ?? '' }, { label: 'Outcome', cell: (l) => l.outcome ?? l.result ?? '' }, { label: 'Request', cell: (l) => h('code', null, l.request_id) }];
  return h('div', null, head('Audit'), h('form', { class: 'bar', role: 'search', 'aria-label': 'This page', onsubmit: submit }, ['who', 'verb', 'namespace', 'queue'].map(field), h('button', { class: 'btn', type: 'submit' }, 'Filter'), h('span', { class: 'muted' }, `${number(data.looked)} lines looked at${data.whole ? '' : ', the newest part of the file'}`)),
    data.lines.length ? table({ columns, rows: data.lines, keyOf: (l) => JSON.stringify(l), caption: 'Audit' }) : empty('No line matches', 'Leave out a condition.'));
}

export const title = 'Audit';
