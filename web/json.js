// json.js - reads JSON without rounding numbers, and shows it as a tree.
import { h } from './dom.js';

// A number as it was written: 380252006595428353 stays exactly that.
export class Raw {
  constructor(text) { this.text = text; }
  toString() { return this.text; }
}

const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const STRING = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y;
const SPACE = /[ \t\r\n]*/y;
const DEEPEST = 200;

// Returns the value, with every number as a Raw and every object as an array of pairs in a Members.
// Throws if the text is not JSON.
export class Members { constructor(pairs) { this.pairs = pairs; } }

export function parse(text) {
  let at = 0;
  const match = (pattern) => {
    pattern.lastIndex = at;
    const found = pattern.exec(text);
    if (found) at = pattern.lastIndex;
    return found && found[0];
  };
  const skip = () => match(SPACE);
  const fail = () => { throw new SyntaxError(`invalid JSON at character ${at}`); };
  const expect = (c) => { if (text[at] !== c) fail(); at++; };
  const string = () => JSON.parse(match(STRING) ?? fail());
  function list(end, item) {
    const found = [];
    at++;
    skip();
    if (text[at] === end) { at++; return found; }
    for (;;) {
      found.push(item());
      skip();
      if (text[at] === end) { at++; return found; }
      expect(',');
      skip();
    }
  }
  function value(depth) {
    if (depth > DEEPEST) fail();
    skip();
    const c = text[at];
    if (c === '"') return string();
    if (c === '[') return list(']', () => value(depth + 1));
    if (c === '{') return new Members(list('}', () => {
      const name = string();
      skip();
      expect(':');
      return [name, value(depth + 1)];
    }));
    for (const [word, meaning] of [['true', true], ['false', false], ['null', null]])
      if (text.startsWith(word, at)) { at += word.length; return meaning; }
    return new Raw(match(NUMBER) || fail());
  }
  const result = value(0);
  skip();
  if (at < text.length) fail();
  return result;
}

// The same as plain objects; numbers that a double cannot hold are strings.
export function parsePlain(text) {
  const plain = (v) => {
    if (v instanceof Raw) return String(Number(v.text)) === v.text || !/^-?\d{16,}$/.test(v.text) ? Number(v.text) : v.text;
    if (v instanceof Members) return Object.fromEntries(v.pairs.map(([name, of]) => [name, plain(of)]));
    return Array.isArray(v) ? v.map(plain) : v;
  };
  return plain(parse(text));
}

// The text of what parse has read, with every number as it was written.
export function stringify(v) {
  if (v instanceof Raw) return v.text;
  if (v instanceof Members) return `{${v.pairs.map(([name, of]) => `${JSON.stringify(name)}:${stringify(of)}`).join(',')}}`;
  return Array.isArray(v) ? `[${v.map(stringify).join(',')}]` : JSON.stringify(v);
}

function leaf(v) {
  if (v instanceof Raw) return h('span', { class: 'j-num' }, v.text);
  if (typeof v === 'string') return h('span', { class: 'j-str' }, JSON.stringify(v));
  return h('span', { class: 'j-word' }, String(v));
}

const MOST = 500; // members of one level

function node(name, v, open) {
  const label = name === null ? null : [h('span', { class: 'j-key' }, name), ': '];
  const entries = v instanceof Members ? v.pairs : Array.isArray(v) ? v.map((of, i) => [String(i), of]) : null;
  if (!entries) return h('div', { class: 'j-row' }, label, leaf(v));
  const kind = Array.isArray(v) ? `[${entries.length}]` : `{${entries.length}}`;
  return h('details', { class: 'j-node', open },
    h('summary', null, label, h('span', { class: 'j-kind' }, kind)),
    entries.slice(0, MOST).map(([key, of]) => node(key, of, entries.length <= 30)),
    entries.length > MOST && h('div', { class: 'j-row muted' }, `… ${entries.length - MOST} more; see Raw`));
}

export const tree = (value) => h('div', { class: 'json' }, node(null, value, true));

// A text as a tree, or as it is if it is not JSON.
export function treeOf(text) {
  try { return tree(parse(text)); } catch { return h('pre', { class: 'text', tabindex: '0' }, text); }
}
