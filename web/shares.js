// shares.js - the shares of a queue: what each has and gets, beside what its weight is worth; and the priorities.
import { h } from './dom.js';
import { bars, gauge } from './charts.js';
import { duration, number, plural } from './format.js';
import { table } from './table.js';
import { act, card, command, empty, href, pill, sendDialog } from './ui.js';

const NOISY = 2; // a share that waits with so many times its part of the messages is noisy

const percent = (part) => `${(part * 100).toFixed(part < 0.1 ? 1 : 0)} %`;
const part = (value, whole, label) => (whole ? h('span', { class: 'meter' }, gauge(value, whole, label), ` ${percent(value / whole)}`) : '');

// Has it much more of the backlog than its weight is worth, beside others?
export const isNoisy = (share, of) => of.shares > 1 && share.messages > 10 && share.messages / of.messages > NOISY * (share.weight / of.weight) && share.messages / of.messages > 0.5;

function shareCard(q, { limits, shares }) {
  const rows = limits.filter((r) => r.scope === 'share');
  const sum = (name) => rows.reduce((n, r) => n + (r[name] || 0), 0);
  const of = { shares: rows.length, messages: sum('messages'), delivered: sum('delivered'), weight: sum('weight') };
  const columns = [
    { label: 'Share', cell: (r) => r.name ?? h('span', { class: 'muted' }, '(no share)') },
    { label: 'Messages', num: true, cell: (r) => number(r.messages) }, { label: 'Of the backlog', cell: (r) => part(r.messages, of.messages, `${r.name ?? 'no share'}: part of the backlog`) },
    { label: 'Ready', num: true, cell: (r) => number(r.ready) }, { label: 'In flight', num: true, cell: (r) => number(r.leased) },
    { label: 'Weight', num: true, cell: (r) => number(r.weight) }, { label: 'Its weight is worth', num: true, cell: (r) => (of.weight ? percent(r.weight / of.weight) : '') },
    { label: 'Of the deliveries', cell: (r) => part(r.delivered || 0, of.delivered, `${r.name ?? 'no share'}: part of the deliveries`) },
    { label: 'State', cell: (r) => [isNoisy(r, of) && pill('warn', 'noisy'), r.hold_until && pill('paused', `on hold for ${duration(Date.parse(r.hold_until) - Date.now())}`)] },
  ];
  return card(['Shares ', h('small', null, shares > rows.length ? `the ${rows.length} with the most messages of ${number(shares)}` : plural(rows.length, 'share'))],
    table({ columns, rows, keyOf: (r) => r.name ?? '', caption: 'Shares' }),
    h('p', { class: 'muted' }, 'Deliveries are counted since a share has messages. Noisy: more than half of the backlog, and more than twice what its weight is worth.'));
}

export function sharesView(q, usage, pages, sample) {
  const all = pages.flatMap((p) => p.messages), count = new Map();
  for (const m of all) count.set(m.priority, (count.get(m.priority) || 0) + 1);
  const rows = [...count].sort((a, b) => a[0] - b[0]).map(([priority, value]) => ({ label: String(priority), value }));
  if (!all.length && !usage?.shares) return empty('No waiting messages', 'The shares of a queue take turns. The lowest priority goes first.', command(`sluice push --namespace ${q.namespace} ${q.queue} --share gold --priority 1 'hello'`), act('Send a sample', () => sendDialog(q), { right: 'write', namespace: q.namespace, kind: 'primary' }));
  return [usage && shareCard(q, usage),
    rows.length > 0 && card(['Priorities ', h('small', null, `of the first ${number(sample)} ready, in flight and held messages each: ${plural(all.length, 'message')}`)], bars(rows, 'Messages by priority')),
    h('p', null, h('a', { href: href(['queue', q.namespace, q.queue], { tab: 'limits' }) }, 'Limits and holds of shares'))];
}
