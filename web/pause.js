// pause.js - to pause queues, with a reason and an end if somebody gives them, and to resume them.
import { h } from './dom.js';
import { post } from './api.js';
import { duration, plural, when } from './format.js';
import { nameOf, rateOf } from './samples.js';
import { app, ask, pill, toast } from './ui.js';

// "paused by alice because of the release until 12:00:00"
export const pauseText = (q) => ['paused', q.paused_by && `by ${q.paused_by}`, q.pause_reason && `because ${q.pause_reason}`, q.paused_until && `until ${when(q.paused_until)}`].filter(Boolean).join(' ');

const left = (q) => Math.max(0, Date.parse(q.paused_until) - Date.now());

// A queue runs if a message of it is in flight, or was delivered in the last seconds.
export const stateOf = (q) => (q.paused ? 'paused' : q.leased || rateOf(nameOf(q), 'delivered') > 0 ? 'running' : 'idle');

// The state of a queue, with what is known of its pause.
export const statePill = (q) => [pill(stateOf(q)),
  q.paused && pauseText(q) !== 'paused' && h('small', { class: 'because' }, ' ', [q.pause_reason, q.paused_until && `${duration(left(q))} left`].filter(Boolean).join(', ') || `by ${q.paused_by}`)];

// The same in a sentence, for the page of the queue.
export const pauseNote = (q) => q.paused && pauseText(q) !== 'paused' && h('p', { class: 'because', id: 'because' }, `${pauseText(q).replace('paused', 'Paused')}${q.paused_until ? `; it resumes by itself in ${duration(left(q))}` : ''}.`);

export const set = (q, on, more) => post(`/v1/admin/queue/${on ? 'pause' : 'resume'}`, { namespace: q.namespace, queue: q.queue, ...more });

// What a pause was, as its call takes it: for an undo.
export const was = (q) => ({ ...(q.pause_reason && { reason: q.pause_reason }), ...(q.paused_until && { for: `${Math.max(1, left(q))}ms` }) });

export async function pause(q, on) {
  await set(q, on);
  app.refresh();
  toast(`${q.namespace}/${q.queue} ${on ? 'is paused: it accepts messages and delivers none.' : 'delivers again.'}`, {
    undo: async () => { await set(q, !on, on ? {} : was(q)); app.refresh(); },
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
      toast(`${one || plural(queues.length, 'queue')} paused.`, { undo: async () => { for (const q of queues) await set(q, q.paused, q.paused ? was(q) : {}); app.refresh(); } });
    },
  });
}
