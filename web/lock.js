// lock.js - one lock key: who holds it, and the document beside it.
import { h } from './dom.js';
import { get, getDocument } from './api.js';
import { duration, number, when } from './format.js';
import { release } from './locks.js';
import { act, card, copy, empty, facts, head, href, pill } from './ui.js';
import { noteVersion, versionsCard } from './versions.js';

const fromUnix = (seconds) => new Date(seconds * 1000).toISOString();

export async function load(route, signal) {
  const [, namespace, key] = route.path, place = { namespace, key };
  const [about, found, page] = await Promise.all([get('/v1/describe', place, signal), getDocument('/v1/get', { ...place, public: '1' }, signal), get('/v1/admin/locks', { namespace, prefix: key, limit: 1 }, signal)]);
  const versions = noteVersion(`${namespace}/${key}`, found.version, found.text);
  return { namespace, key, about, text: found.text, versions, held: page.locks.find((l) => l.key === key) };
}

export function view({ namespace, key, about, text, versions, held }, route) {
  const until = about.expires_at_unix && fromUnix(about.expires_at_unix);
  return h('div', null,
    head([h('span', { class: 'ns' }, `${namespace}/`), key, ' ', about.owner ? pill('leased', 'held') : pill('idle', 'free')], held && act('Release', () => release(held), { namespace, kind: 'danger' })),
    !about.version && !about.owner ? empty('No such key', 'Nobody holds it, and it has no document.') : [
      card('Lease', about.owner ? facts([['Holder', about.owner], ['Token', held?.token], ['Ends', until && `${when(until)} (in ${duration(Date.parse(until) - Date.now())})`], ['Waiting', held && number(held.waiters)]]) : h('p', { class: 'muted' }, 'Nobody holds this key.')),
      text === null ? card('Document', h('p', { class: 'muted' }, 'No document is committed.')) : versionsCard(['Document ', h('small', null, 'as it was committed last; what a holder has staged is not shown')], versions, route,
        facts([['Version', number(about.version)], ['Changed', about.updated_at_unix && when(fromUnix(about.updated_at_unix))], ['ETag', about.state_etag && h('code', null, about.state_etag)], ['Copy', h('button', { type: 'button', class: 'btn small', onclick: () => copy(text) }, 'Copy')]])),
    ],
    h('p', null, h('a', { href: href(['locks']) }, 'All held locks')));
}

export const title = (route) => `Lock ${route.path[2]}`;
