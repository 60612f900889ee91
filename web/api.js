// api.js - calls of the server, who the caller is, and whether the server answers.
import { parsePlain } from './json.js';
import { epoch, patched } from './live.js';

// The server is one level above the console, whatever prefix a proxy adds.
export const root = new URL('../', location.href.split(/[?#]/)[0]);

export const session = {
  token: null,      // in memory only: gone with the tab
  me: null,         // GET /v1/admin/me
  paths: null,      // of /openapi.json: what this server can do
  version: '',
  environment: '',
  traceUrl: '',     // of a trace, with {trace} for its id
  offlineSince: 0,  // 0: the server answers
  answeredAt: 0,
};

const listeners = new Set();
export const onChange = (f) => listeners.add(f);
export const changed = () => listeners.forEach((f) => f());

export class ApiError extends Error {
  constructor(status, body, request) {
    super(body.message || `status ${status}`);
    Object.assign(this, { status, name: body.error || 'error', request });
  }
}

export class Offline extends Error {
  constructor() { super('The server does not answer.'); }
}

function urlOf(path, params) {
  const url = new URL(path.replace(/^\//, ''), root);
  for (const [name, value] of Object.entries(params || {}))
    if (value !== undefined && value !== null && value !== '') url.searchParams.set(name, value);
  return url;
}

// How far the clock of the server is ahead of this browser's, in milliseconds; 0: within a second. Date has whole seconds.
let ahead = 0;
export const skew = () => ahead;

function noteClock(answer, began) {
  const told = Date.parse(answer.headers.get('Date'));
  if (Number.isNaN(told)) return;
  const early = told - Date.now(), late = told + 999 - began; // it was written between the two
  ahead = early > 0 ? early : late < 0 ? late : 0;
}

function setOnline(online) {
  const was = session.offlineSince;
  session.offlineSince = online ? 0 : was || Date.now();
  if (online) session.answeredAt = Date.now();
  if (Boolean(was) === online) changed();
}

function fieldsOf(method) {
  const fields = { Accept: 'application/json', 'X-Request-Id': `console-${crypto.getRandomValues(new Uint32Array(1))[0].toString(16)}` };
  if (session.token) fields.Authorization = `Bearer ${session.token}`;
  if (method !== 'GET') fields['Sluice-Console'] = '1'; // docs/security.md: a change of a page needs it
  return fields;
}

export async function call(method, path, { params, body, signal } = {}) {
  const headers = fieldsOf(method), began = Date.now();
  let answer, text;
  if (method !== 'GET') listed.epoch = 0; // the page shows what it did at once
  if (body !== undefined) headers['Content-Type'] = 'application/json';
  try {
    answer = await fetch(urlOf(path, params), {
      method, headers, signal, cache: 'no-store', body: body === undefined ? undefined : JSON.stringify(body),
    });
    text = await answer.text();
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    setOnline(false);
    throw new Offline();
  }
  if (answer.status === 502 || answer.status === 504) { setOnline(false); throw new Offline(); }
  setOnline(true);
  noteClock(answer, began);
  let json = {};
  try { json = text ? parsePlain(text) : {}; } catch { json = { message: text.slice(0, 300) }; }
  if (answer.ok) return json;
  if (answer.status === 401) { session.me = null; changed(); }
  throw new ApiError(answer.status, json, headers['X-Request-Id']);
}

// The text of a document, whose numbers must stay as they are, and its version: {text, version}; text null: no document.
export async function getDocument(path, params, signal) {
  const headers = fieldsOf('GET');
  delete headers.Accept;
  let answer, text;
  try {
    answer = await fetch(urlOf(path, params), { headers, signal, cache: 'no-store' });
    text = await answer.text();
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    setOnline(false);
    throw new Offline();
  }
  setOnline(true);
  if (!answer.ok) throw new ApiError(answer.status, { message: text.slice(0, 300) });
  return { text: answer.status === 204 ? null : text, version: Number(answer.headers.get('X-Key-Version')) };
}

export const get = (path, params, signal) => call('GET', path, { params, signal });
export const post = (path, body, params) => call('POST', path, { body, params });
export const put = (path, body, params) => call('PUT', path, { body, params });
export const remove = (path, params) => call('DELETE', path, { params });

// Does this server have the call? What it does not have is not shown.
export const has = (method, path) => Boolean(session.paths?.[path]?.[method.toLowerCase()]);

// --- rights ---------------------------------------------------------------------------

const fits = (pattern, namespace) =>
  pattern === namespace || (pattern.endsWith('*') && namespace !== '*' && namespace.startsWith(pattern.slice(0, -1)));

// namespace '*': the whole server.
export function may(right, namespace = '*') {
  return Boolean(session.me?.grants.some((g) => g.rights.includes(right) &&
    (g.namespace === '*' || fits(g.namespace, namespace))));
}

export const maySomewhere = (right) => Boolean(session.me?.grants.some((g) => g.rights.includes(right)));

export function role() {
  if (may('admin')) return 'admin';
  if (maySomewhere('admin')) return 'operator';
  return maySomewhere('write') ? 'producer' : 'viewer';
}

// The namespaces to list: [undefined] for all at once, or those that the rights name.
export function namespaces() {
  if (may('read') || may('admin')) return [undefined];
  const names = session.me.grants.filter((g) => !g.namespace.endsWith('*') &&
    (g.rights.includes('read') || g.rights.includes('admin'))).map((g) => g.namespace);
  return [...new Set(names)];
}

export async function begin() {
  const [home, document] = await Promise.all([get('/'), get('/openapi.json')]);
  session.version = home.version;
  session.environment = home.environment || '';
  session.traceUrl = home.trace_url || '';
  session.paths = document.paths;
  session.me = await get('/v1/admin/me');
  changed();
}

// --- lists ------------------------------------------------------------------------------

export const PAGE = 1000;

let listed = { most: 0, epoch: 0 }; // the last list

// The first queues, up to `most`; more: there are others. While live updates come, the list is asked for once.
export async function queues(signal, most = PAGE) {
  if (epoch() && listed.epoch === epoch() && listed.most === most) return { ...listed, rows: patched(listed.rows, listed.more, listed.at) };
  const now = epoch(), at = Date.now();
  const found = await listQueues(signal, most);
  listed = { ...found, most, at, epoch: found.partial ? 0 : now };
  return found;
}

async function listQueues(signal, most) {
  const rows = [];
  let partial = null, more = false;
  for (const namespace of namespaces()) {
    let cursor;
    do {
      const page = await get('/v1/admin/queues', { namespace, cursor, limit: Math.min(PAGE, most) }, signal);
      rows.push(...page.queues);
      partial = page.partial ? page.message : partial;
      cursor = page.cursor;
    } while (cursor !== undefined && rows.length < most);
    more = more || cursor !== undefined;
  }
  return { rows, more, partial };
}
