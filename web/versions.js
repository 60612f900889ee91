// versions.js - versions of a document that this tab has seen, beside each other with their differences.
//
// The server keeps the newest version alone. What is known is what this tab has loaded while it was open: with live
// updates nearly every one.
import { h } from './dom.js';
import { clock, number, plural } from './format.js';
import { Members, Raw, parse, stringify, treeOf } from './json.js';
import { card, href } from './ui.js';

const KEEP = 20, BYTES = 1 << 20, LINES = 1500; // versions of a document, bytes of all documents, lines that are compared

const seen = new Map(); // name of a document: [{version, text, at}], oldest first

// What no page has looked at for longest goes first.
function bound() {
  let size = 0;
  for (const [name, list] of [...seen].reverse()) {
    size += list.reduce((n, v) => n + v.text.length, 0);
    if (size > BYTES && seen.size > 1) seen.delete(name);
  }
}

// text: of the newest version; null: there is no document. Returns all that are known, oldest first.
export function noteVersion(name, version, text) {
  const list = seen.get(name) || [];
  seen.delete(name);
  seen.set(name, list);
  if (text !== null && list[list.length - 1]?.version !== version) list.push({ version, text, at: Date.now() });
  if (list.length > KEEP) list.shift();
  bound();
  return seen.get(name) || [];
}

// --- lines and their differences ----------------------------------------------------------------

// The lines of a document, a member each; numbers as they were written.
export function linesOf(text) {
  const write = (v, deep) => {
    const entries = v instanceof Members ? v.pairs.map(([k, of]) => [`${JSON.stringify(k)}: `, of]) : Array.isArray(v) ? v.map((of) => ['', of]) : null;
    if (!entries || !entries.length || v instanceof Raw) return stringify(v);
    const pad = '  '.repeat(deep + 1), [begin, end] = Array.isArray(v) ? '[]' : '{}';
    return `${begin}\n${entries.map(([k, of]) => pad + k + write(of, deep + 1)).join(',\n')}\n${'  '.repeat(deep)}${end}`;
  };
  try { return write(parse(text), 0).split('\n'); } catch { return text.split('\n'); }
}

const bare = (line) => line?.replace(/,$/, ''); // a comma comes with the next member
const same = (r) => bare(r.old) === bare(r.now);

// [{old, now}] in order; a line that only one side has stands alone, a changed one beside what it was.
export function diff(a, b) {
  const far = Array.from({ length: a.length + 1 }, () => new Uint16Array(b.length + 1)); // the longest common part from there on
  for (let i = a.length - 1; i >= 0; i--) for (let k = b.length - 1; k >= 0; k--) far[i][k] = bare(a[i]) === bare(b[k]) ? far[i + 1][k + 1] + 1 : Math.max(far[i + 1][k], far[i][k + 1]);
  const rows = [];
  let i = 0, k = 0, gone = [], come = [];
  const flush = () => {
    for (let n = 0; n < Math.max(gone.length, come.length); n++) rows.push({ old: gone[n], now: come[n] });
    gone = [];
    come = [];
  };
  while (i < a.length || k < b.length) {
    if (i < a.length && k < b.length && bare(a[i]) === bare(b[k])) { flush(); rows.push({ old: a[i++], now: b[k++] }); }
    else if (k === b.length || (i < a.length && far[i + 1][k] >= far[i][k + 1])) gone.push(a[i++]);
    else come.push(b[k++]);
  }
  flush();
  return rows;
}

function cell(line, differs, word, sign) {
  if (line === undefined) return h('td', { class: 'none' });
  return h('td', { class: differs && word }, differs && h('span', { class: 'hidden' }, `${word === 'old' ? 'removed' : 'added'}: `), h('span', { class: 'sign', 'aria-hidden': 'true' }, differs ? sign : ' '), line);
}

function beside(before, now) {
  const a = linesOf(before.text), b = linesOf(now.text);
  if (a.length > LINES || b.length > LINES) return h('p', { class: 'muted' }, `More than ${number(LINES)} lines: too long to compare here.`);
  const rows = diff(a, b), changed = rows.filter((r) => !same(r)).length;
  return [h('p', { class: 'muted', 'aria-live': 'polite' }, changed ? `${plural(changed, 'line')} differ${changed === 1 ? 's' : ''}.` : 'They are equal.'),
    h('div', { class: 'table-wrap', tabindex: '0', role: 'region', 'aria-label': 'Differences' }, h('table', { class: 'beside' }, h('caption', { class: 'hidden' }, 'Differences'),
      h('thead', null, h('tr', null, [before, now].map((v) => h('th', { scope: 'col' }, `Version ${number(v.version)}`)))),
      h('tbody', null, rows.map((r) => h('tr', null, cell(r.old, !same(r), 'old', '−'), cell(r.now, !same(r), 'new', '+'))))))];
}

// --- the card -------------------------------------------------------------------------------------

// versions: of noteVersion. params.before, params.version: which ones are shown; without before, one as a tree.
export function versionsCard(title, versions, route, ...more) {
  const now = versions.find((v) => String(v.version) === route.params.version) || versions[versions.length - 1];
  const before = versions.find((v) => String(v.version) === route.params.before && v !== now);
  const link = (params) => href(route.path, { ...route.params, ...params });
  const known = versions.length > 1 && h('div', { class: 'bar' }, h('span', { class: 'muted' }, 'Compare with'),
    h('nav', { class: 'chips', 'aria-label': 'Versions to compare with' }, h('a', { href: link({ before: undefined }), 'aria-current': !before && 'true' }, 'none'),
      versions.filter((v) => v !== now).map((v) => h('a', { href: link({ before: v.version }), 'aria-current': v === before && 'true' }, `version ${number(v.version)}, seen ${clock(v.at)}`))));
  return card(title, more, known, before ? beside(before, now) : treeOf(now.text),
    h('p', { class: 'muted' }, versions.length > 1 ? `${plural(versions.length, 'version')} known: those that this tab has seen. The server keeps the newest one alone.` : 'The server keeps the newest version alone. Versions that come while this page is open can be compared.'));
}
