// ui.js - what pages are made of: buttons, pills, dialogs, toasts with undo, empty states.
import { h, s } from './dom.js';
import { session, may, post, ApiError, Offline } from './api.js';

export const app = { refresh: () => {}, go: (hash) => { location.hash = hash; } }; // set by main.js

export const href = (path, params) => {
  const query = new URLSearchParams(Object.entries(params || {}).filter(([, v]) => v !== undefined && v !== null && v !== ''));
  const text = query.toString();
  return `#/${path.map(encodeURIComponent).join('/')}${text ? `?${text}` : ''}`;
};

const GLYPHS = {
  ready: '●', delayed: '◔', leased: '▶', processing: '▶', held: '∥', dead: '✕', damaged: '!', running: '▶', paused: 'Ⅱ', draining: '▽', drained: '▽',
  quiet: '◌', stop: '■', done: '✓', canceled: '⊘', stopped: '!', ok: '✓', warn: '!', bad: '✕', idle: '○',
};

// A state: never colour alone, always a sign and a word.
export const pill = (kind, text = kind) =>
  h('span', { class: `pill k-${kind}` }, h('span', { class: 'glyph', 'aria-hidden': 'true' }, GLYPHS[kind] || '•'), text);

const ICONS = {
  keys: 'M15 4a5 5 0 1 1-4.5 7.2L4 17.5V20h3v-2h2v-2h2l1.5-1.6M16 8.5v.5',
  overview: 'M3 12l9-8 9 8M5 10v10h14V10', queues: 'M4 6h16M4 12h16M4 18h10', messages: 'M4 6h16v12H4zM4 7l8 6 8-6',
  dead: 'M12 3l9 16H3zM12 10v4M12 16.5v.5', schedules: 'M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18M12 7v5l4 2', workers: 'M8 8a4 4 0 1 0 8 0 4 4 0 0 0-8 0M4 21c0-5 16-5 16 0',
  locks: 'M6 11h12v9H6zM9 11V7a3 3 0 0 1 6 0v4', limits: 'M4 18a8 8 0 1 1 16 0M12 18l4-6', shards: 'M4 5h16v5H4zM4 14h16v5H4zM7 7.5h.5M7 16.5h.5',
  audit: 'M6 3h12v18H6zM9 8h6M9 12h6M9 16h3', settings: 'M4 7h10M18 7h2M4 17h2M10 17h10M14 4v6M6 14v6', tasks: 'M4 6l2 2 3-4M4 16l2 2 3-4M12 7h8M12 17h8',
  search: 'M10 4a6 6 0 1 0 0 12 6 6 0 0 0 0-12M15 15l5 5', theme: 'M12 3a9 9 0 1 0 9 9 7 7 0 0 1-9-9', live: 'M8 5l11 7-11 7z', pause: 'M8 5v14M16 5v14', help: 'M9 9a3 3 0 1 1 4 3c-1 .5-1 1-1 2M12 18v.5',
};
export const icon = (name) => s('svg', { class: 'icon', viewBox: '0 0 24 24', 'aria-hidden': 'true' }, s('path', { d: ICONS[name] }));

// --- actions ----------------------------------------------------------------------------

// A button that changes something: missing if the caller may not, disabled if the server does not answer.
export function act(label, run, { namespace, right = 'admin', kind = '', key, title, disabled } = {}) {
  if (!may(right, namespace)) return null;
  return h('button', {
    type: 'button', class: `btn ${kind}`, 'data-act': true, 'data-key': key, title: key ? `${title || label} (${key})` : title,
    disabled: disabled || Boolean(session.offlineSince), onclick: () => attempt(run),
  }, label);
}

export async function attempt(run) {
  try {
    await run();
  } catch (error) {
    if (error.name === 'AbortError') return;
    toast(messageOf(error), { kind: 'bad' });
  }
}

export function messageOf(error) {
  if (error instanceof ApiError) return `${error.message}${error.request ? ` (request ${error.request})` : ''}`;
  return error instanceof Offline ? 'The server does not answer. Nothing was sent again.' : error.message;
}

// --- toasts -----------------------------------------------------------------------------

export const UNDO_MS = 10000;

export function toast(text, { undo, kind = '' } = {}) {
  const box = h('div', { class: `toast ${kind}` }, h('span', null, text));
  const close = () => box.remove();
  if (undo) document.querySelectorAll('#toasts .undo').forEach((older) => older.remove()); // what follows it may stand in its way
  box.classList.toggle('undo', Boolean(undo));
  if (undo) box.append(h('button', { type: 'button', class: 'btn small', onclick: () => { close(); attempt(undo); } }, 'Undo'));
  box.append(h('button', { type: 'button', class: 'btn plain small', 'aria-label': 'Close', onclick: close }, '×'));
  document.getElementById('toasts').append(box);
  setTimeout(close, undo ? UNDO_MS : kind === 'bad' ? 12000 : 5000);
}

// --- dialogs ----------------------------------------------------------------------------

function row(f) {
  const id = `f-${f.name}`;
  const common = { id, name: f.name, required: f.required, 'aria-describedby': f.help && `${id}-help` };
  const field = f.options
    ? h('select', common, f.options.map((o) => h('option', { value: o, selected: o === f.value }, o || '(none)')))
    : f.kind === 'checkbox' ? h('input', { ...common, type: 'checkbox', checked: f.value })
      : f.kind === 'area' ? h('textarea', { ...common, rows: f.rows || 6, spellcheck: 'false' }, f.value ?? '')
        : h('input', { ...common, type: 'text', value: f.value ?? '', autocomplete: 'off', placeholder: f.placeholder, spellcheck: 'false' });
  return h('div', { class: `field ${f.kind || ''}` }, h('label', { for: id }, f.label), field, f.help && h('small', { id: `${id}-help` }, f.help));
}

// Asks; run(values, say) does it. The dialog stays open, with the server's words, if that fails.
export function ask({ title, text, fields = [], confirm = 'OK', danger = false, typed, run, extra }) {
  const said = h('p', { class: 'error', role: 'alert' });
  const all = typed ? [...fields, { name: 'typed', label: `Type ${typed} to confirm`, required: true }] : fields;
  const button = h('button', { type: 'submit', class: `btn ${danger ? 'danger' : 'primary'}`, disabled: Boolean(typed) }, confirm);
  const form = h('form', { method: 'dialog' },
    h('h2', { id: 'dialog-title' }, title), text && h('p', null, text), all.map(row), extra, said,
    h('div', { class: 'buttons' }, h('button', { type: 'button', class: 'btn', onclick: () => dialog.close() }, 'Cancel'), button));
  const dialog = h('dialog', { 'aria-labelledby': 'dialog-title' }, form);
  const values = () => Object.fromEntries([...form.elements].filter((e) => e.name).map((e) => [e.name, e.type === 'checkbox' ? e.checked : e.value.trim()]));
  form.oninput = () => { if (typed) button.disabled = values().typed !== typed; };
  form.onsubmit = async (event) => {
    event.preventDefault();
    button.disabled = true;
    said.textContent = '';
    try {
      await run(values(), (words) => { said.textContent = words; });
      dialog.close();
      app.refresh();
    } catch (error) {
      said.textContent = messageOf(error);
      button.disabled = false;
    }
  };
  dialog.onclose = () => dialog.remove();
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

// --- pieces -----------------------------------------------------------------------------

export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch { // no permission, or not a secure context
    const area = h('textarea', { class: 'hidden' }, text);
    document.body.append(area);
    area.select();
    document.execCommand('copy');
    area.remove();
  }
  toast('Copied.');
}

export const command = (text) => h('div', { class: 'command' }, h('code', { tabindex: '0' }, text),
  h('button', { type: 'button', class: 'btn small', onclick: () => copy(text) }, 'Copy'));

export const empty = (title, text, ...more) => h('section', { class: 'empty' }, h('h2', null, title), h('p', null, text), more);

export const card = (title, ...content) => h('section', { class: 'card' }, title && h('h2', null, title), content);

// A table that may be wider than the page: it scrolls by itself.
export const wide = (label, table) => h('div', { class: 'table-wrap', tabindex: '0', role: 'region', 'aria-label': label }, table);

export const head = (title, ...right) => h('header', { class: 'head' }, h('h1', { tabindex: '-1' }, title), h('div', { class: 'actions' }, right));

export const facts = (rows) => h('dl', { class: 'facts' }, rows.filter((r) => r && r[1] !== undefined && r[1] !== null && r[1] !== '' && r[1] !== false)
  .map(([name, value]) => h('div', null, h('dt', null, name), h('dd', null, value))));

export const tabs = (now, names, hrefOf, label = 'Views') => h('nav', { class: 'tabs', 'aria-label': label },
  names.map(([id, label]) => h('a', { href: hrefOf(id), 'aria-current': id === now && 'page' }, label)));

export const queueLink = (q, more) => h('a', { class: 'row-link', href: href(['queue', q.namespace, q.queue], more) },
  h('span', { class: 'ns' }, `${q.display_namespace || q.namespace}/`), q.display_topic || q.queue);

// --- send ---------------------------------------------------------------------------------

// given: what the fields have at first.
export function sendDialog(q = {}, given = {}) {
  ask({
    title: 'Send a message', confirm: 'Send',
    fields: [
      { name: 'namespace', label: 'Namespace', value: q.namespace || 'default', required: true },
      { name: 'queue', label: 'Queue', value: q.queue || 'hello', required: true },
      { name: 'body', label: 'Body', kind: 'area', value: '{"hello": "world"}', help: 'JSON is sent as JSON, anything else as text.' },
      { name: 'key', label: 'Key', value: given.key, help: 'Messages of one key run one at a time, in order.' },
      { name: 'priority', label: 'Priority', value: '5', help: 'The lowest number goes first.' },
      { name: 'delay', label: 'Delay', value: given.delay, placeholder: '10m' },
    ],
    run: async (v) => {
      const item = { namespace: v.namespace, queue: v.queue, text: v.body };
      if (v.key) item.key = v.key;
      if (v.priority) item.priority = Number.isInteger(Number(v.priority)) ? Number(v.priority) : v.priority;
      if (v.delay) item.delay = v.delay;
      try { JSON.parse(v.body); item.content_type = 'application/json'; } catch { /* text */ }
      const [id] = await post('/enqueue', [item], { ids: 'uid' });
      toast(`Sent: ${id}`);
    },
  });
}
