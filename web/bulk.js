// bulk.js - acts on many messages: those that are selected, or all that match the query.
//
//      selected         one call for each; the undo is the inverse call with the version, which is refused if something changed
//      all that match   a task of the server, counted by a dry run first; the undo is a cancel before it begins
//                       cancel, export: the ids are gathered, then one call for each
import { h } from './dom.js';
import { get, has, may, post } from './api.js';
import { number, plural } from './format.js';
import { selected } from './table.js';
import { begin, HELD } from './tasks.js';
import { act, app, ask, attempt, messageOf, toast } from './ui.js';

export const acted = { at: 0 }; // when the last act ended: what was found before may be wrong

const AT_ONCE = 4, MOST = 100000, PAGE = 1000, EXPORT_BYTES = 64 << 20, POLL_MS = 150;

const RUNS = ['leased', 'processing'], WAITS = ['ready', 'delayed', 'held'];
const name = (m) => ({ namespace: m.namespace, queue: m.queue, id: m.uid });
const pause = (ms) => new Promise((done) => { setTimeout(done, ms); });

// What undoes an act on a message: the verb and the members of the call. before: of the answer.
const due = (before) => ['delay', { until: before.deliver_after }];
export const INVERSE = { run: due, delay: due, priority: (before) => ['priority', { priority: before.priority }], move: (before) => ['move', { to: before.queue }] };

// The acts. fits: on a message; fields: what is asked; one: the call for one message; task: what a task of the server takes;
// states: which of all that match it is for, if the query has no state.
const ACTS = {
  redrive: { label: 'Redrive', key: 'r', fits: (m) => m.status === 'dead', will: 'become ready again; their failures are reset', did: 'Redriven', states: ['dead'],
    one: (m) => post('/dlq/redrive', { namespace: m.namespace, queue: m.queue, ids: [m.uid] }), task: () => ({ action: 'redrive' }) },
  run: { label: 'Run now', key: 'r', verb: 'run', fits: (m) => m.status === 'delayed', will: 'become due now', did: 'Due now', states: ['delayed'], one: (m) => post('/v1/admin/message/run', name(m)), task: () => ({ action: 'run' }) },
  delay: { label: 'Delay', verb: 'delay', fits: (m) => WAITS.includes(m.status), will: 'be delivered later', did: 'Delayed', states: ['ready', 'delayed'],
    fields: [{ name: 'delay', label: 'For', value: '10m', required: true }], one: (m, v) => post('/v1/admin/message/delay', { ...name(m), delay: v.delay }), task: (v) => ({ action: 'delay', delay: v.delay }) },
  priority: { label: 'Priority', verb: 'priority', fits: (m) => WAITS.includes(m.status), will: 'get another priority', did: 'Priority set', states: WAITS,
    fields: [{ name: 'priority', label: 'The lowest number goes first', value: '0', required: true }],
    one: (m, v) => post('/v1/admin/message/priority', { ...name(m), priority: Number(v.priority) }), task: (v) => ({ action: 'priority', priority: Number(v.priority) }) },
  move: { label: 'Move', verb: 'move', fits: (m) => [...WAITS, 'dead'].includes(m.status), will: 'go to another queue', did: 'Moved', states: WAITS,
    fields: [{ name: 'to', label: 'To queue', required: true }], one: (m, v) => post('/v1/admin/message/move', { ...name(m), to: v.to }), task: (v) => ({ action: 'move', to: v.to }) },
  cancel: { label: 'Cancel', verb: 'cancel', danger: true, fits: (m) => RUNS.includes(m.status), will: 'be canceled: their workers learn it at the next extend', did: 'Canceled', states: ['leased'], one: (m) => post('/v1/admin/message/cancel', { namespace: m.namespace, id: m.uid }) },
  delete: { label: 'Delete', danger: true, fits: (m) => !RUNS.includes(m.status), will: 'be deleted for good', did: 'Deleted', states: [...WAITS, 'dead'],
    one: (m) => post('/v1/admin/message/delete', name(m)), task: () => ({ action: 'delete' }) },
};
const available = () => Object.entries(ACTS).filter(([, a]) => !a.verb || has('POST', `/v1/admin/message/${a.verb}`));

// --- one call for each --------------------------------------------------------------------------

// Does it to all, a few at a time. Stops after `job.ended` is set. Returns {done, refused, why, answers}.
async function each(messages, one, job, say) {
  const found = { done: 0, refused: 0, why: null, answers: [] };
  let at = 0;
  const worker = async () => {
    while (at < messages.length && !job.ended) {
      const m = messages[at++];
      try { found.answers.push({ m, answer: await one(m) }); found.done++; } catch (error) {
        if (!error.status) throw error; // the server went away
        found.refused++;
        found.why ??= error;
      }
      say?.(`${number(found.done + found.refused)} of ${number(messages.length)} …`);
    }
  };
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, messages.length) }, worker));
  return found;
}

function report({ done, refused, why }, { did }, undo) {
  toast(`${did}: ${plural(done, 'message')}.${refused ? ` ${number(refused)} refused: ${messageOf(why)}` : ''}`, { kind: refused ? 'bad' : '', undo });
  selected.clear();
  acted.at = Date.now();
  app.refresh();
}

// A message without a version is on its way to another shard.
function undoOf(verb, found, to) {
  const answered = found.answers.filter(({ answer }) => answer.version);
  const back = ({ m, answer }) => {
    const [inverse, more] = INVERSE[verb](answer.before);
    return post(`/v1/admin/message/${inverse}`, { namespace: m.namespace, queue: to || m.queue, id: answer.uid, version: answer.version, ...more });
  };
  return INVERSE[verb] && answered.length > 0 && (async () => report(await each(answered, back, {}), { did: 'Undone' }));
}

const FOREVER = ' This cannot be undone.';

export function actsOnSelected(messages) {
  if (!messages.length) return null;
  const { namespace } = messages[0];
  const dead = messages.every((m) => m.status === 'dead');
  return [
    available().filter(([id]) => id !== 'move' || !dead).map(([id, a]) => {
      const fit = messages.filter(a.fits);
      const run = async (values, say) => {
        const found = await each(fit, (m) => a.one(m, values), {}, say);
        report(found, a, undoOf(id, found, values.to));
      };
      const asked = a.fields || a.danger;
      return fit.length > 0 && act(`${a.label} ${fit.length}`, () => (asked ? ask({
        title: `${a.label} ${plural(fit.length, 'message')}`, danger: a.danger, confirm: a.label, fields: a.fields, run,
        text: `${plural(fit.length, 'message')} will ${a.will}.${fit.length < messages.length ? ` The other ${number(messages.length - fit.length)} selected stay as they are.` : ''}${INVERSE[id] ? '' : FOREVER}`,
      }) : run({})), { namespace, key: id === 'run' && messages.some(ACTS.redrive.fits) ? undefined : a.key, kind: a.danger ? 'danger' : '', title: INVERSE[id] ? undefined : `${a.label}.${FOREVER}` });
    }),
    h('button', { type: 'button', class: 'btn', onclick: () => download(messages) }, `Export ${messages.length}`),
  ];
}

// --- all that match -------------------------------------------------------------------------------

// The messages that match, up to MOST. take(page) may end it by returning false.
async function matching(params, job, take) {
  let cursor;
  do {
    const page = await get('/v1/admin/messages', { ...params, limit: PAGE, cursor });
    if (take(page.messages) === false) return false;
    cursor = page.cursor;
  } while (cursor !== undefined && !job.ended);
  return cursor === undefined;
}

async function gather(params, a, job, say) {
  const found = [];
  const whole = await matching(params, job, (messages) => {
    for (const m of messages) if (a.fits(m) && found.length < MOST) found.push({ namespace: m.namespace, queue: m.queue, uid: m.uid, status: m.status });
    say(`${number(found.length)} match so far …`);
    return found.length < MOST;
  });
  return { found, whole };
}

const FILTER = ['id', 'key', 'share', 'kind', 'batch', 'correlation_id', 'attribute', 'body', 'text', 'error', 'reason', 'group', 'owner', 'priority_min', 'priority_max', 'attempts_over', 'attempts_under', 'older_than', 'newer_than'];

function taskOf(params, a, values) {
  const task = { namespace: params.namespace, queue: params.queue, ...a.task(values) };
  for (const filter of FILTER) if (params[filter]) task[filter] = params[filter];
  if (params.state && params.state !== 'all') task.state = params.state;
  else if (a.states.length > WAITS.length) task.state = 'all';
  return task;
}

// Begins a task that only counts, and waits for its end. Returns null if it was ended before.
async function dryRun(task, job, say) {
  const begun = await post('/v1/admin/task', { ...task, dry_run: true });
  const place = { namespace: begun.namespace, task: begun.task };
  let now = begun;
  while (now.state === 'running') {
    if (job.ended) { await post('/v1/admin/task/cancel', place); return null; }
    say(`${number(now.matched)} match so far, ${number(now.looked)} of ${number(now.total)} looked at …`);
    await pause(POLL_MS);
    now = await get('/v1/admin/task', place);
  }
  if (now.state === 'failed') throw new Error(now.error);
  return now;
}

// In the dialog: what it would do, by a count that ends with the dialog.
async function count(params, a, job, say) {
  if (a.task) {
    const seen = await dryRun(taskOf(params, a, { to: 'dry-run', priority: 2147483647, delay: '1s' }), job, say);
    if (!seen) return null;
    return { n: seen.matched - seen.refused, words: seen.refused ? ` ${number(seen.refused)} more match and cannot change: ${seen.error}.` : '' };
  }
  const { found, whole } = await gather(params, a, job, say);
  return { n: found.length, found, words: whole ? '' : ' These are the first ones; there are more.' };
}

function allDialog(params, a) {
  document.getElementById('all-that-match').open = false;
  const job = { ended: false };
  const said = h('p', { class: 'counted', role: 'status' }, 'Counting …');
  const say = (text) => { if (!job.ended) said.textContent = text; };
  let counted = null;
  const place = `${params.namespace}/${params.queue}`;
  const dialog = ask({
    title: `${a.label}: all that match in ${place}`, danger: a.danger, confirm: a.label, fields: [...a.fields || [], ...a.task ? [HELD] : []], extra: said, typed: a.danger ? params.queue : undefined,
    text: a.task ? 'The server does it, also if you close this page. What cannot change is left out.' : `This page does it, message by message. Keep it open until it has ended; closing this dialog ends it.${FOREVER}`,
    run: async (values) => {
      if (a.task) {
        await begin(taskOf(params, a, values), values.held);
        return;
      }
      if (!counted) throw new Error('The count has not ended.');
      report(await each(counted.found, (m) => a.one(m, values), job, say), a);
    },
  });
  dialog.addEventListener('close', () => { job.ended = true; });
  count(params, a, job, say).then((found) => {
    counted = found;
    if (found) say(`${plural(found.n, 'message')} will ${a.will}.${found.words}`);
  }).catch((error) => say(messageOf(error)));
}

// params: of /v1/admin/messages, with a queue. What it offers depends on the state that is asked for.
export function actsOnAll(params) {
  const { namespace, state } = params;
  if (!may('admin', namespace)) return h('button', { type: 'button', class: 'btn', onclick: () => attempt(() => exportAll(params)) }, 'Export all');
  const offered = available().filter(([, a]) => !state || state === 'all' || a.states.includes(state));
  const close = (event) => { event.target.closest('details').open = false; };
  return h('details', { class: 'picker', id: 'all-that-match' }, h('summary', { class: 'btn' }, 'All that match'), h('div', { class: 'menu' },
    offered.map(([, a]) => act(`${a.label} …`, () => allDialog(state && state !== 'all' ? params : { ...params, state: a.states.length === 1 ? a.states[0] : undefined }, a), { namespace, kind: a.danger ? 'danger item' : 'item' })),
    h('button', { type: 'button', class: 'btn item', onclick: (event) => { close(event); attempt(() => exportAll(params)); } }, 'Export as NDJSON')));
}

// --- export ---------------------------------------------------------------------------------------

function save(parts, file) {
  const url = URL.createObjectURL(new Blob(parts, { type: 'application/x-ndjson' }));
  h('a', { href: url, download: file }).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

const line = (m) => `${JSON.stringify(m)}\n`;

export const download = (rows, file = 'messages.ndjson') => save(rows.map(line), file);

async function exportAll(params) {
  const parts = [];
  let n = 0, size = 0;
  const job = { ended: false };
  const whole = await matching(params, job, (messages) => {
    for (const m of messages) { const text = line(m); parts.push(text); size += text.length; n++; }
    return n < MOST && size < EXPORT_BYTES;
  });
  save(parts, 'messages.ndjson');
  toast(`${plural(n, 'message')} exported${whole ? '.' : ', the first ones: sluice browse --limit has no such end.'}`);
}

