// Calls of the daemon's public APIs through /console/api, which adds the session's token.
import { base, place } from './router.js';

/** An answer other than 2xx, with the server's own words. */
export class APIError extends Error {
  /** @param {number} status @param {string} message @param {string} [code] */
  constructor(status, message, code) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/** No answer: the daemon is down or not reachable. */
export class NetworkError extends Error {}

let leaving = false;

/** Goes to a page that is not the console's: once, though several answers say that the session ended. @param {string} to */
export function leave(to) {
  if (leaving) return;
  leaving = true;
  location.assign(to);
}

/** Leads to the login page, and back to here. */
export function login() {
  leave(base + '/login?next=' + encodeURIComponent(base + place.value.path + location.search));
}

function messageOf(status, doc, text) {
  if (doc?.errors?.length) return new APIError(status, doc.errors.map(e => e.detail || e.title).join('\n'), doc.errors[0].title);
  if (Array.isArray(doc)) return new APIError(status, doc.map(e => `${e.context}: ${e.description}`).join('\n')); // of the autoscaler
  const message = doc?.error_description || doc?.description || doc?.message || doc?.error || text.trim() || 'status ' + status;
  return new APIError(status, typeof message === 'string' ? message : JSON.stringify(message));
}

const pause = ms => new Promise(done => setTimeout(done, ms));

// A browser on the daemon's machine gives up requests whenever a container's network link comes or goes: what only reads is
// asked again.
async function reach(path, request) {
  for (const wait of request.method === 'GET' ? [200, 800, null] : [null]) {
    try {
      return await fetch(base + '/api' + path, request);
    } catch (e) {
      if (e.name === 'AbortError') throw e;
      if (wait === null) throw new NetworkError('The daemon does not answer.');
      await pause(wait);
    }
  }
}

/**
 * Calls a path of the API, like /v3/apps. Answers the body: parsed JSON, or text.
 * @param {string} method @param {string} path
 * @param {{json?: any, body?: BodyInit, type?: string, signal?: AbortSignal, whole?: boolean}} [o] whole answers the Response itself
 */
export async function call(method, path, o = {}) {
  const headers = { Accept: 'application/json' };
  let body = o.body;
  if (o.json !== undefined) {
    body = JSON.stringify(o.json);
    headers['Content-Type'] = 'application/json';
  }
  if (o.type) headers['Content-Type'] = o.type;
  const answer = await reach(path, { method, headers, body, signal: o.signal, credentials: 'same-origin' });
  if (answer.status === 401) {
    login();
    throw new APIError(401, 'The session ended: log in again.');
  }
  if (answer.ok && o.whole) return answer;
  const text = await answer.text();
  let doc;
  try {
    doc = JSON.parse(text);
  } catch {
    /* not JSON */
  }
  if (!answer.ok) throw messageOf(answer.status, doc, text);
  return doc === undefined ? text : doc;
}

export const get = (path, o) => call('GET', path, o);

/**
 * All pages of a list. include's documents of all pages are joined.
 * @param {string} path without page; per_page is 5000 where the path names none
 */
export async function list(path, o) {
  const sep = path.includes('?') ? '&' : '?';
  let next = path.includes('per_page=') ? path : path + sep + 'per_page=5000';
  const resources = [],
    included = {};
  while (next) {
    const page = await get(next, o);
    resources.push(...page.resources);
    for (const [kind, docs] of Object.entries(page.included ?? {})) (included[kind] ??= []).push(...docs);
    const href = page.pagination?.next?.href;
    next = href ? new URL(href).pathname + new URL(href).search : null;
  }
  return { resources, included };
}

/** Waits for the job of a 202 answer; fails as the job does. @param {Response} answer */
export async function finished(answer) {
  const location = answer.headers.get('Location');
  if (!location) return;
  const path = new URL(location, document.baseURI).pathname.replace(base + '/api', '');
  if (!path.startsWith('/v3/jobs/')) return;
  for (let wait = 100; ; wait = Math.min(wait * 1.5, 2000)) {
    const job = await get(path);
    if (job.state === 'COMPLETE') return;
    if (job.state === 'FAILED') throw messageOf(422, job, 'the job failed');
    await pause(wait);
  }
}

/** Calls, and waits for the job if the answer names one. */
export async function act(method, path, json) {
  const answer = await call(method, path, { json, whole: true });
  await finished(answer);
  const text = await answer.text();
  return text ? JSON.parse(text) : null;
}

/** Values as a list's filter, which the API splits at commas before it decodes each value. @param {string[]} values */
export const among = values => values.map(v => encodeURIComponent(v.replace(/[%,]/g, encodeURIComponent))).join(',');
