// workers.js - consumers that say who they are, with quiet and stop.
import { h } from './dom.js';
import { get, namespaces, post } from './api.js';
import { gauge } from './charts.js';
import { age, duration, number, plural } from './format.js';
import { table } from './table.js';
import { act, app, ask, command, empty, head, href, pill, toast } from './ui.js';

const STALE_MS = 20e3;

export async function load(route, signal) {
  const pages = await Promise.all(namespaces().slice(0, 50).map((namespace) => get('/v1/admin/workers', { namespace, limit: 1000 }, signal)));
  return { list: pages.flatMap((p) => p.workers), more: pages.some((p) => p.cursor) };
}

function actions(w) {
  const set = (verb, text) => async () => { await post(`/v1/admin/worker/${verb}`, { namespace: w.namespace, worker: w.worker }); toast(text); app.refresh(); };
  const named = (label) => h('span', null, label, h('span', { class: 'hidden' }, ` ${w.worker}`));
  return h('span', { class: 'buttons' },
    w.state === 'running' ? act(named('Quiet'), set('quiet', `${w.worker} takes no more messages.`), { namespace: w.namespace, kind: 'small' }) : act(named('Resume'), set('resume', `${w.worker} takes messages again.`), { namespace: w.namespace, kind: 'small' }),
    w.state !== 'stop' && act(named('Stop'), () => ask({ title: `Stop ${w.worker}`, danger: true, confirm: 'Stop', text: `It finishes ${plural(w.used ?? 0, 'message')} and ends. Whatever started it may start it again.`, run: set('stop', `${w.worker} was asked to end.`) }), { namespace: w.namespace, kind: 'small danger' }));
}

// The messages that it has in flight.
const flightOf = (w) => href(['messages'], { q: w.queues?.length === 1 ? `queue:${w.namespace}/${w.queues[0]} state:leased worker:${JSON.stringify(w.worker)}` : `state:leased worker:${JSON.stringify(w.worker)}` });

export function workerTable(list) {
  const columns = [
    { label: 'Worker', class: 'wrap', cell: (w) => h('span', { class: 'mono' }, w.worker) }, { label: 'State', cell: (w) => [pill(w.state), age(w.last_beat) > STALE_MS && pill('warn', 'silent')] },
    { label: 'Host', cell: (w) => w.host ?? '' }, { label: 'Version', cell: (w) => w.version ?? '' },
    { label: 'Queues', class: 'wrap', cell: (w) => (w.queues || []).map((q, i) => [i > 0 && ', ', h('a', { href: href(['queue', w.namespace, q]) }, q)]) },
    { label: 'Slots', title: 'in use, of all; what they work on', cell: (w) => h('a', { class: 'meter', href: flightOf(w) }, w.slots > 0 && gauge(w.used, w.slots, `${w.used} of ${w.slots} slots`), w.slots ? ` ${number(w.used)}/${number(w.slots)}` : 'open', h('span', { class: 'hidden' }, `: what ${w.worker} has in flight`)) },
    { label: 'Lost', num: true, title: 'leases that it lost', cell: (w) => number(w.lost_leases) }, { label: 'Late', num: true, title: 'leases that it extended when less than a quarter of them was left', cell: (w) => number(w.late_renewals) },
    { label: 'Crashes', num: true, title: 'processes of this name that ended with messages in their hands', cell: (w) => (w.crashes ? [pill('bad', number(w.crashes)), h('small', { class: 'muted' }, ` ${duration(age(w.crashed_at))} ago`)] : h('span', { class: 'zero' }, '0')) }, { label: 'Last beat', num: true, cell: (w) => `${duration(age(w.last_beat))} ago` },
    { label: 'Actions', cell: actions },
  ];
  return list.length ? table({ columns, rows: list, keyOf: (w) => `${w.namespace}/${w.worker}`, caption: 'Workers' })
    : empty('No worker has told its name', 'The command sluice work and the workers of the client libraries show up here by themselves. Any other consumer does if it sends the field Sluice-Worker. A worker is forgotten 60 s after its last beat.', command('sluice work mail -- ./send-mail'));
}

export const view = ({ list, more }) => h('div', null, head('Workers'), workerTable(list), more && h('p', { class: 'muted' }, ['Only the first 1,000 are shown; ', h('code', null, 'sluice worker list'), ' has all.']));
export const title = 'Workers';
