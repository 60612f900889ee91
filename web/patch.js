// patch.js - JSON patches (RFC 6902) on what json.js has read: numbers stay as they were written.
import { Members, Raw } from './json.js';

const OPS = ['add', 'remove', 'replace', 'move', 'copy', 'test'];
const ESCAPES = { '~1': '/', '~0': '~' };

class PatchError extends Error {}
const fail = (text) => { throw new PatchError(text); };

const stepsOf = (path) => {
  if (typeof path !== 'string' || (path && path[0] !== '/')) fail(`invalid path: ${path}; expected "" or /name/0`);
  return path.split('/').slice(1).map((s) => s.replace(/~[01]/g, (e) => ESCAPES[e]));
};

const copyOf = (v) => (v instanceof Members ? new Members(v.pairs.map(([name, of]) => [name, copyOf(of)])) : Array.isArray(v) ? v.map(copyOf) : v);

// [{op, path, from, value}] of a patch that json.js has read. Throws if it is not one.
export function readPatch(parsed) {
  if (!Array.isArray(parsed)) fail('invalid patch: expected an array of operations');
  return parsed.map((item, i) => {
    if (!(item instanceof Members)) fail(`invalid operation ${i}: expected an object`);
    const one = Object.fromEntries(item.pairs);
    if (!OPS.includes(one.op)) fail(`invalid op: ${one.op}; expected ${OPS.join(', ')}`);
    if (['add', 'replace', 'test'].includes(one.op) && !item.pairs.some(([name]) => name === 'value')) fail(`operation ${i}: expected a value`);
    return { op: one.op, path: stepsOf(one.path), from: one.op === 'move' || one.op === 'copy' ? stepsOf(one.from) : null, value: one.value, text: one.path };
  });
}

function indexOf(list, step, room) {
  if (room && step === '-') return list.length;
  const i = /^(0|[1-9]\d*)$/.test(step) ? Number(step) : NaN;
  return i < list.length + (room ? 1 : 0) ? i : fail(`no element ${step}`);
}

function child(v, step) {
  if (v instanceof Members) { const pair = v.pairs.find(([name]) => name === step); return pair ? pair[1] : fail(`no member ${step}`); }
  return Array.isArray(v) ? v[indexOf(v, step)] : fail(`no member ${step}`);
}

const find = (root, path) => path.reduce(child, root);

// The root after the change; `change` gets what holds the last step, and the step.
function at(root, path, change) {
  if (!path.length) return change(null, null);
  change(find(root, path.slice(0, -1)), path[path.length - 1]);
  return root;
}

function put(root, path, value, replaces) {
  return at(root, path, (holder, step) => {
    if (!holder) return value;
    if (holder instanceof Members) {
      const pair = holder.pairs.find(([name]) => name === step);
      if (pair) pair[1] = value; else if (replaces) fail(`no member ${step}`); else holder.pairs.push([step, value]);
    } else if (Array.isArray(holder)) holder.splice(indexOf(holder, step, !replaces), replaces ? 1 : 0, value);
    else fail(`no member ${step}`);
    return null;
  });
}

function take(root, path) {
  const value = find(root, path);
  at(root, path, (holder, step) => {
    if (!holder) fail('the whole document cannot be removed');
    if (holder instanceof Members) holder.pairs.splice(holder.pairs.findIndex(([name]) => name === step), 1);
    else holder.splice(indexOf(holder, step), 1);
  });
  return value;
}

const number = (text) => (/^-?\d+$/.test(text) ? BigInt(text) : Number(text));

function same(a, b) {
  if (a instanceof Raw && b instanceof Raw) return a.text === b.text || String(number(a.text)) === String(number(b.text));
  if (Array.isArray(a) && Array.isArray(b)) return a.length === b.length && a.every((v, i) => same(v, b[i]));
  if (a instanceof Members && b instanceof Members)
    return a.pairs.length === b.pairs.length && a.pairs.every(([name, v]) => b.pairs.some(([other, of]) => other === name && same(v, of)));
  return a === b;
}

const RUN = {
  add: (root, o) => put(root, o.path, copyOf(o.value), false),
  replace: (root, o) => put(root, o.path, copyOf(o.value), true),
  remove: (root, o) => { take(root, o.path); return root; },
  copy: (root, o) => put(root, o.path, copyOf(find(root, o.from)), false),
  move: (root, o) => put(root, o.path, take(root, o.from), false),
  test: (root, o) => (same(find(root, o.path), o.value) ? root : fail(`test of ${o.text || 'the document'} fails`)),
};

// A changed copy; the document stays as it is. Throws if an operation does not fit the document.
export const applyPatch = (patch, document) => patch.reduce((root, o) => RUN[o.op](root, o), copyOf(document));
