// dead.js - dead letters: by queue, then by group of like errors, then redrive or delete.
import { h } from './dom.js';
import { get, has, may, post, queues } from './api.js';
import { spark } from './charts.js';
import { editBodies } from './deadedit.js';
import { age, duration, number, plural } from './format.js';
import { nameOf, noteQueues, rateOf } from './samples.js';
import { selected, table } from './table.js';
import { begin, HELD } from './tasks.js';
import { act, app, ask, card, command, empty, head, href, pill, queueLink, toast } from './ui.js';
import { messageTable } from './messages.js';

const SAMPLE = 200, MOST = 5000, GROUPS = 1000; // messages shown, and looked at for groups

export async function load(route, signal) {
  const [, namespace, queue] = route.path;
  if (!queue) {
    const found = await queues(signal);
    noteQueues(found.rows);
    return { list: found.rows.filter((q) => q.dead > 0), more: found.more };
  }
  const place = { namespace, queue };
  const filter = { group: route.params.group, error: route.params.error, reason: route.params.reason };
  const [q, page, groups] = await Promise.all([get('/v1/admin/queue', place, signal), get('/v1/admin/dlq', { ...place, ...filter, limit: SAMPLE, cursor: route.params.cursor, mask: true }, signal),
    Object.values(filter).some(Boolean) ? {} : groupsOf(place, signal)]);
  return { q, page, filter, ...groups };
}

// Counts by version, the most first.
function addVersions(a = [], b = []) {
  const counts = new Map();
  for (const { version, count } of [...a, ...b]) counts.set(version, (counts.get(version) || 0) + count);
  return [...counts].map(([version, count]) => ({ version, count })).sort((x, y) => y.count - x.count);
}

// The server groups a page of dead letters at a time; a group on several pages is one.
async function groupsOf(place, signal) {
  const found = new Map();
  let looked = 0, cursor;
  do {
    const page = await get('/v1/admin/dlq/groups', { ...place, cursor }, signal);
    for (const g of page.groups) {
      const name = found.has(g.group) || found.size < GROUPS ? g.group : 'other', old = found.get(name);
      if (!old) found.set(name, { ...g, group: name });
      else Object.assign(old, { count: old.count + g.count, hours: old.hours?.map((n, i) => n + g.hours[i]), versions: addVersions(old.versions, g.versions), last_at: Date.parse(g.last_at) > Date.parse(old.last_at) ? g.last_at : old.last_at });
    }
    looked += page.looked;
    cursor = page.cursor;
  } while (cursor !== undefined && looked < MOST);
  return { groups: [...found.values()].sort((a, b) => b.count - a.count), looked, all: cursor === undefined };
}

function listView({ list, more }) {
  const columns = [
    { label: 'Queue', cell: (q) => h('a', { class: 'row-link', href: href(['dead', q.namespace, q.queue]) }, h('span', { class: 'ns' }, `${q.namespace}/`), q.display_topic) },
    { label: 'Dead letters', num: true, cell: (q) => number(q.dead) },
    { label: 'Growth', num: true, cell: (q) => { const r = rateOf(nameOf(q), 'died'); return r ? `${r.toFixed(1)} /s` : '0 /s'; } },
    { label: 'Died since start', num: true, cell: (q) => number(q.since_start.died) },
  ];
  return h('div', null, head('Dead letters'), list.length ? table({ columns, rows: [...list].sort((a, b) => b.dead - a.dead), keyOf: nameOf, caption: 'Queues with dead letters' })
    : empty('No dead letters', 'A message comes here if it failed too often, was refused for good, or outlived its ttl.', command('sluice dlq list QUEUE')),
  more && h('p', { class: 'muted' }, 'Of the first 1,000 queues.'));
}

// --- redrive and delete -----------------------------------------------------------------------

// Calls again until nothing is left; stops if the page is closed.
async function throughAll(path, body, word, say) {
  let done = 0, cursor;
  for (;;) {
    const answer = await post(path, { ...body, limit: body.to ? 100 : 1000, cursor });
    done += answer[word];
    say(`${number(done)} done …`);
    if (!answer.more) return done;
    cursor = answer.cursor;
  }
}

async function dryRun(q, filter, say) {
  let matched = 0, cursor, answer;
  do {
    answer = await post('/v1/admin/dlq/redrive', { ...filter, dry_run: true, cursor });
    matched += answer.matched;
    cursor = answer.cursor;
  } while (answer.more && cursor !== undefined && matched < 100000);
  say?.(`${plural(matched, 'dead letter')} match${matched === 1 ? 'es' : ''}.`);
  return matched;
}

const clean = (o) => Object.fromEntries(Object.entries(o).filter(([, v]) => v !== undefined && v !== '' && v !== null));

const whole = (text) => (text ? Number(text) : undefined);

function dialog(q, filter, { verb, word }) {
  const place = { namespace: q.namespace, queue: q.queue };
  const redrive = verb === 'Redrive';
  const said = h('p', { class: 'muted', role: 'status' }, 'Counting …');
  const base = clean({ ...place, ...filter });
  dryRun(q, base, (text) => { said.textContent = text; }).catch((error) => { said.textContent = error.message; });
  ask({
    title: `${verb} dead letters of ${nameOf(q)}`, confirm: verb, danger: !redrive, extra: said, typed: redrive ? undefined : q.queue,
    text: [redrive ? 'They are ready again, and their failures are reset.' : 'They are deleted for good.', filter.group || filter.error || filter.reason ? ' Only letters of this group.' : ' All of the queue.'].join(''),
    fields: [...redrive ? [{ name: 'to', label: 'To another queue', help: 'Empty: back to this queue.' }, { name: 'rate', label: 'A second, at most', value: '100', help: 'Empty: as quickly as it goes.' },
      { name: 'failing', label: 'Stop when so many deliveries fail', help: 'Empty: never.' }] : [], HELD],
    run: async (v, say) => {
      try {
        await begin(clean({ ...base, action: verb.toLowerCase(), state: 'dead', to: v.to, rate: whole(v.rate), stop_if_failing: whole(v.failing) }), v.held);
        return;
      } catch (error) {
        if (error.status !== 400 || !/no tasks/.test(error.message)) throw error; // a shard on Redis
      }
      const done = await throughAll(`/v1/admin/dlq/${verb.toLowerCase()}`, clean({ ...base, to: v.to }), word, say);
      toast(`${plural(done, 'dead letter')} ${word}.`);
    },
  });
}

const redrive = (q, filter) => dialog(q, filter, { verb: 'Redrive', word: 'redriven' });
const drop = (q, filter) => dialog(q, filter, { verb: 'Delete', word: 'deleted' });

function chosen(q, messages) {
  const ids = messages.filter((m) => selected.has(m.uid)).map((m) => m.uid);
  const run = async (verb, word) => {
    const done = await post(`/dlq/${verb}`, { namespace: q.namespace, queue: q.queue, ids });
    selected.clear();
    app.refresh();
    toast(`${plural(done[word], 'dead letter')} ${word}.`);
  };
  if (!ids.length) return null;
  return [act(`Redrive ${ids.length}`, () => run('redrive', 'redriven'), { namespace: q.namespace, key: 'r' }), act(`Delete ${ids.length}`, () => ask({ title: `Delete ${plural(ids.length, 'dead letter')}`, danger: true, confirm: 'Delete', text: 'They are deleted for good.', run: () => run('delete', 'deleted') }), { namespace: q.namespace, kind: 'danger' })];
}

function groupTable(q, groups, looked, all) {
  const of = (g) => ({ group: g.group });
  const columns = [
    { label: 'Error', class: 'wrap', cell: (g) => (g.group === 'other' ? 'all other errors' : h('a', { class: 'row-link', href: href(['dead', q.namespace, q.queue], of(g)), title: g.sample }, g.error || 'no error text')) },
    { label: 'Reason', cell: (g) => g.reason && pill('dead', String(g.reason).replace('_', ' ')) },
    { label: 'Count', num: true, cell: (g) => number(g.count) },
    { label: 'Last 24 hours', cell: (g) => g.hours && spark(g.hours, `deaths an hour, the last 24: ${g.hours.join(', ')}`, 'dead') },
    { label: 'First', cell: (g) => (g.first_at ? `${duration(age(g.first_at))} ago` : '') }, { label: 'Last', cell: (g) => (g.last_at ? `${duration(age(g.last_at))} ago` : '') },
    groups.some((g) => g.versions?.length) && { label: 'Versions', class: 'wrap', title: 'of the workers that failed them last', cell: (g) => (g.versions || []).map((v, i) => [i > 0 && ', ', v.version, h('small', { class: 'muted' }, ` ×${number(v.count)}`)]) },
    { label: 'Sample', cell: (g) => g.sample_uid && h('a', { href: href(['message', q.namespace, g.sample_uid]) }, 'open') },
    may('admin', q.namespace) && { label: 'Actions', cell: (g) => g.group !== 'other' && act(h('span', null, 'Redrive', h('span', { class: 'hidden' }, ` ${g.error || g.group}`)), () => redrive(q, of(g)), { namespace: q.namespace, kind: 'small' }) },
  ].filter(Boolean);
  return card(['Groups ', h('small', null, all ? 'errors without their numbers and ids' : `of the ${number(looked)} oldest of ${number(q.dead)}`)], table({ columns, rows: groups, keyOf: (g) => g.group, caption: 'Groups of dead letters' }));
}

export function view(data, route) {
  if (data.list) return listView(data);
  const { q, page, groups, looked, all, filter } = data, filtered = Object.values(filter).some(Boolean);
  const only = filter.error || page.messages[0]?.error || filter.group || filter.reason;
  return h('div', null,
    head([queueLink(q), ' dead letters'], q.dead > 0 && [act(filtered ? 'Redrive these' : 'Redrive all', () => redrive(q, filter), { namespace: q.namespace, kind: 'primary' }), page.messages.length > 0 && has('POST', '/v1/admin/message/edit') && act('Edit bodies', () => editBodies(q, filter, page.messages), { namespace: q.namespace }), act(filtered ? 'Delete these' : 'Delete all', () => drop(q, filter), { namespace: q.namespace, kind: 'danger' })]),
    !q.dead && !page.messages.length ? empty('No dead letters', 'Every message of this queue was finished, or still has tries left.', command(`sluice dlq list --namespace ${q.namespace} ${q.queue}`)) : [
      !filtered && groupTable(q, groups, looked, all),
      filtered && h('p', null, 'Only one group: ', h('code', null, only), ' ', h('a', { href: href(['dead', q.namespace, q.queue]) }, 'show all')),
      h('div', { class: 'bar' }, h('h2', { class: 'grow' }, `Messages, oldest first`), chosen(q, page.messages)),
      messageTable(page.messages, { short: true, select: may('admin', q.namespace) && app.redraw, caption: 'Dead letters' }),
      page.cursor !== undefined && h('p', null, h('a', { class: 'btn', href: href(['dead', q.namespace, q.queue], { ...route.params, cursor: page.cursor }) }, 'Next page')),
    ]);
}

export const title = 'Dead letters';
