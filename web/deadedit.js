// deadedit.js - changes the bodies of many dead letters by one JSON patch, with a preview, and makes them ready again.
import { h } from './dom.js';
import { get, post } from './api.js';
import { number, plural } from './format.js';
import { parse, stringify } from './json.js';
import { applyPatch, readPatch } from './patch.js';
import { acted } from './bulk.js';
import { app, ask, messageOf, toast } from './ui.js';

const SAMPLES = 3, PAGE = 500, SHOWN = 600;

async function bodyOf(m) {
  const whole = m.payload === undefined || m.masked ? await get('/v1/admin/message', { namespace: m.namespace, queue: m.queue, id: m.uid }) : m;
  if (whole.payload === undefined) throw new Error('the body is too large');
  return new TextDecoder('utf-8', { fatal: true }).decode(Uint8Array.from(atob(whole.payload), (c) => c.charCodeAt(0)));
}

// The new text of a body. Throws if it is not JSON, or if the patch does not fit or changes nothing.
function changed(text, patch) {
  const before = parse(text), after = stringify(applyPatch(patch, before));
  if (after === stringify(before)) throw new Error('nothing changes');
  return after;
}

const cut = (text) => (text.length > SHOWN ? `${text.slice(0, SHOWN)} …` : text);

function previewOf(text, patch) {
  let after, why;
  try { after = changed(text, patch); } catch (error) { why = error.message; }
  return h('div', { class: 'diff' }, h('pre', { class: `text ${after ? 'old' : ''}` }, h('span', { class: 'hidden' }, 'before: '), cut(text)),
    after ? h('pre', { class: 'text new' }, h('span', { class: 'hidden' }, 'after: '), cut(after)) : h('p', { class: 'error' }, `Stays as it is: ${why}.`));
}

// Does it page by page, until the list or the job has ended.
async function throughAll(place, filter, patch, job, say) {
  const found = { done: 0, left: 0, why: null };
  let cursor;
  do {
    const page = await get('/v1/admin/dlq', { ...place, ...filter, limit: PAGE, cursor });
    for (const m of page.messages) {
      if (job.ended) return found;
      try {
        await post('/v1/admin/message/edit', { ...place, id: m.uid, text: changed(await bodyOf(m), patch) });
        found.done++;
      } catch (error) {
        if (error.constructor.name === 'Offline') throw error;
        found.left++;
        found.why ??= error;
      }
      say(`${number(found.done)} changed, ${number(found.left)} left as they are …`);
    }
    cursor = page.cursor;
  } while (cursor !== undefined);
  return found;
}

export async function editBodies(q, filter, messages) {
  const place = { namespace: q.namespace, queue: q.queue }, job = { ended: false };
  const texts = await Promise.all(messages.slice(0, SAMPLES).map((m) => bodyOf(m).catch((error) => `(${error.message})`)));
  const preview = h('div', { class: 'preview', role: 'status', 'aria-label': 'Preview' });
  const said = h('p', { class: 'counted', role: 'status' });
  const read = (text) => readPatch(parse(text));
  const show = (text) => {
    try {
      const patch = read(text);
      preview.replaceChildren(...texts.map((body) => previewOf(body, patch)));
    } catch (error) {
      preview.replaceChildren(h('p', { class: 'error' }, error.message), ...texts.map((body) => h('pre', { class: 'text' }, cut(body))));
    }
  };
  const first = '[{"op": "replace", "path": "/name", "value": "new"}]';
  const dialog = ask({
    title: `Edit the bodies of dead letters of ${place.namespace}/${place.queue}`, confirm: 'Edit and redrive', extra: [preview, said],
    text: 'What the patch changes is ready again, with its failures reset. What it does not fit stays a dead letter. Closing this dialog ends it.',
    fields: [{ name: 'patch', label: 'JSON patch', kind: 'area', rows: 4, value: first, help: 'Operations of RFC 6902: add, remove, replace, move, copy, test.' }],
    run: async ({ patch }) => {
      const found = await throughAll(place, filter, read(patch), job, (text) => { said.textContent = text; });
      acted.at = Date.now();
      toast(`Edited and ready again: ${plural(found.done, 'dead letter')}.${found.left ? ` ${number(found.left)} left as they are: ${messageOf(found.why)}` : ''}`, { kind: found.left ? 'bad' : '' });
      app.refresh();
    },
  });
  dialog.classList.add('broad');
  dialog.addEventListener('close', () => { job.ended = true; });
  const area = dialog.querySelector('[name=patch]');
  area.addEventListener('input', () => show(area.value));
  show(first);
}
