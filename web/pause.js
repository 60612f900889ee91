// pause.js - to pause queues, with a reason and an end if somebody gives them, to drain them, and to resume them.
import { h } from './dom.js';
import { post } from './api.js';
import { duration, plural, when } from './format.js';
import { nameOf, rateOf } from './samples.js';
import { app, ask, pill, toast } from './ui.js';

// "paused by alice because of the release until 12:00:00"
export const pauseText = (q) => ['paused', q.paused_by && `by ${q.paused_by}`, q.pause_reason && `because ${q.pause_reason}`, q.paused_until && `until ${when(q.paused_until)}`].filter(Boolean).join(' ');

const left = (q) => Math.max(0, Date.parse(q.paused_until) - Date.now());

// What a drain waits for; dead letters stay.
export const rest = (q) => q.ready + q.delayed + q.held + q.leased;

// A queue runs if a message of it is in flight, or was delivered in the last seconds.
export const stateOf = (q) => (q.paused ? 'paused' : q.draining ? (rest(q) ? 'draining' : 'drained') : q.leased || rateOf(nameOf(q), 'delivered') > 0 ? 'running' : 'idle');

// The state of a queue, with what is known of its pause.
export const pills = (q) => [pill(stateOf(q)), q.paused && q.draining && [' ', pill('draining')]];
export const statePill = (q) => [pills(q),
  q.paused && pauseText(q) !== 'paused' && h('small', { class: 'because under', title: pauseText(q) }, [q.paused_until && `${duration(left(q))} left`, q.pause_reason].filter(Boolean).join(', ') || `by ${q.paused_by}`)];

// The same in sentences, for the page of the queue.
export const stateNotes = (q) => [q.draining && h('p', { class: 'because' }, `Refuses new messages until somebody resumes it; ${rest(q) ? `${plural(rest(q), 'message')} left` : 'nothing is left'}.`),
  q.paused && pauseText(q) !== 'paused' && h('p', { class: 'because', id: 'because' }, `${pauseText(q).replace('paused', 'Paused')}${q.paused_until ? `; it resumes by itself in ${duration(left(q))}` : ''}.`)];

const set = (q, on, more) => post(`/v1/admin/queue/${on ? 'pause' : 'resume'}`, { namespace: q.namespace, queue: q.queue, ...more });

// What a pause was, as its call takes it: for an undo.
const was = (q) => ({ ...(q.pause_reason && { reason: q.pause_reason }), ...(q.paused_until && { for: `${Math.max(1, left(q))}ms` }) });

const policy = (q, settings) => post('/v1/admin/queue/policy', settings, { namespace: q.namespace, queue: q.queue });

// Makes it as it was: q is the queue of before.
export async function restore(q, { paused, draining }) {
  if (paused) await (q.paused ? set(q, true, was(q)) : policy(q, { paused: false }));
  if (draining) await policy(q, { draining: Boolean(q.draining) });
  app.refresh();
}

export async function pause(q, on) {
  await set(q, on);
  app.refresh();
  const again = q.draining ? (q.paused ? 'delivers and accepts messages again.' : 'accepts messages again.') : 'delivers again.';
  toast(`${q.namespace}/${q.queue} ${on ? `is paused: it ${q.draining ? 'neither accepts nor delivers messages' : 'accepts messages and delivers none'}.` : again}`, { undo: () => restore(q, { paused: on || q.paused, draining: !on && q.draining }) });
}

// after: what to do when all are drained.
export function drainDialog(queues, after = () => {}) {
  const one = queues.length === 1 && `${queues[0].namespace}/${queues[0].queue}`;
  ask({
    title: `Drain ${one || plural(queues.length, 'queue')}`, confirm: 'Drain',
    text: `New messages are refused with “queue_draining”: producers get an error. ${plural(queues.reduce((n, q) => n + rest(q), 0), 'message')} that ${queues.length > 1 ? 'they have' : 'it has'} will be delivered as before. Until somebody resumes ${queues.length > 1 ? 'them' : 'it'}.`,
    run: async () => {
      for (const q of queues) await post('/v1/admin/queue/drain', { namespace: q.namespace, queue: q.queue });
      after();
      toast(`${one || plural(queues.length, 'queue')} ${queues.length > 1 ? 'are' : 'is'} being drained.`, { undo: async () => { for (const q of queues) await restore(q, { draining: true }); } });
    },
  });
}

// after: what to do when all are paused.
export function pauseDialog(queues, after = () => {}) {
  const one = queues.length === 1 && `${queues[0].namespace}/${queues[0].queue}`;
  ask({
    title: `Pause ${one || plural(queues.length, 'queue')}`, confirm: 'Pause', text: 'Messages are accepted and not delivered. Who asks why one waits reads the reason.',
    fields: [{ name: 'reason', label: 'Reason', placeholder: 'release of the relay' }, { name: 'for', label: 'For', placeholder: '30m', help: 'It resumes by itself then. Empty: until somebody resumes it.' }],
    run: async (v) => {
      const more = Object.fromEntries(Object.entries(v).filter(([, value]) => value));
      for (const q of queues) await set(q, true, more);
      after();
      toast(`${one || plural(queues.length, 'queue')} paused.`, { undo: async () => { for (const q of queues) await restore(q, { paused: true }); } });
    },
  });
}
