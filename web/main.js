// main.js - the shell: rail, top bar, router, and the loop that keeps the page fresh.
//
//      hash changes ──> load(route) ──> view(data) ──> morph into <main>
//      something changed (live.js), ─┘
//      or 2 s later without live updates, in the visible tab
//
// A page is a module with load(route, signal), view(data, route) and title. The URL holds all its state.
import { h, morph } from './dom.js';
import { begin, has, may, maySomewhere, onChange, role, session, Offline, ApiError } from './api.js';
import { duration } from './format.js';
import * as live from './live.js';
import { selected } from './table.js';
import { app, href, icon, messageOf } from './ui.js';
import * as keyboard from './keyboard.js';
import * as keys from './keys.js';
import * as login from './login.js';
import * as overview from './overview.js';
import * as queuesPage from './queues.js';
import * as queue from './queue.js';
import * as messages from './messages.js';
import * as message from './message.js';
import * as dead from './dead.js';
import * as schedules from './schedules.js';
import * as workers from './workers.js';
import * as locks from './locks.js';
import * as lock from './lock.js';
import * as documents from './documents.js';
import * as limits from './limits.js';
import * as shards from './shards.js';
import * as tasks from './tasks.js';
import * as audit from './audit.js';
import * as settings from './settings.js';

const always = () => true;
const PAGES = {
  overview: { page: overview, label: 'Overview', shown: always },
  queues: { page: queuesPage, label: 'Queues', shown: always },
  queue: { page: queue, parent: 'queues' },
  messages: { page: messages, label: 'Messages', shown: always },
  message: { page: message, parent: 'messages' },
  keys: { page: keys, label: 'Keys', shown: () => has('GET', '/v1/admin/keys') },
  dead: { page: dead, label: 'Dead letters', shown: always },
  schedules: { page: schedules, label: 'Schedules', shown: () => has('GET', '/v1/admin/schedules') },
  workers: { page: workers, label: 'Workers', shown: () => has('GET', '/v1/admin/workers') },
  locks: { page: locks, label: 'Locks and state', shown: () => has('GET', '/v1/admin/locks') },
  lock: { page: lock, parent: 'locks' },
  documents: { page: documents, parent: 'locks' },
  limits: { page: limits, label: 'Shares and limits', shown: always },
  tasks: { page: tasks, label: 'Tasks', shown: () => has('GET', '/v1/admin/tasks') },
  shards: { page: shards, label: 'Shards and nodes', shown: always },
  audit: { page: audit, label: 'Audit', shown: () => has('GET', '/v1/admin/audit') && may('admin') },
  settings: { page: settings, label: 'Settings', shown: () => may('admin') },
};
const POLL_MS = 2000;
const IDLE_MS = 10000; // nothing changed: ages grow, and a step of the history has ended
// What these pages show changes with the counts of queues; the others are asked for.
const FOLLOW = ['overview', 'queues', 'queue', 'messages', 'dead'];

const ui = { live: true, theme: sessionStorage.getItem('theme') || 'system', error: null, data: null, dataAt: 0, loadedAt: 0, news: false, key: null };

// --- route --------------------------------------------------------------------------------------

function routeOf(hash) {
  const [path, query] = hash.replace(/^#\/?/, '').split('?');
  const parts = path.split('/').filter(Boolean).map(decodeURIComponent);
  if (!PAGES[parts[0]]) parts.splice(0, parts.length, 'overview');
  return { path: parts, params: Object.fromEntries(new URLSearchParams(query || '')), page: PAGES[parts[0]].page };
}

const route = () => routeOf(location.hash);

// What data belong to: data of another page may still arrive after the hash has changed.
const placeOf = ({ path }) => path.slice(0, 3).join('/');

// --- shell ----------------------------------------------------------------------------------------

function rail(now) {
  const at = PAGES[now].parent || now;
  return h('nav', { class: 'rail', 'aria-label': 'Pages' },
    h('a', { class: 'brand', href: '#/overview' }, h('img', { src: 'icon.svg', alt: '', width: 24, height: 24 }), 'Sluice'),
    h('ul', null, Object.entries(PAGES).filter(([, p]) => p.label && p.shown()).map(([id, p]) => h('li', null, h('a', { href: `#/${id}`, 'aria-current': id === at && 'page' }, icon(id), h('span', null, p.label))))),
    h('p', { class: 'foot' }, `${location.host}`, h('br'), `version ${session.version}`));
}

function search(event) {
  event.preventDefault();
  const text = event.target.elements.global.value.trim();
  const [namespace, name] = text.split('/');
  app.go(/^[\w.-]+\/[\w.-]+$/.test(text) ? href(['queue', namespace, name]) : href(['messages'], { q: text }));
}

function freshness() {
  if (!ui.dataAt) return 'loading';
  const old = Date.now() - ui.dataAt;
  return ui.live && (old < 3 * POLL_MS || (live.isUp() && !ui.news)) ? 'live' : `${duration(old)} old`;
}

const THEMES = { system: 'light', light: 'dark', dark: 'system' };

// A name from the settings of the server. Its colour says where one is; its word says it, too.
const ENVIRONMENTS = [[/prod|live/i, 'bad'], [/stag|pre|uat|accept/i, 'warn'], [/test|qa|ci/i, 'info'], [/dev|local/i, 'ok']];
const kindOf = (environment) => ENVIRONMENTS.find(([words]) => words.test(environment))?.[1] || 'violet';

const environment = () => session.environment && h('span', { class: `environment e-${kindOf(session.environment)}`, title: 'environment' }, h('span', { class: 'hidden' }, 'environment '), session.environment);

function topBar() {
  const name = session.me.name || (session.me.authenticated ? 'unnamed' : 'this machine');
  return h('header', { class: `top ${session.environment ? `e-${kindOf(session.environment)}` : ''}` },
    environment(),
    h('form', { role: 'search', 'aria-label': 'Everywhere', onsubmit: search }, icon('search'), h('input', { id: 'global', name: 'global', type: 'search', 'aria-label': 'Find a message by id, or a queue', placeholder: 'Find an id, or namespace/queue', autocomplete: 'off', spellcheck: 'false' }), h('kbd', { 'aria-hidden': 'true' }, 'Ctrl K')),
    h('span', { class: 'grow' }),
    h('button', { type: 'button', class: 'btn plain', id: 'live', 'aria-pressed': String(ui.live), title: 'Live updates (.)', onclick: toggleLive }, icon(ui.live ? 'live' : 'pause'), h('span', { id: 'age' }, freshness())),
    h('button', { type: 'button', class: 'btn plain', id: 'theme', title: 'Theme (t)', onclick: nextTheme }, icon('theme'), ui.theme),
    h('button', { type: 'button', class: 'btn plain', id: 'help', title: 'Keyboard (?)', 'aria-label': 'Keyboard shortcuts', onclick: keyboard.help }, icon('help')),
    h('span', { class: 'who', title: session.me.grants.map((g) => `${g.namespace}: ${g.rights.join(', ')}`).join('; ') }, name, ' ', h('b', { id: 'role' }, role())),
    session.token && h('button', { type: 'button', class: 'btn plain', onclick: () => location.reload() }, 'Log out'));
}

function banner() {
  if (!session.offlineSince) return null;
  return h('div', { class: 'offline', role: 'alert', id: 'offline' }, h('b', null, 'The server does not answer.'), ` What you see is ${duration(Date.now() - (ui.dataAt || session.offlineSince))} old. Actions are off. The console tries again every 2 seconds.`);
}

function content(now) {
  if (ui.error && !(ui.error instanceof Offline)) return h('section', { class: 'card problem', role: 'alert' }, h('h1', null, ui.error.status === 404 ? 'Not found' : ui.error.status === 403 ? 'Not allowed' : 'Error'), h('p', null, messageOf(ui.error)),
    h('button', { type: 'button', class: 'btn', onclick: () => refresh() }, 'Try again'));
  if (ui.data === null || ui.of !== placeOf(now)) return h('div', { class: 'skeleton', 'aria-busy': 'true' }, h('span', { class: 'hidden' }, 'Loading'), [1, 2, 3, 4].map(() => h('div')));
  try {
    return now.page.view(ui.data, now);
  } catch (error) { // a defect of the page: the rest of the console still works
    reportError(error);
    return h('section', { class: 'card problem', role: 'alert' }, h('h1', null, 'This page failed'), h('p', null, String(error)));
  }
}

function draw() {
  const root = document.getElementById('app');
  const next = h('div', { id: 'app' });
  if (!session.me) next.append(session.paths ? login.view() : h('main', { class: 'login', id: 'main' }, banner() || h('p', null, 'Loading')));
  else {
    const now = route();
    const title = now.page.title;
    document.title = `${typeof title === 'function' ? title(now) : title} · ${session.environment ? `${session.environment} · ` : ''}Sluice`;
    const viewer = !maySomewhere('admin') && !maySomewhere('write');
    next.append(h('a', { class: 'skip', href: '#main', onclick: (e) => { e.preventDefault(); document.querySelector('main').focus(); } }, 'Skip to the page'), rail(now.path[0]),
      h('div', { class: 'body' }, topBar(), banner(), viewer && h('p', { class: 'readonly' }, 'Read only: your rights let you look, not change.'),
        h('main', { id: 'main', tabindex: '-1', 'data-page': now.path[0], 'data-at': ui.key, 'data-ready': ui.data !== null && String(ui.key === location.hash) }, content(now))));
  }
  if (session.me && root.querySelector('nav.rail')) morph(root, next);
  else if (!session.me && root.querySelector('.login form') && next.querySelector('.login form')) return;
  else root.replaceChildren(...next.childNodes);
  document.documentElement.dataset.theme = ui.theme;
}

function toggleLive() { ui.live = !ui.live; if (ui.live) refresh(); draw(); }
function nextTheme() { ui.theme = THEMES[ui.theme]; sessionStorage.setItem('theme', ui.theme); draw(); }

// --- the loop ---------------------------------------------------------------------------------------

let running = null, timer = 0;

async function refresh() {
  clearTimeout(timer);
  running?.abort();
  const own = running = new AbortController();
  const now = route(), hash = location.hash, began = performance.now();
  ui.news = false;
  try {
    if (!session.paths || (session.offlineSince && !session.me)) await begin();
    const data = await now.page.load(now, own.signal);
    if (own.signal.aborted) return;
    Object.assign(ui, { data, of: placeOf(now), dataAt: Date.now(), loadedAt: Date.now(), error: null, key: hash });
  } catch (error) {
    if (error.name === 'AbortError' || own.signal.aborted) return;
    if (error instanceof ApiError && error.status === 401) ui.data = null;
    ui.error = error;
  }
  draw();
  // A slow answer is asked for less often: at most a twentieth of the time.
  const wait = session.offlineSince ? POLL_MS : Math.max(POLL_MS, (performance.now() - began) * 20);
  timer = setTimeout(tick, wait);
}

// A line of live updates has come; line null: nothing has changed.
function heard(line) {
  if (line && live.concerns(line, route())) ui.news = true;
  else if (!ui.news && FOLLOW.includes(route().path[0])) ui.dataAt = Date.now();
}

const isIdle = () => live.isUp() && !ui.news && !ui.error && FOLLOW.includes(route().path[0]) && Date.now() - ui.loadedAt < IDLE_MS;

function tick() {
  const on = ui.live && document.visibilityState === 'visible' && session.me;
  live.keep(on, heard);
  if (session.offlineSince || (on && !document.querySelector('dialog') && !isIdle())) refresh();
  else { timer = setTimeout(tick, live.isUp() ? POLL_MS / 4 : POLL_MS); }
}

let page = null;
function arrive() {
  const now = route(), name = placeOf(now);
  if (name !== page) { ui.data = null; selected.clear(); scrollTo(0, 0); }
  page = name;
  ui.error = null;
  if (session.me) draw();
  refresh();
}

Object.assign(app, { refresh, redraw: draw, go: (hash) => { if (location.hash === hash) refresh(); else location.hash = hash; } });
onChange(() => { draw(); if (session.me && ui.data === null) refresh(); });
addEventListener('hashchange', arrive);
document.addEventListener('visibilitychange', () => { live.keep(ui.live, heard); if (document.visibilityState === 'visible' && ui.live && session.me) refresh(); });
setInterval(() => { const age = document.getElementById('age'); if (age) age.textContent = freshness(); }, 1000);
keyboard.install({ live: toggleLive, theme: nextTheme, pages: () => Object.entries(PAGES).filter(([, p]) => p.label && p.shown()).map(([id, p]) => [p.label, `#/${id}`]) });
document.documentElement.dataset.theme = ui.theme;
arrive();
