// settings.js - every setting of the server, and where it came from.
import { h } from './dom.js';
import { get, post, put } from './api.js';
import { plural } from './format.js';
import { table } from './table.js';
import { act, app, ask, head, href, pill, toast } from './ui.js';

export async function load(route, signal) {
  const [config, level] = await Promise.all([get('/v1/admin/config', {}, signal), get('/v1/admin/log-level', {}, signal)]);
  return { rows: Object.entries(config).map(([name, s]) => ({ name, ...s })), level: level.level };
}

const shown = (v) => (v === null || v === '' ? h('span', { class: 'zero' }, '–') : h('code', null, Array.isArray(v) ? v.join(', ') : String(v)));

export function view({ rows, level }, route) {
  const { q = '', only } = route.params;
  const found = rows.filter((r) => r.name.includes(q) && (only !== 'set' || r.from !== 'default'));
  const columns = [{ label: 'Setting', cell: (r) => h('code', null, r.name) }, { label: 'Value', class: 'wrap', cell: (r) => (r.secret ? '(secret)' : shown(r.value)) }, { label: 'Origin', cell: (r) => (r.from === 'default' ? h('span', { class: 'muted' }, 'default') : pill('ok', r.from)) }, { label: 'Reload', cell: (r) => (r.reload ? 'while it runs' : 'at the next start') }];
  return h('div', null, head('Settings',
    act(`Log level: ${level}`, () => ask({ title: 'Log level', confirm: 'Set', text: 'Until the next start.', fields: [{ name: 'level', label: 'Level', options: ['debug', 'info', 'warn', 'error', 'off'], value: level }], run: async (v) => { await put('/v1/admin/log-level', { level: v.level }); toast(`The log level is ${v.level}.`, { undo: async () => { await put('/v1/admin/log-level', { level }); app.refresh(); } }); } })),
    act('Reload', async () => { await post('/v1/admin/reload', {}); toast('All settings were read again.'); app.refresh(); })),
  h('div', { class: 'bar' }, h('input', { type: 'search', id: 'filter', class: 'grow', value: q, placeholder: 'Filter by name', 'aria-label': 'Filter by name', oninput: (e) => history.replaceState(null, '', href(['settings'], { ...route.params, q: e.target.value })) || app.redraw() }),
    h('nav', { class: 'chips', 'aria-label': 'Which' }, [['', 'all'], ['set', 'not default']].map(([id, label]) => h('a', { href: href(['settings'], { ...route.params, only: id }), 'aria-current': (only || '') === id && 'true' }, label))), h('span', { class: 'muted' }, plural(found.length, 'setting'))),
  table({ columns, rows: found, keyOf: (r) => r.name, caption: 'Settings' }));
}

export const title = 'Settings';
