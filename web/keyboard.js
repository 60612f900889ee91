// keyboard.js - the keyboard: shortcuts, their list, and the palette.
import { h } from './dom.js';
import { has, queues } from './api.js';
import { href } from './ui.js';

export const SHORTCUTS = [
  ['g o', 'Overview'], ['g q', 'Queues'], ['g m', 'Messages'], ['g d', 'Dead letters'], ['g s', 'Schedules'], ['g w', 'Workers'], ['g k', 'Keys'], ['g l', 'Locks and state'], ['g t', 'Tasks'],
  ['/', 'Search'], ['Ctrl K', 'Palette: pages, queues, ids'], ['j k', 'Next row, previous row'], ['Enter', 'Open the row'], ['x', 'Select the row'],
  ['r', 'Redrive or run now'], ['p', 'Pause or resume'], ['e', 'Send a message'], ['.', 'Live updates on and off'], ['t', 'Theme'], ['?', 'This list'],
];
const GO = { o: '#/overview', q: '#/queues', m: '#/messages', d: '#/dead', s: '#/schedules', w: '#/workers', k: '#/keys', l: '#/locks', t: '#/tasks' };
const NEEDS = { 'g w': '/v1/admin/workers', 'g k': '/v1/admin/keys', 'g l': '/v1/admin/locks', 'g t': '/v1/admin/tasks', 'g s': '/v1/admin/schedules' }; // what the page asks the server

export function help() {
  const dialog = h('dialog', { 'aria-labelledby': 'keys-title' }, h('h2', { id: 'keys-title' }, 'Keyboard'),
    h('dl', { class: 'keys' }, SHORTCUTS.filter(([k]) => !NEEDS[k] || has('GET', NEEDS[k])).map(([keys, text]) => h('div', null, h('dt', null, keys.split(' ').map((k) => h('kbd', null, k))), h('dd', null, text)))),
    h('div', { class: 'buttons' }, h('button', { type: 'button', class: 'btn', onclick: () => dialog.close() }, 'Close')));
  dialog.onclose = () => dialog.remove();
  document.body.append(dialog);
  dialog.showModal();
}

function move(step) {
  const rows = [...document.querySelectorAll('main .row-link')];
  const row = document.activeElement?.closest?.('tr');
  const at = rows.findIndex((r) => row && r.closest('tr') === row);
  rows[Math.min(rows.length - 1, Math.max(0, at + step))]?.focus();
}

// --- palette ----------------------------------------------------------------------------------

export async function palette(pages) {
  const list = h('ul', { class: 'palette-list', role: 'listbox', id: 'palette-list', 'aria-label': 'Results' });
  const input = h('input', { type: 'text', role: 'combobox', 'aria-expanded': 'true', 'aria-controls': 'palette-list', 'aria-label': 'Go to a page, a queue or a message', placeholder: 'Page, queue, or id of a message', autocomplete: 'off', spellcheck: 'false' });
  const dialog = h('dialog', { class: 'palette', 'aria-label': 'Palette' }, input, list);
  let all = pages, at = 0, shown = [];
  const draw = () => {
    const text = input.value.trim().toLowerCase();
    shown = all.filter(([label]) => label.toLowerCase().includes(text)).slice(0, 12);
    if (/^(\d{6,19}|[0-9a-f-]{36})$/.test(text)) shown.unshift([`Message ${text}`, href(['messages'], { q: text })]);
    else if (text) shown.push([`Search messages for ${text}`, href(['messages'], { q: text })]);
    at = Math.min(at, shown.length - 1);
    list.replaceChildren(...shown.map(([label], i) => h('li', { id: `p-${i}`, role: 'option', 'aria-selected': String(i === at), onclick: () => open(i) }, label)));
    input.setAttribute('aria-activedescendant', shown.length ? `p-${at}` : '');
  };
  const open = (i) => { dialog.close(); if (shown[i]) location.hash = shown[i][1]; };
  input.oninput = () => { at = 0; draw(); };
  input.onkeydown = (event) => {
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      at = Math.max(0, Math.min(shown.length - 1, at + (event.key === 'ArrowDown' ? 1 : -1)));
      event.preventDefault();
      draw();
    } else if (event.key === 'Enter') { event.preventDefault(); open(at); }
  };
  dialog.onclose = () => dialog.remove();
  document.body.append(dialog);
  dialog.showModal();
  draw();
  try {
    all = [...pages, ...(await queues()).rows.map((q) => [`${q.namespace}/${q.queue}`, href(['queue', q.namespace, q.queue])])];
    draw();
  } catch { /* the pages are enough */ }
}

// --- keys -----------------------------------------------------------------------------------------

export function install({ pages, live, theme }) {
  let go = 0;
  const single = {
    '/': () => (document.querySelector('main input[type=search]') || document.querySelector('#global')).focus(),
    '?': help, '.': live, t: theme, j: () => move(1), k: () => move(-1), g: () => { go = Date.now(); },
    x: () => document.activeElement?.closest?.('tr')?.querySelector('input[type=checkbox]')?.click(),
  };
  document.addEventListener('keydown', (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === 'k') {
      event.preventDefault();
      if (!document.querySelector('dialog')) palette(pages());
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector('dialog') || !document.querySelector('nav.rail')) return;
    if (event.target.matches?.('input:not([type=checkbox]), textarea, select')) {
      if (event.key === 'Escape') event.target.blur();
      return;
    }
    const went = Date.now() - go < 1500 && GO[event.key];
    const run = went ? () => { location.hash = went; } : single[event.key] || (document.querySelector(`main [data-key="${CSS.escape(event.key)}"]:not(:disabled)`) && (() => document.querySelector(`main [data-key="${CSS.escape(event.key)}"]:not(:disabled)`).click()));
    if (event.key !== 'g') go = 0;
    if (!run) return;
    event.preventDefault();
    run();
  });
}
