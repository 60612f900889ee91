// holds.js - what a queue and its shares use of their limits, and holds: nothing of a queue, share or key is delivered.
import { h } from './dom.js';
import { get, post } from './api.js';
import { gauge } from './charts.js';
import { duration, number } from './format.js';
import { table } from './table.js';
import { act, app, ask, card, pill, toast } from './ui.js';

const used = (part, whole, label) => (whole ? h('span', { class: 'meter' }, gauge(part, whole, `${label}: ${part} of ${whole}`), ` ${number(part)}/${number(whole)}`) : number(part));
const left = (moment) => `for ${duration(Date.parse(moment) - Date.now())}`;
const nameOf = (row) => (row.scope === 'queue' ? 'the queue' : `${row.scope} ${row.name ?? '(none)'}`);

function hold(q) {
  ask({
    title: `Hold a part of ${q.namespace}/${q.queue}`, confirm: 'Hold', text: 'Nothing of it is delivered for so long. It ends by itself.',
    fields: [{ name: 'scope', label: 'What', options: ['queue', 'share', 'key'], value: 'share' }, { name: 'name', label: 'Share or key' }, { name: 'for', label: 'For', value: '5m', required: true }],
    run: async (v) => { await post('/v1/admin/queue/hold', { namespace: q.namespace, queue: q.queue, scope: v.scope, for: v.for, ...(v.scope === 'queue' ? {} : { name: v.name }) }); toast('On hold.'); },
  });
}

const LIMITS = [
  ['concurrency', 'In flight at once, of the queue'], ['rate', 'Deliveries a second, of the queue'], ['rate_burst', 'at once'], ['share_concurrency', 'In flight at once, of each share'], ['share_rate', 'Deliveries a second, of each share'],
  ['key_rate', 'Deliveries a second, of each key'], ['share_weights', 'Weights of shares'], ['max_depth', 'Messages that may wait'], ['max_rate', 'Messages that are accepted a second'],
];

async function edit(q) {
  const place = { namespace: q.namespace, queue: q.queue };
  const before = await get('/v1/admin/queue/policy', place), known = LIMITS.filter(([name]) => name in before);
  const set = (policy) => post('/v1/admin/queue/policy', policy, place);
  ask({
    title: `Limits of ${q.namespace}/${q.queue}`, confirm: 'Set', text: '0 is no limit. They apply from the next delivery on; leases stay.',
    fields: known.map(([name, label]) => ({ name, label, value: before[name], placeholder: name === 'share_weights' ? 'gold=4,team-*=2' : undefined })),
    run: async (values) => {
      const changed = Object.fromEntries(known.map(([name]) => [name, typeof before[name] === 'number' ? Number(values[name]) : values[name]]).filter(([name, value]) => value !== before[name]));
      if (!Object.keys(changed).length) return;
      await set(changed);
      toast(`Set: ${Object.entries(changed).map(([name, value]) => `${name} ${value}`).join(', ')}.`, { undo: async () => {
        const now = await get('/v1/admin/queue/policy', place);
        for (const name of Object.keys(changed)) if (now[name] !== changed[name]) throw new Error(`${name} has changed since; not undone.`);
        await set(Object.fromEntries(Object.keys(changed).map((name) => [name, before[name]])));
        app.refresh();
      } });
    },
  });
}

const release = (q, row) => async () => {
  await post('/v1/admin/queue/hold', { namespace: q.namespace, queue: q.queue, scope: row.scope, name: row.name });
  toast(`${nameOf(row)} is delivered again.`);
  app.refresh();
};

export function limitsTab(q, data) {
  const { namespace } = q;
  const columns = [
    { label: 'Scope', cell: nameOf }, { label: 'Messages', num: true, cell: (r) => number(r.messages ?? 0) }, { label: 'In flight', cell: (r) => used(r.leased, r.concurrency, 'in flight') },
    { label: 'Rate', num: true, cell: (r) => (r.rate ? `${number(r.rate)}/s` : '') }, { label: 'Tokens', cell: (r) => (r.rate ? used(r.tokens, r.burst || r.rate, 'tokens') : '') },
    { label: 'Weight', num: true, cell: (r) => r.weight ?? '' }, { label: 'Delivered', num: true, cell: (r) => (r.delivered === undefined ? '' : number(r.delivered)) }, { label: 'State', cell: (r) => r.hold_until && pill('paused', `on hold ${left(r.hold_until)}`) },
  ];
  return [
    h('div', { class: 'bar' }, h('p', { class: 'muted grow' }, `The queue, and the shares nearest to a limit, of ${number(data.shares)}.`), act('Change limits', () => edit(q), { namespace }), act('Hold', () => hold(q), { namespace })),
    table({ columns, rows: data.limits, keyOf: (r) => `${r.scope} ${r.name ?? ''}`, caption: 'Limits in use' }),
    data.holds.length > 0 && card('Holds', table({ columns: [{ label: 'Scope', cell: nameOf }, { label: 'On hold', cell: (r) => left(r.until) },
      { label: 'Actions', cell: (r) => act(h('span', null, 'Release', h('span', { class: 'hidden' }, ` ${nameOf(r)}`)), release(q, r), { namespace, kind: 'small' }) }], rows: data.holds, keyOf: (r) => `${r.scope} ${r.name ?? ''}`, caption: 'Holds' })),
  ];
}
