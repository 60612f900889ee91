// tasks.js - work that the server does in the background: redrive, move, delete, priority.
import { h } from './dom.js';
import { get, post } from './api.js';
import { gauge } from './charts.js';
import { number, when } from './format.js';
import { table } from './table.js';
import { act, app, command, empty, head, pill, toast } from './ui.js';

export const load = (route, signal) => get('/v1/admin/tasks', {}, signal);

export function view({ tasks }) {
  const of = (t) => t.filter || t;
  const columns = [
    { label: 'Task', cell: (t) => h('span', { class: 'mono' }, t.task) }, { label: 'Action', cell: (t) => t.action }, { label: 'Queue', cell: (t) => [of(t).namespace || t.namespace, of(t).queue].filter(Boolean).join('/') }, { label: 'State', cell: (t) => pill(t.state) },
    { label: 'Progress', cell: (t) => h('span', { class: 'meter' }, gauge(t.looked ?? t.done, t.total || t.matched || 1, 'progress'), ` ${number(t.done)} done${t.failed ? `, ${number(t.failed)} failed` : ''}`) },
    { label: 'By', cell: (t) => t.by ?? '' }, { label: 'Started', cell: (t) => when(t.started_at) }, { label: 'Error', class: 'wrap', cell: (t) => t.error ?? '' },
    { label: 'Actions', cell: (t) => t.state === 'running' && act(h('span', null, 'Cancel', h('span', { class: 'hidden' }, ` ${t.task}`)), async () => { await post('/v1/admin/task/cancel', { task: t.task }); toast('Canceled.'); app.refresh(); }, { namespace: of(t).namespace || t.namespace, kind: 'small' }) },
  ];
  return h('div', null, head('Tasks'), tasks.length ? table({ columns, rows: tasks, keyOf: (t) => t.task, caption: 'Tasks' }) : empty('No task', 'A redrive, a move or a delete of many messages runs here, also when this page is closed.', command('sluice task list')));
}

export const title = 'Tasks';
