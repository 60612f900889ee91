// tasks.js - work that the server does in the background: redrive, move, delete, priority, run, delay.
import { h } from './dom.js';
import { get, namespaces, post, queues } from './api.js';
import { gauge } from './charts.js';
import { duration, number, plural, when } from './format.js';
import { table } from './table.js';
import { act, app, command, empty, head, href, pill, toast, UNDO_MS } from './ui.js';

// A field of a dialog that begins a task.
export const HELD = { name: 'held', kind: 'checkbox', value: true, label: `Wait ${UNDO_MS / 1000} s first, so that it can be undone` };

// held: the server waits before it begins, and a cancel until then is the undo.
export async function begin(task, held) {
  const begun = await post('/v1/admin/task', held ? { ...task, start_in: `${UNDO_MS / 1000}s` } : task);
  const undo = async () => {
    const now = await post('/v1/admin/task/cancel', { namespace: begun.namespace, task: begun.task });
    toast(now.done ? `It has begun: ${plural(now.done, 'message')} changed. It ends now.` : 'Undone: nothing has changed.');
    app.refresh();
  };
  toast(`The server does it${held ? ` in ${UNDO_MS / 1000} s` : ''}, also if you close this page.`, held ? { undo } : {});
  app.go('#/tasks');
}

export async function load(route, signal) {
  let names = namespaces();
  if (names[0] === undefined) names = [...new Set(['default', ...(await queues(signal)).rows.map((q) => q.namespace)])];
  const pages = await Promise.all(names.slice(0, 50).map((namespace) => get('/v1/admin/tasks', { namespace }, signal)));
  return { tasks: pages.flatMap((p) => p.tasks).sort((a, b) => Date.parse(b.created_at) - Date.parse(a.created_at)) };
}

// "redrive to jobs-slow", "priority 0".
function order(t) {
  if (t.to) return `${t.action} to ${t.to}`;
  if (t.to_source) return `${t.action} back`;
  if (t.until) return `${t.action} until ${when(t.until)}`;
  return t.action === 'priority' ? `priority ${t.priority}` : t.action;
}

const conditions = (filter) => Object.entries(filter).map(([name, value]) => `${name}: ${value}`).join(', ');

function progress(t) {
  const said = t.dry_run ? `${number(t.matched)} match` : `${number(t.done)} done`;
  return h('span', { class: 'meter' }, gauge(t.state === 'done' ? 1 : t.looked, t.state === 'done' ? 1 : t.total, `${number(t.looked)} of ${number(t.total)} examined`),
    ` ${said}${t.refused ? `, ${number(t.refused)} refused` : ''}`);
}

async function cancel(t) {
  await post('/v1/admin/task/cancel', { namespace: t.namespace, task: t.task });
  toast('The task ends after its step. What it has done stays done.');
  app.refresh();
}

const KINDS = { canceling: 'canceled', failed: 'bad' };

function note(t) {
  const wait = Date.parse(t.start_at) - Date.now();
  if (t.state === 'running' && wait > 0) return `begins in ${duration(wait)}`;
  return t.error ?? (t.rate ? `at most ${number(t.rate)} a second` : '');
}

export function view({ tasks }) {
  const columns = [
    { label: 'Queue', cell: (t) => h('a', { class: 'row-link', href: href(['queue', t.namespace, t.queue]) }, h('span', { class: 'ns' }, `${t.namespace}/`), t.queue) },
    { label: 'Act', cell: (t) => [order(t), t.dry_run && h('span', { class: 'muted' }, ' (only counts)')] },
    { label: 'Messages', class: 'wrap', cell: (t) => conditions(t.filter) || 'that wait' },
    { label: 'State', cell: (t) => pill(KINDS[t.state] || t.state, t.state) },
    { label: 'Progress', cell: progress },
    { label: 'Note', class: 'wrap', cell: note },
    { label: 'Began', cell: (t) => h('span', { title: `task ${t.task}` }, when(t.created_at), t.by && h('span', { class: 'muted' }, ` by ${t.by}`)) },
    { label: 'Actions', cell: (t) => t.state === 'running' && act(h('span', null, 'Cancel', h('span', { class: 'hidden' }, ` ${t.task}`)), () => cancel(t), { namespace: t.namespace, kind: 'small' }) },
  ];
  const running = tasks.filter((t) => t.state === 'running' || t.state === 'canceling').length;
  return h('div', null, head('Tasks', running > 0 && h('span', { class: 'muted' }, `${plural(running, 'task')} at work`)),
    tasks.length ? table({ columns, rows: tasks, keyOf: (t) => `${t.namespace} ${t.task}`, caption: 'Tasks' })
      : empty('No task', 'A redrive, a move or a delete of many messages runs here, also when this page is closed.', command('sluice task start redrive QUEUE')));
}

export const title = 'Tasks';
