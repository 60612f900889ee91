// samples.js - rates of queues: from the server's history if it has one, otherwise from counters
// that this page saw one after the other.
import { get, has } from './api.js';

const KEEP = 90;      // samples: 3 minutes of 2 seconds
const MOST = 2000;    // queues with samples
const seen = new Map();

export const nameOf = (q) => `${q.namespace}/${q.queue}`;

function note(name, now, counters) {
  const rows = seen.get(name) || [];
  const last = rows[rows.length - 1];
  if (last && now - last.at < 900) return;
  rows.push({ at: now, ...counters });
  if (rows.length > KEEP) rows.shift();
  if (seen.size < MOST || seen.has(name)) seen.set(name, rows);
}

export function noteQueues(rows, now = Date.now()) {
  const total = { accepted: 0, finished: 0, failed: 0, died: 0, depth: 0 };
  for (const q of rows) {
    if (!q.since_start) continue;
    const counters = { ...q.since_start, depth: q.ready + q.delayed + q.leased + q.held };
    note(nameOf(q), now, counters);
    for (const name of Object.keys(total)) total[name] += counters[name];
  }
  note('*', now, total);
}

// Per second, over about the last 10 seconds; null: not known yet.
export function rateOf(name, counter) {
  const rows = seen.get(name) || [];
  const last = rows[rows.length - 1];
  const first = rows.find((r) => last.at - r.at <= 11000);
  if (!last || last === first || last[counter] < first[counter]) return null;
  return (last[counter] - first[counter]) / ((last.at - first.at) / 1000);
}

export function seriesOf(name, counter) {
  const rows = seen.get(name) || [];
  if (counter === 'depth') return rows.map((r) => r.depth);
  return rows.slice(1).map((r, i) => Math.max(0, (r[counter] - rows[i][counter]) / ((r.at - rows[i].at) / 1000)));
}

export const hasHistory = () => has('GET', '/v1/admin/history');

// The server's history of a queue or of everything, or null if it has none.
export async function history(params, signal) {
  if (!hasHistory()) return null;
  try {
    const found = await get('/v1/admin/history', params, signal);
    return found.steps ? found : null;
  } catch (error) {
    if (error.status) return null; // this engine has none, or the caller may not see it
    throw error;
  }
}
