// table.js - tables whose rows are links: sort, filter, selection. The URL holds the sort.
import { h } from './dom.js';
import { href } from './ui.js';

export const selected = new Set(); // keys of rows, of the page that is shown

// columns: [{id, label, num, value(row), cell(row), title}]; row keys by keyOf; sort: "ready" or "-ready".
export function table({ columns, rows, keyOf, sort, path, params, select, caption, first, dense }) {
  const [down, by] = sort?.startsWith('-') ? [true, sort.slice(1)] : [false, sort];
  const column = columns.find((c) => c.value && c.id === by);
  const order = column ? [...rows].sort((a, b) => compare(column.value(a), column.value(b)) * (down ? -1 : 1)) : rows;
  return h('div', { class: 'table-wrap', tabindex: '0', role: 'region', 'aria-label': caption }, h('table', { class: dense ? 'table dense' : 'table' },
    h('caption', { class: 'hidden' }, caption),
    h('thead', null, h('tr', null,
      select && h('th', { class: 'check' }, h('input', {
        type: 'checkbox', 'aria-label': 'Select all rows', checked: order.length > 0 && order.every((r) => selected.has(keyOf(r))),
        onchange: (e) => { order.forEach((r) => (e.target.checked ? selected.add(keyOf(r)) : selected.delete(keyOf(r)))); select(); },
      })),
      columns.map((c) => h('th', { class: c.num && 'num', scope: 'col', 'aria-sort': c === column ? (down ? 'descending' : 'ascending') : null, title: c.title },
        c.value && path ? h('a', { href: href(path, { ...params, sort: by === c.id && down === Boolean(c.num) ? (down ? c.id : `-${c.id}`) : c.num ? `-${c.id}` : c.id }) }, c.label, c === column && h('span', { 'aria-hidden': 'true' }, down ? ' ↓' : ' ↑')) : c.label)))),
    h('tbody', null, order.map((r) => h('tr', { 'data-k': keyOf(r), class: selected.has(keyOf(r)) && 'selected' },
      select && h('td', { class: 'check' }, h('input', {
        type: 'checkbox', 'aria-label': `Select ${keyOf(r)}`, checked: selected.has(keyOf(r)),
        onchange: (e) => { if (e.target.checked) selected.add(keyOf(r)); else selected.delete(keyOf(r)); select(); },
      })),
      columns.map((c, i) => h(i === (first ?? 0) ? 'th' : 'td', { class: [c.num && 'num', c.class].filter(Boolean).join(' ') || null, scope: i === (first ?? 0) ? 'row' : null }, c.cell(r)))))),
    ));
}

function compare(a, b) {
  if (a === b) return 0;
  if (a === null || a === undefined) return -1;
  if (b === null || b === undefined) return 1;
  return a < b ? -1 : 1;
}
