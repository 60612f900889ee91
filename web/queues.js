// queues.js - all queues in one table.
import { h } from './dom.js';
import { queues, may, post, PAGE } from './api.js';
import { download } from './bulk.js';
import { gauge, spark } from './charts.js';
import { duration, number, plural, rate, short } from './format.js';
import { nameOf, noteQueues, rateOf, seriesOf } from './samples.js';
import { selected, table } from './table.js';
import { drainDialog, pause, pauseDialog, statePill } from './pause.js';
import { act, app, ask, attempt, head, href, pill, queueLink, sendDialog, toast } from './ui.js';
import { welcome } from './overview.js';

let most = PAGE; // queues to load: more when the person asks for more

export async function load(route, signal) {
  const found = await queues(signal, most);
  noteQueues(found.rows);
  return found;
}

const count = (id, label, title) => ({
  id, label, title, num: true, value: (q) => q[id],
  cell: (q) => (q[id] ? h('a', { href: id === 'dead' ? href(['dead', q.namespace, q.queue]) : href(['messages'], { q: `queue:${nameOf(q)} state:${id}` }) }, short(q[id])) : h('span', { class: 'zero' }, '0')),
});
const speed = (id, label, counter) => ({ id, label, num: true, value: (q) => rateOf(nameOf(q), counter), cell: (q) => rate(rateOf(nameOf(q), counter)) });

// Tags lead to the other queues that have them.
const tagsOf = (q) => (q.tags ? q.tags.split(',') : []);
export const tags = (q) => tagsOf(q).map((tag) => [' ', h('a', { class: 'tag', href: href(['queues'], { q: `tag:${tag}` }) }, tag)]);

const matches = (q, filter) => (filter.startsWith('tag:') ? tagsOf(q).includes(filter.slice(4)) : nameOf(q).includes(filter.toLowerCase()) || tagsOf(q).some((tag) => tag.toLowerCase().includes(filter.toLowerCase())));

const COLUMNS = [
  { id: 'name', label: 'Queue', value: nameOf, cell: (q) => [queueLink(q), q.tags && h('span', { class: 'under' }, tags(q))] },
  { id: 'state', label: 'State', value: (q) => 2 * Number(q.paused) + Number(Boolean(q.draining)), cell: (q) => [statePill(q), q.warn_depth && q.total - q.dead - q.damaged > q.warn_depth && [' ', pill('warn', 'deep')], q.warn_age_ms && q.oldest_ready_ms > q.warn_age_ms && [' ', pill('warn', 'old')]] },
  count('ready', 'Ready'), count('delayed', 'Delayed'), count('leased', 'In flight', 'leased by a consumer'),
  count('held', 'Held', 'behind another message of their key'), count('dead', 'Dead'),
  { id: 'oldest', label: 'Oldest', num: true, title: 'how long the oldest ready message has waited', value: (q) => q.oldest_ready_ms ?? null, cell: (q) => duration(q.oldest_ready_ms) },
  { id: 'wait', label: 'Wait p95', num: true, title: 'from due to delivery, in the last minute: 95 of 100 waited no longer', value: (q) => q.wait_p95_ms ?? null, cell: (q) => duration(q.wait_p95_ms) },
  speed('in', 'In/s', 'accepted'), speed('done', 'Done/s', 'finished'), speed('failed', 'Failed/s', 'failed'),
  { id: 'spark', label: 'Backlog', cell: (q) => spark(seriesOf(nameOf(q), 'depth'), `backlog of ${nameOf(q)}`, 'ready') },
];
const CONSUMERS = {
  id: 'workers', label: 'Consumers', title: 'workers that say who they are, and their slots in use', value: (q) => q.consumers || 0,
  cell: (q) => h('span', { class: 'meter tight' }, h('a', { class: q.consumers ? null : 'zero', href: href(['queue', q.namespace, q.queue], { tab: 'consumers' }) }, number(q.consumers || 0)), q.slots > 0 && [gauge(q.slots_used, q.slots, `slots of ${nameOf(q)} in use`), ` ${number(q.slots_used)}/${number(q.slots)}`]),
};
const SHARD = { id: 'shard', label: 'Shard', value: (q) => q.shard, cell: (q) => q.shard || '' };
const ALWAYS = ['name', 'state'];

function picker(route, hidden, known) {
  return h('details', { class: 'picker' }, h('summary', { class: 'btn' }, 'Columns'), h('div', { class: 'menu' }, known.filter((c) => !ALWAYS.includes(c.id)).map((c) => h('label', null,
    h('input', { type: 'checkbox', checked: !hidden.includes(c.id), onchange: () => {
      const next = hidden.includes(c.id) ? hidden.filter((id) => id !== c.id) : [...hidden, c.id];
      app.go(href(['queues'], { ...route.params, hide: next.join('.') }));
    } }), ` ${c.label}`))));
}

export function view(data, route) {
  const { q: filter = '', sort = 'name' } = route.params;
  const hidden = (route.params.hide || '').split('.').filter(Boolean);
  const rows = data.rows.filter((q) => matches(q, filter));
  const known = [...COLUMNS, ...(data.rows.some((q) => q.consumers) ? [CONSUMERS] : [])];
  const columns = [...known, ...(data.rows.some((q) => q.shard) ? [SHARD] : [])].filter((c) => !hidden.includes(c.id));
  const chosen = rows.filter((q) => selected.has(nameOf(q)) && may('admin', q.namespace));
  const rest = chosen.reduce((n, q) => n + q.ready + q.delayed + q.held, 0);
  const purge = () => ask({
    title: `Purge ${plural(chosen.length, 'queue')}`, danger: true, confirm: 'Purge', typed: `purge ${chosen.length}`, text: `Deletes ${plural(rest, 'message')} for good, of ${chosen.slice(0, 8).map(nameOf).join(', ')}${chosen.length > 8 ? ' and others' : ''}. Messages in flight and dead letters stay.`,
    run: async () => { let n = 0; for (const q of chosen) n += (await post('/v1/admin/queue/purge', { namespace: q.namespace, queue: q.queue })).purged; selected.clear(); toast(`${plural(n, 'message')} deleted.`); },
  });
  const both = (on) => attempt(async () => { for (const q of chosen) await pause(q, on); selected.clear(); app.refresh(); });
  if (!data.rows.length) return h('div', null, head('Queues'), welcome());
  return h('div', null,
    head('Queues', act('Send a message', () => sendDialog(), { right: 'write', namespace: data.rows[0].namespace, key: 'e' })),
    h('div', { class: 'bar' },
      h('input', { type: 'search', id: 'filter', class: 'grow', placeholder: 'Filter by name or tag', 'aria-label': 'Filter by name or tag', value: filter,
        oninput: (e) => history.replaceState(null, '', href(['queues'], { ...route.params, q: e.target.value })) || app.refresh() }),
      picker(route, hidden, known),
      chosen.length > 0 && [act(`Pause ${chosen.length}`, () => both(true), { namespace: chosen[0].namespace, key: 'p' }), act(`Pause ${chosen.length} for …`, () => pauseDialog(chosen, () => selected.clear()), { namespace: chosen[0].namespace }), act(`Drain ${chosen.length}`, () => drainDialog(chosen, () => selected.clear()), { namespace: chosen[0].namespace }), act(`Resume ${chosen.length}`, () => both(false), { namespace: chosen[0].namespace }), act(`Purge ${chosen.length}`, purge, { namespace: chosen[0].namespace, kind: 'danger' })],
      h('button', { type: 'button', class: 'btn', onclick: () => download(chosen.length ? chosen : rows, 'queues.ndjson') }, 'Export'),
      h('span', { class: 'muted', 'aria-live': 'polite' }, rows.length === data.rows.length && !data.more ? plural(rows.length, 'queue') : `${number(rows.length)} of ${number(data.rows.length)}${data.more ? ' loaded' : ''}`)),
    table({ columns, rows: rows.slice(0, 500), keyOf: nameOf, sort, path: ['queues'], params: route.params, select: may('admin', rows[0]?.namespace) && app.redraw, caption: 'Queues', dense: true }),
    rows.length > 500 && h('p', { class: 'muted' }, `The first 500 of ${number(rows.length)} are shown. Filter by name to see others.`),
    data.more && h('p', null, h('button', { type: 'button', class: 'btn', onclick: () => { most *= 4; app.refresh(); } }, 'Load more queues'), ` ${number(data.rows.length)} are loaded. Sort and filter apply to these.`));
}

export const title = 'Queues';
