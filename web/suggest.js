// suggest.js - completions of a query: the rest of its last word, as a list of the browser.
import { h } from './dom.js';
import { queues } from './api.js';

const VALUES = { 'state:': ['ready', 'delayed', 'leased', 'held', 'dead', 'damaged'], 'reason:': ['max_attempts', 'expired', 'rejected'], 'age>': ['5m', '1h', '1d'], 'age<': ['5m', '1h', '1d'], 'prio>=': ['0', '5', '10'], 'prio<=': ['0', '5', '10'], 'attempt>': ['1', '3'], 'attempt<': ['1'] };
const MOST = 20;

// Whole queries that begin with the text: the browser shows those.
export function completions(text, names, qualifiers) {
  const last = /\S*$/.exec(text)[0], before = text.slice(0, text.length - last.length);
  const words = [...qualifiers, ...Object.entries(VALUES).flatMap(([q, values]) => values.map((v) => q + v)), ...names.map((name) => `queue:${name}`)];
  const chosen = words.filter((w) => w !== last && w.startsWith(last) && (last.length >= w.search(/[:<>]/) + 1 || qualifiers.includes(w)));
  return chosen.slice(0, MOST).map((w) => before + w);
}

let known = null; // names of queues, loaded when the field is used first

export function suggestInto(input, qualifiers) {
  const fill = () => {
    const list = document.getElementById('suggestions');
    list?.replaceChildren(...completions(input.value, known || [], qualifiers).map((value) => h('option', { value })));
  };
  if (!known) {
    known = [];
    queues().then(({ rows }) => { known = rows.map((q) => `${q.namespace}/${q.queue}`); fill(); }, () => { known = null; });
  }
  fill();
}
