// live.js - what changes in the queues, line by line: GET /v1/admin/live (docs/api.md).
//
//      a line ──> counts of queues that changed ──> patched(rows): the list, without asking again
//             └─> note(route): what the page shows has changed
//
// Only in the visible tab. A stream that fails is tried again after a while; until then the page asks by itself. fetch and a
// reader, because an EventSource sends no token.
import { has, root, session } from './api.js';

const SILENT_MS = 25e3; // a line comes each 10 s
const AGAIN_MS = 5e3;

const live = { up: false, at: 0, epoch: 0, whole: true, changes: new Map(), news: 0, problems: null };
let running = null, again = 0, told = () => {};

const keyOf = (q) => `${q.namespace}/${q.queue}/${q.shard || ''}`;

export const isUp = () => live.up && Date.now() - live.at < SILENT_MS;

// A number that a list of queues keeps: patched() adds to lists that were asked for in this epoch.
export const epoch = () => (isUp() && live.whole ? live.epoch : 0);

// The rows of a list with what has changed since; more: the list has not all queues.
export function patched(rows, more, at) {
  const now = Date.now(), known = new Set();
  const grown = (q, since) => (q.oldest_ready_ms === undefined ? q : { ...q, oldest_ready_ms: q.oldest_ready_ms + (now - since) });
  const found = [];
  for (const q of rows) {
    const change = live.changes.get(keyOf(q));
    known.add(keyOf(q));
    if (!change || change.at < at) found.push(grown(q, at));
    else if (!change.gone) found.push(grown(change, change.at));
  }
  if (!more) for (const [key, change] of live.changes) if (!known.has(key) && !change.gone) found.push(grown(change, change.at));
  return found;
}

function take(text) {
  const line = JSON.parse(text), now = Date.now();
  for (const q of line.queues) live.changes.set(keyOf(q), { ...q, at: now });
  if (line.more) live.whole = false;
  const news = line.queues.length > 0 || line.more || (line.problems !== undefined && live.problems !== null && line.problems !== live.problems);
  Object.assign(live, { up: true, at: now, problems: line.problems ?? null });
  told(news ? line : null);
}

async function read(reader) {
  const decoder = new TextDecoder();
  let rest = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const lines = (rest + decoder.decode(value, { stream: true })).split('\n');
    rest = lines.pop();
    lines.filter(Boolean).forEach(take);
  }
}

async function follow(own) {
  try {
    const answer = await fetch(new URL('v1/admin/live', root), {
      headers: session.token ? { Authorization: `Bearer ${session.token}` } : {}, signal: own.signal, cache: 'no-store' });
    if (!answer.ok || !answer.body) return;
    Object.assign(live, { epoch: live.epoch + 1, whole: true, problems: null });
    live.changes.clear();
    await read(answer.body.getReader());
  } catch {
    // the network, or the tab was hidden: the page asks by itself
  }
}

const wanted = () => document.visibilityState === 'visible' && session.me && !session.offlineSince && has('GET', '/v1/admin/live');

// Begins or ends the stream, as the tab and the server are now. then(line): of each line; null: nothing has changed.
export async function keep(on, then) {
  told = then;
  if (!on || !wanted()) {
    running?.abort();
    return;
  }
  if (running || Date.now() < again) return;
  running = new AbortController();
  await follow(running);
  live.up = false;
  running = null;
  again = Date.now() + AGAIN_MS;
}

// Whether a line is about what the route shows.
export function concerns(line, route) {
  const [page, namespace, queue] = route.path;
  if (line.more || !queue || !['queue', 'dead'].includes(page)) return true;
  return line.queues.some((q) => q.namespace === namespace && q.queue === queue);
}
