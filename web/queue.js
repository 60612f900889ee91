// queue.js - one queue: its counts, its plot, and views of its messages, keys, shares and settings.
import { h } from './dom.js';
import { get, has, may, post, put, remove } from './api.js';
import { chart, columns, stack } from './charts.js';
import { clock, duration, number, plural, rate, short, when } from './format.js';
import { history, nameOf, noteQueues, rateOf, seriesOf } from './samples.js';
import { drainDialog, pause, pauseDialog, pills, stateNotes } from './pause.js';
import { act, app, ask, card, command, empty, facts, head, href, pill, sendDialog, tabs, toast, wide } from './ui.js';
import { keysOf, keysView } from './keys.js';
import { messageTable } from './messages.js';
import { actsOnAll, actsOnSelected } from './bulk.js';
import { limitsTab } from './holds.js';
import { selected, table } from './table.js';
import { tags } from './queues.js';
import { prioritiesOf, sharesView } from './shares.js';
import { workerTable } from './workers.js';

const STATES = ['ready', 'delayed', 'leased', 'held', 'dead', 'damaged'];
const DUE = 1000;

export async function load(route, signal) {
  const [, namespace, queue] = route.path;
  const place = { namespace, queue };
  const tab = route.params.tab || 'messages';
  const wanted = [get('/v1/admin/queue', place, signal), history({ ...place, range: route.params.range || '10m' }, signal)];
  if (tab === 'messages') wanted.push(get('/v1/admin/messages', { ...place, state: route.params.state || 'all', limit: 50, cursor: route.params.cursor, mask: true }, signal));
  if (tab === 'keys' && has('GET', '/v1/admin/keys')) wanted.push(keysOf(place, signal));
  if (tab === 'due') wanted.push(get('/v1/admin/messages', { ...place, state: 'delayed', limit: DUE }, signal));
  if (tab === 'shares') wanted.push(Promise.all([prioritiesOf(place, signal), get('/v1/admin/queue/limits', { ...place, order: 'messages' }, signal).catch((error) => { if (!error.status) throw error; return null; })]));
  if (tab === 'settings' && has('GET', '/v1/admin/audit') && may('admin')) wanted.push(get('/v1/admin/audit', { ...place, verb: 'policy_set', limit: 10 }, signal).catch((error) => { if (!error.status) throw error; return null; }));
  if (tab === 'limits') wanted.push(get('/v1/admin/queue/limits', place, signal));
  if (tab === 'consumers') wanted.push(get('/v1/admin/workers', { namespace, queue, limit: 1000 }, signal));
  const [q, past, more] = await Promise.all(wanted);
  noteQueues([q]);
  return { q, past, more, tab };
}

function actions(q) {
  const { namespace } = q, place = { namespace, queue: q.queue };
  return [
    act(q.paused || q.draining ? 'Resume' : 'Pause', () => pause(q, !q.paused && !q.draining), { namespace, key: 'p' }),
    act('Pause for …', () => pauseDialog([q]), { namespace }),
    !q.draining && act('Drain', () => drainDialog([q]), { namespace }),
    act('Send', () => sendDialog(q), { namespace, right: 'write', key: 'e' }),
    act('Purge', () => ask({
      title: `Purge ${nameOf(q)}`, danger: true, confirm: 'Purge', typed: q.queue,
      text: `Deletes ${plural(q.ready + q.delayed + q.held, 'message')} for good: ${number(q.ready)} ready, ${number(q.delayed)} delayed, ${number(q.held)} held. ${number(q.leased)} in flight and ${plural(q.dead, 'dead letter')} stay.`,
      run: async () => { const done = await post('/v1/admin/queue/purge', place); toast(`${plural(done.purged, 'message')} deleted.`); },
    }), { namespace, kind: 'danger' }),
    act('Delete', () => ask({
      title: `Delete ${nameOf(q)}`, danger: true, confirm: 'Delete the queue', typed: q.queue,
      text: `Deletes the queue with its settings and ${plural(q.total, 'message')}, dead letters and ${number(q.leased)} in flight included. Their consumers get 404.`,
      run: async () => { await remove(`/v1/admin/queues/${encodeURIComponent(namespace)}/${encodeURIComponent(q.queue)}`, { force: 'true' }); app.go('#/queues'); },
    }), { namespace, kind: 'danger' }),
  ];
}

function eta(q) {
  const inside = rateOf(nameOf(q), 'accepted'), done = rateOf(nameOf(q), 'finished');
  if (!q.ready) return 'nothing is ready';
  if (q.empty_in_ms !== undefined) return `in about ${duration(q.empty_in_ms)}`; // by the last minute
  if (done === null) return 'counting …';
  if (done <= inside) return done || inside ? 'never at this rate: more comes in than is done' : 'nothing takes messages';
  return `in about ${duration((q.ready / (done - inside)) * 1000)}`;
}

// Settings that have not their default.
const differing = (q) => own(q.policy).filter(([name, value]) => name !== 'tags' && !isDefault(name, value)); // tags stand beside its name

function counts(q) {
  return card(null,
    h('div', { class: 'counts' }, STATES.filter((name) => name !== 'damaged' || q.damaged).map((name) => h('a', { class: `count-box k-${name}`, href: name === 'dead' ? href(['dead', q.namespace, q.queue]) : href(['queue', q.namespace, q.queue], { state: name }) },
      pill(name, { leased: 'in flight' }[name] || name), h('b', null, short(q[name]))))),
    stack(STATES.map((name) => ({ name, value: q[name], kind: name })), `messages by state of ${nameOf(q)}`),
    facts([['Oldest ready', q.oldest_ready_ms !== undefined && duration(q.oldest_ready_ms)], ['Empty again', eta(q)], ['In', `${rate(rateOf(nameOf(q), 'accepted'))} /s`], ['Done', `${rate(rateOf(nameOf(q), 'finished'))} /s`],
      ['Since start', `${short(q.since_start.accepted)} in, ${short(q.since_start.finished)} done, ${short(q.since_start.failed)} failed`], ['Shard', q.shard],
      ['Settings', h('a', { href: href(['queue', q.namespace, q.queue], { tab: 'settings', only: 'set' }) }, differing(q).length ? `${differing(q).map(([name]) => name).slice(0, 3).join(', ')}${differing(q).length > 3 ? ` and ${differing(q).length - 3} more` : ''} differ${differing(q).length === 1 ? 's' : ''}` : 'all have their defaults')]]));
}

const PERCENTILES = [['p50', 'in'], ['p95', 'wait'], ['p99', 'failed']];
const SPANS = [['10m', '10 minutes'], ['1h', '1 hour']];

// Arrivals and completions, above the backlog that they leave.
function plot(q, past, route) {
  const own = (name) => seriesOf(nameOf(q), name);
  const from = past ? clock(new Date(Date.parse(past.end) - past.steps * past.step_ms).toISOString()) : 'since this page opened';
  const waits = past?.ready?.map((v, i) => (v === null ? null : v + past.delayed[i] + past.leased[i] + past.held[i])) || own('depth');
  const times = (name) => PERCENTILES.map(([p, kind]) => ({ name: p, values: past[`${name}_${p}_ms`], kind }));
  const options = { format: duration, from, past, width: 340 };
  return [past && tabs(route.params.range || '10m', SPANS, (range) => href(route.path, { ...route.params, range }), 'How far back'), h('div', { class: 'charts three' },
    chart('Arrivals and completions, per second', [{ name: 'in', values: past?.in || own('accepted'), kind: 'in' }, { name: 'done', values: past?.done || own('finished'), kind: 'done' }, { name: 'failed', values: past?.failed || own('failed'), kind: 'failed' }],
      { ...options, format: rate, ground: { name: 'backlog', values: waits, kind: 'held', format: short } }),
    past && chart('Wait before delivery', times('wait'), options), past && chart('Run time', times('run'), options))];
}

function messagesTab(q, page, route) {
  const state = route.params.state || 'all';
  const link = (more) => href(['queue', q.namespace, q.queue], { ...route.params, cursor: undefined, ...more });
  const chosen = page.messages.filter((m) => selected.has(m.uid));
  return [
    h('div', { class: 'bar' }, h('nav', { class: 'chips', 'aria-label': 'State' }, ['all', ...STATES].map((name) => h('a', { href: link({ state: name }), 'aria-current': name === state && 'true' }, name === 'leased' ? 'in flight' : name))),
      h('span', { class: 'grow' }), chosen.length ? actsOnSelected(chosen) : page.messages.length > 0 && actsOnAll({ namespace: q.namespace, queue: q.queue, state }),
      h('a', { class: 'btn', href: href(['messages'], { q: `queue:${nameOf(q)}${state === 'all' ? '' : ` state:${state}`}` }) }, 'Search')),
    page.messages.length ? messageTable(page.messages, { short: true, select: may('admin', q.namespace) && app.redraw }) : empty(`No ${state === 'all' ? '' : `${state} `}messages`, 'Messages show up here as soon as they arrive.', command(`sluice push --namespace ${q.namespace} ${q.queue} 'hello'`), act('Send a sample', () => sendDialog(q), { right: 'write', namespace: q.namespace, kind: 'primary' })),
    page.cursor !== undefined && h('p', null, h('a', { class: 'btn', href: link({ cursor: page.cursor }) }, 'Next page')),
  ];
}

const HOUR = 3600e3;

// How many fall due in each of the next 24 hours, and later.
function dueTab(q, page) {
  const left = page.messages.map((m) => Date.parse(m.next_delivery || m.deliver_after) - Date.now());
  const hours = Array.from({ length: 24 }, (_, i) => left.filter((ms) => (i ? ms >= i * HOUR : true) && ms < (i + 1) * HOUR).length);
  const label = (i) => clock(Date.now() + i * HOUR).slice(0, 5);
  const later = left.filter((ms) => ms >= 24 * HOUR).length, soon = left.filter((ms) => ms < 60e3).length;
  if (!page.messages.length) return empty('Nothing is delayed', 'Messages with a delay, and failed ones before their next try, wait here.', command(`sluice push --namespace ${q.namespace} ${q.queue} --delay 10m 'later'`), act('Send a sample', () => sendDialog(q, { delay: '10m' }), { right: 'write', namespace: q.namespace, kind: 'primary' }));
  return [card(['Due in the next 24 hours ', page.cursor !== undefined && h('small', null, `of the first ${number(page.messages.length)} of ${number(q.delayed)} delayed messages`)],
    columns(hours.map((value, i) => ({ label: i % 3 ? '' : label(i), title: `${label(i)} to ${label(i + 1)}`, value })), 'Delayed messages by the hour in which they fall due'),
    h('p', { class: 'muted' }, `${plural(soon, 'message')} within a minute, ${number(later)} after 24 hours.`)), messageTable(page.messages.slice(0, 50), { short: true })];
}

// --- settings -----------------------------------------------------------------------------

const DEFAULTS = { lease: '30s', max_attempts: 5, ttl: '0s', idempotency_window: '1d', idempotency: 'first', dlq_retention: '0s' };
const isDefault = (name, value) => (name in DEFAULTS ? DEFAULTS[name] === value : value === 0 || value === false || value === '' || value === '0s' ||
  (name === 'retry' && value.kind === 'exponential' && value.jitter === 'full' && value.base === '1s' && value.max === '15m'));
const shown = (value) => (typeof value === 'object' ? Object.entries(value).map(([k, v]) => `${k} ${v}`).join(', ') : String(value));

function settingOf(name, value, text) {
  if (name === 'retry') return JSON.parse(text);
  if (typeof value === 'boolean') return text === 'true';
  return typeof value === 'number' ? Number(text) : text;
}

function edit(q, name, value) {
  const place = { namespace: q.namespace, queue: q.queue };
  const object = typeof value === 'object';
  ask({
    title: `${name} of ${nameOf(q)}`, confirm: 'Set',
    fields: [{ name: 'value', label: name, value: object ? JSON.stringify(value) : String(value), options: typeof value === 'boolean' ? ['true', 'false'] : undefined, help: 'It applies from the next delivery on.' }],
    run: async ({ value: text }) => {
      await post('/v1/admin/queue/policy', { [name]: settingOf(name, value, text) }, place);
      toast(`${name} is ${text} now.`, { undo: async () => {
        const now = (await get('/v1/admin/queue/policy', place))[name];
        if (JSON.stringify(now) !== JSON.stringify(settingOf(name, value, text))) throw new Error(`${name} has changed since; not undone.`);
        await post('/v1/admin/queue/policy', { [name]: value }, place);
        app.refresh();
      } });
    },
  });
}

const own = (policy) => Object.entries(policy).filter(([name]) => !['namespace', 'topic', 'queue', 'paused', 'draining'].includes(name));

function copySettings(q) {
  ask({
    title: `Copy the settings of ${nameOf(q)}`, confirm: 'Copy', text: 'The other queue gets all of these settings; its messages stay. A queue that does not exist is made.',
    fields: [{ name: 'to', label: 'To queue', required: true }],
    run: async ({ to }) => {
      const place = { namespace: q.namespace, queue: to }, now = await get('/v1/admin/queue/policy', { namespace: q.namespace, queue: q.queue });
      const before = await get('/v1/admin/queue/policy', place).catch(() => null);
      await put('/v1/admin/queue/policy', Object.fromEntries(own(now)), place);
      toast(`${q.namespace}/${to} has the settings of ${q.queue}.`, before && { undo: async () => { await put('/v1/admin/queue/policy', Object.fromEntries(own(before)), place); app.refresh(); } });
    },
  });
}

function historyCard(lines) {
  if (!lines?.length) return null;
  return card('Changes of the settings', table({ columns: [{ label: 'Time', cell: (l) => when(l.time) }, { label: 'Who', cell: (l) => l.who }, { label: 'Outcome', cell: (l) => l.outcome }, { label: 'Request', cell: (l) => h('code', null, l.request_id) }],
    rows: lines, keyOf: (l) => `${l.time} ${l.request_id}`, caption: 'Changes of the settings' }), h('p', null, h('a', { href: href(['audit'], { verb: 'policy_set', queue: lines[0].queue, namespace: lines[0].namespace }) }, 'All in the audit')));
}

function settingsTab(q, history, route) {
  const all = own(q.policy), set = differing(q), only = route.params.only === 'set';
  const rows = only ? set : all;
  const chip = (id, label) => h('a', { href: href(route.path, { ...route.params, only: id }), 'aria-current': (only ? 'set' : '') === id && 'true' }, label);
  return [h('div', { class: 'bar' }, h('nav', { class: 'chips', 'aria-label': 'Which settings' }, chip('', `all ${all.length}`), chip('set', `differ from the default ${set.length}`)), h('span', { class: 'grow' }),
    act('Copy to another queue', () => copySettings(q), { namespace: q.namespace })),
  h('section', { class: 'card' }, !rows.length && h('p', { class: 'muted' }, 'Every setting has its default.'), rows.length > 0 && wide('Settings of the queue', h('table', { class: 'table' }, h('caption', { class: 'hidden' }, 'Settings of the queue'),
    h('thead', null, h('tr', null, ['Setting', 'Value', 'Origin', ''].map((t) => h('th', { scope: 'col' }, t || h('span', { class: 'hidden' }, 'Change'))))),
    h('tbody', null, rows.map(([name, value]) => h('tr', { 'data-k': name, class: !isDefault(name, value) && 'marked' }, h('th', { scope: 'row' }, h('code', null, name)), h('td', null, shown(value)),
      h('td', null, isDefault(name, value) ? h('span', { class: 'muted' }, 'default') : pill('warn', 'set')),
      h('td', { class: 'num' }, act(h('span', null, 'Change', h('span', { class: 'hidden' }, ` ${name}`)), () => edit(q, name, value), { namespace: q.namespace, kind: 'small' })))))))), historyCard(history?.lines)];
}

export function view({ q, past, more, tab }, route) {
  const names = [['messages', 'Messages'], has('GET', '/v1/admin/keys') && ['keys', 'Keys'], ['shares', 'Shares, priorities'], ['due', 'Scheduled'], has('GET', '/v1/admin/workers') && ['consumers', 'Consumers'], has('GET', '/v1/admin/queue/limits') && ['limits', 'Limits and holds'], ['settings', 'Settings']].filter(Boolean);
  const content = { messages: () => messagesTab(q, more, route), keys: () => (more ? keysView(more, { path: route.path, params: route.params }) : empty('No list of keys', 'This server has none.')), shares: () => sharesView(q, more[1], more[0]), due: () => dueTab(q, more), settings: () => settingsTab(q, more, route), limits: () => limitsTab(q, more),
    consumers: () => workerTable(more.workers) };
  return h('div', null,
    head([h('span', { class: 'ns' }, `${q.namespace}/`), q.display_topic || q.queue, ' ', pills(q), tags(q)], actions(q)), stateNotes(q),
    counts(q), plot(q, past, route), tabs(tab, names, (id) => href(['queue', q.namespace, q.queue], { tab: id })), (content[tab] || content.messages)());
}

export const title = (route) => route.path[2];
