// audit.js - who did what.
import { h } from './dom.js';
import { get, may, post } from './api.js';
import { number, when } from './format.js';
import { restore } from './pause.js';
import { table } from './table.js';
import { act, app, command, empty, head, href, toast } from './ui.js';

const text = (value) => (typeof value === 'string' ? value : JSON.stringify(value));

// What differs, as "rate: 0 → 5".
export function changeOf({ before, after }) {
  if (!before || !after) return [];
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])].filter((name) => name !== 'more');
  return names.map((name) => `${name}: ${name in before ? text(before[name]) : 'none'} → ${name in after ? text(after[name]) : 'none'}`);
}

// Sets what was there before, unless somebody has changed it since. The line has all members: no "more".
async function undo({ verb, namespace, queue, before, after }) {
  const place = { namespace, queue }, policy = verb === 'policy_set';
  const now = await get(policy ? '/v1/admin/queue/policy' : '/v1/admin/queue', place);
  const changed = Object.keys({ ...before, ...after }).find((name) => JSON.stringify(now[name]) !== JSON.stringify(after[name]));
  if (changed) throw new Error(`${changed} has changed since; not undone.`);
  if (policy) await post('/v1/admin/queue/policy', before, place);
  else await restore({ ...place, ...before }, { paused: 'paused' in before, draining: 'draining' in before || 'draining' in after });
  toast(`${namespace}/${queue} is as it was before.`);
  app.refresh();
}

const canUndo = (l) => l.outcome === 'ok' && l.queue && l.before && l.after && !l.after.more && may('admin', l.namespace) &&
  (l.verb === 'policy_set' ? Object.keys(l.before).length > 0 && !('paused' in l.before) : l.verb === 'pause' && ['paused', 'draining'].some((name) => name in l.before || name in l.after));

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
  const columns = [{ label: 'Time', cell: (l) => when(l.time) }, { label: 'Who', cell: (l) => l.who || 'this machine' }, { label: 'What', cell: (l) => h('code', null, l.verb ?? l.action ?? '') }, { label: 'Where', cell: (l) => [l.namespace, l.queue].filter(Boolean).join('/') }, { label: 'Change', class: 'wrap', cell: (l) => changeOf(l).map((c) => h('div', null, c)) }, { label: 'Count', num: true, cell: (l) => l.count ?? '' }, { label: 'Outcome', cell: (l) => l.outcome ?? l.result ?? '' }, { label: 'Request', cell: (l) => h('code', null, l.request_id) },
    { label: 'Actions', cell: (l) => canUndo(l) && act(h('span', null, 'Undo', h('span', { class: 'hidden' }, ` ${l.verb} of ${l.namespace}/${l.queue} at ${when(l.time)}`)), () => undo(l), { namespace: l.namespace, kind: 'small' }) }];
  return h('div', null, head('Audit'), h('form', { class: 'bar', role: 'search', 'aria-label': 'This page', onsubmit: submit }, ['who', 'verb', 'namespace', 'queue'].map(field), h('button', { class: 'btn', type: 'submit' }, 'Filter'), h('span', { class: 'muted' }, `${number(data.looked)} lines looked at${data.whole ? '' : ', the newest part of the file'}`)),
    data.lines.length ? table({ columns, rows: data.lines, keyOf: (l) => JSON.stringify(l), caption: 'Audit' }) : empty('No line matches', 'Leave out a condition.'));
}

export const title = 'Audit';
