// schedules.js - what fires by itself: when, what comes next, and what came of the last times.
import { h } from './dom.js';
import { get, namespaces, post, put, queues } from './api.js';
import { duration, number, when } from './format.js';
import { act, app, ask, command, empty, facts, head, href, pill, toast } from './ui.js';

export async function load(route, signal) {
  let names = namespaces();
  if (names[0] === undefined) names = [...new Set(['default', ...(await queues(signal)).rows.map((q) => q.namespace)])];
  const pages = await Promise.all(names.slice(0, 50).map((namespace) => get('/v1/admin/schedules', { namespace, limit: 100 }, signal)));
  const list = pages.flatMap((p) => p.schedules || []);
  return { list: await Promise.all(list.slice(0, 100).map((s) => get('/v1/admin/schedule', { namespace: s.namespace, name: s.name }, signal).catch(() => s))) };
}

// "0 2 * * *" in words, as far as it is simple.
export function inWords(text) {
  if (!/^\S+( \S+){4}$/.test(text)) return text;
  const [minute, hour, day, month, week] = text.split(' ');
  const days = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday', 'Sunday'];
  const at = /^\d+$/.test(minute) && /^\d+$/.test(hour) ? `at ${hour.padStart(2, '0')}:${minute.padStart(2, '0')}` : null;
  if (day === '*' && month === '*' && week === '*') {
    if (at) return `every day ${at}`;
    if (minute === '*' && hour === '*') return 'every minute';
    if (/^\*\/\d+$/.test(minute) && hour === '*') return `every ${minute.slice(2)} minutes`;
    if (/^\d+$/.test(minute) && hour === '*') return `every hour at minute ${minute}`;
  }
  if (at && day === '*' && month === '*' && /^[0-7]$/.test(week)) return `every ${days[week]} ${at}`;
  if (at && day === '*' && month === '*' && week === '1-5') return `Monday to Friday ${at}`;
  if (at && /^\d+$/.test(day) && month === '*' && week === '*') return `on day ${day} of the month ${at}`;
  return text;
}

const SIGNS = { fired: '●', run: '◆', overlap: '○' };

function one(s) {
  const { namespace } = s, body = { namespace, name: s.name };
  const run = (verb, text, undo) => async () => {
    await post(`/v1/admin/schedule/${verb}`, body);
    toast(text, undo && { undo: async () => { await post(`/v1/admin/schedule/${undo}`, body); app.refresh(); } });
    app.refresh();
  };
  return h('section', { class: 'card', 'data-k': `${namespace}/${s.name}` },
    h('div', { class: 'bar' }, h('h2', { class: 'grow' }, h('span', { class: 'ns' }, `${namespace}/`), s.name, ' ', pill(s.paused ? 'paused' : 'running', s.paused ? 'paused' : 'active')),
      act('Run now', run('run', 'A message was sent.'), { namespace }), s.paused ? act('Resume', run('resume', `${s.name} fires again.`, 'pause'), { namespace }) : act('Pause', run('pause', `${s.name} is paused.`, 'resume'), { namespace }),
      act('Delete', () => ask({ title: `Delete ${s.name}`, danger: true, confirm: 'Delete', typed: s.name, text: 'The schedule fires no more. Messages that it has sent stay.', run: async () => { await post('/v1/admin/schedule/delete', body); toast('Deleted.'); } }), { namespace, kind: 'danger' })),
    facts([['When', [inWords(s.when), ' ', h('code', { class: 'nowrap' }, s.when)]], ['Zone', s.zone], ['Queue', s.message?.queue && h('a', { href: href(['queue', namespace, s.message.queue]) }, `${namespace}/${s.message.queue}`)], ['If missed', s.missed], ['If it still runs', s.overlap], ['Fired', number(s.firings)], ['Missed', number(s.missed_ticks)]]),
    facts([['Next', (s.next || []).length ? h('span', null, s.next.map((t, i) => [i > 0 && ' · ', h('time', { datetime: t, title: t }, when(t)), i === 0 && ` (in ${duration(Date.parse(t) - Date.now())})`])) : 'never'],
      ['Last', (s.last || []).length ? h('span', { class: 'dots' }, [...s.last].reverse().map((e) => h('span', { class: `dot k-${e.outcome === 'overlap' ? 'warn' : 'ok'}`, title: `${e.outcome} ${when(e.at)}` }, SIGNS[e.outcome] || '●', h('span', { class: 'hidden' }, ` ${e.outcome} ${when(e.at)}`)))) : 'not yet']]));
}

const create = () => ask({
  title: 'New schedule', confirm: 'Create',
  fields: [{ name: 'namespace', label: 'Namespace', value: 'default', required: true }, { name: 'name', label: 'Name', value: 'nightly', required: true }, { name: 'when', label: 'When', value: '0 2 * * *', required: true, help: 'Cron, or "every 10m".' }, { name: 'zone', label: 'Zone', value: 'UTC' },
    { name: 'queue', label: 'Queue', required: true, value: 'reports' }, { name: 'body', label: 'Body', kind: 'area', value: '{"day": "last"}' }],
  run: async (v) => { await put('/v1/admin/schedule', { namespace: v.namespace, name: v.name, when: v.when, zone: v.zone || undefined, message: { queue: v.queue, text: v.body } }); toast(`${v.name} is set.`); },
});

export function view({ list }) {
  return h('div', null, head('Schedules', act('New schedule', create, { namespace: 'default', kind: 'primary' })),
    list.length ? list.map(one) : empty('No schedule yet', 'A schedule sends a message again and again: every night, every ten minutes.', command(`sluice schedule set nightly --when '0 2 * * *' --queue reports '{"day": "last"}'`)));
}

export const title = 'Schedules';
