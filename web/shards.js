// shards.js - shards, their logs and disks, and the nodes of a store.
import { h } from './dom.js';
import { get, may, post, root, session, ApiError } from './api.js';
import { gauge } from './charts.js';
import { bytes, duration, number } from './format.js';
import { table } from './table.js';
import { act, app, ask, card, facts, head, pill, toast } from './ui.js';

// Samples of /metrics with a label shard: Map of shard to {name: value}.
function byShard(text) {
  const found = new Map();
  for (const line of text.split('\n')) {
    const [, name, labels, value] = /^(\w+)\{([^}]*)\} (\S+)$/.exec(line) || [];
    const shard = labels && /(?:^|,)shard="([^"]*)"/.exec(labels)?.[1];
    if (shard === undefined || (/_bucket$/.test(name) && name !== 'sluice_sync_seconds_bucket')) continue;
    const row = found.get(shard) || { shard, buckets: [] };
    if (name === 'sluice_sync_seconds_bucket') row.buckets.push([/le="([^"]*)"/.exec(labels)[1], Number(value)]);
    else row[name] = (row[name] || 0) + Number(value);
    found.set(shard, row);
  }
  return [...found.values()].filter((r) => r.sluice_shard_up !== undefined || r.sluice_shard_available === 0);
}

// The upper end of the bucket that has the 99th part of 100 syncs, in milliseconds.
function p99({ buckets }) {
  const all = buckets.find(([le]) => le === '+Inf')?.[1];
  const found = all && buckets.find(([, n]) => n >= all * 0.99);
  return found && found[0] !== '+Inf' ? Number(found[0]) * 1000 : null;
}

async function metrics(signal) {
  const headers = session.token ? { Authorization: `Bearer ${session.token}` } : {};
  const answer = await fetch(new URL('metrics', root), { headers, signal, cache: 'no-store' }).catch(() => null);
  return answer?.ok ? byShard(await answer.text()) : null;
}

const orNull = (promise) => promise.catch((error) => { if (error instanceof ApiError) return null; throw error; });

export async function load(route, signal) {
  const [ready, shards, nodes] = await Promise.all([orNull(get('/readyz', {}, signal)), metrics(signal), may('admin') ? orNull(get('/v1/admin/nodes', {}, signal)) : null]);
  return { ready, shards, nodes };
}

const disk = (s) => (s.sluice_disk_size_bytes ? h('span', { class: 'meter' }, gauge(s.sluice_disk_size_bytes - s.sluice_disk_free_bytes, s.sluice_disk_size_bytes, 'used part of the disk'), ` ${bytes(s.sluice_disk_free_bytes)} of ${bytes(s.sluice_disk_size_bytes)} (${Math.round((s.sluice_disk_free_bytes / s.sluice_disk_size_bytes) * 100)} %)`) : bytes(s.sluice_disk_free_bytes));

// How far the store is behind this server, of a shard in a store.
const lag = (s) => (s.sluice_shard_unconfirmed_groups ? `${number(s.sluice_shard_unconfirmed_groups)} groups, ${duration(s.sluice_shard_unconfirmed_seconds * 1000)}` : 'none');

function shardTable(shards) {
  const stored = shards.some((s) => s.sluice_shard_owned !== undefined);
  const columns = [
    { label: 'Shard', cell: (s) => s.shard }, { label: 'State', cell: (s) => (s.sluice_shard_up === 0 || s.sluice_shard_available === 0 ? pill('bad', 'failed') : pill('ok', 'serves')) },
    { label: 'Sync p99', num: true, cell: (s) => (p99(s) === null || p99(s) === undefined ? '–' : `≤ ${duration(p99(s))}`) }, { label: 'Segments', num: true, cell: (s) => number(s.sluice_log_segments) },
    { label: 'Log, live of all', cell: (s) => (s.sluice_log_bytes ? h('span', { class: 'meter' }, gauge(s.sluice_log_live_bytes, s.sluice_log_bytes, 'live part of the log'), ` ${bytes(s.sluice_log_live_bytes)} of ${bytes(s.sluice_log_bytes)}`) : '–') },
    { label: 'Disk free', cell: disk },
    stored && { label: 'Role', cell: (s) => (s.sluice_shard_owned ? 'owner' : 'of another server') }, stored && { label: 'Not in the store yet', num: true, cell: lag }, { label: 'Waiting calls', num: true, cell: (s) => number(s.sluice_waiting) }, { label: 'Locks held', num: true, cell: (s) => number(s.sluice_lock_leases) },
    { label: 'Expired leases', num: true, cell: (s) => number(s.sluice_leases_expired_total) },
  ].filter(Boolean);
  return card('Shards', table({ columns, rows: shards, keyOf: (s) => s.shard, caption: 'Shards' }));
}

function nodeCards(data) {
  const own = data.nodes[0];
  const set = (verb) => async () => { await post(`/v1/admin/nodes/${verb}`, {}); toast(verb === 'drain' ? 'This server hands over its shards.' : 'This server takes part again.'); app.refresh(); };
  const columns = [{ label: 'Node', cell: (n) => [n.name, n.self && h('b', null, ' (this one)')] }, { label: 'Address', cell: (n) => n.address }, { label: 'State', cell: (n) => pill(n.living ? (n.draining ? 'warn' : 'ok') : 'bad', n.living ? (n.draining ? 'drains' : 'lives') : 'silent') },
    { label: 'Beat', num: true, cell: (n) => `${duration(n.beat_age_ms)} ago` }, { label: 'Shards', num: true, cell: (n) => number(n.shards) }, { label: 'Version', cell: (n) => n.version }];
  return [h('section', { class: 'card' }, h('div', { class: 'bar' }, h('h2', { class: 'grow' }, 'Nodes of the store'),
    own?.draining ? act('Resume this server', set('resume')) : act('Drain this server', () => ask({ title: 'Drain this server', confirm: 'Drain', text: 'It hands over its shards to other nodes and takes none.', run: set('drain') }))),
  table({ columns, rows: data.nodes, keyOf: (n) => n.name, caption: 'Nodes' })),
  card('Owners', table({ columns: [{ label: 'Shard', cell: (s) => `${s.name} ${s.shard}` }, { label: 'Owner', cell: (s) => s.owner || pill('bad', 'none') }, { label: 'Epoch', num: true, cell: (s) => s.epoch }, { label: 'Next', cell: (s) => s.next ?? '' }], rows: data.shards, keyOf: (s) => `${s.name} ${s.shard}`, caption: 'Owners of shards' }))];
}

export function view({ ready, shards, nodes }) {
  return h('div', null, head('Shards, stores and nodes'),
    card('This server', facts([['State', pill(ready?.status === 'ready' ? 'ok' : 'bad', ready?.status || 'not ready')], ['Shard map', ready?.shard_map && `version ${ready.shard_map.version}`], ['Store', nodes ? 'shared with other servers' : 'a folder of its own']]),
      [...(ready?.reasons || []), ...(ready?.warnings || [])].map((r) => h('p', null, pill(r.reason ? 'bad' : 'warn', r.reason || r.warning), ` ${r.name || ''}: ${r.message}`))),
    shards ? shardTable(shards) : card('Shards', h('p', { class: 'muted' }, 'The figures of shards come from /metrics, which needs the scope *:read.')),
    nodes && nodeCards(nodes));
}

export const title = 'Shards, stores and nodes';
