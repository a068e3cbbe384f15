// Log lines: from the log cache's history and the gateway's stream into one ring, in order and without doubles.
import { get } from './api.js';
import { base } from './router.js';
import { plain } from './ansi.js';

/**
 * @typedef {{seq: number, ns: bigint|null, time: number, key: string, source: string, type: string, instance: string, err: boolean,
 *   raw: string, text: string, json: any}} LogLine
 */

const decoder = new TextDecoder();

function decode(payload) {
  const binary = atob(payload);
  let ascii = true;
  const n = binary.length,
    b = new Uint8Array(n);
  for (let i = 0; i < n; i++) {
    b[i] = binary.charCodeAt(i);
    if (b[i] > 126) ascii = false;
  }
  return ascii ? binary : decoder.decode(b);
}

/** The chip of a line's source: APP, RTR, STG, CELL, API, TASK, SSH, … */
export function chipOf(type) {
  if (type.startsWith('APP/TASK')) return 'TASK';
  return type.split('/', 1)[0] || 'APP';
}

/** A line of an envelope; null of one that is no log. @returns {LogLine|null} */
export function lineOf(envelope) {
  if (!envelope.log) return null;
  const type = envelope.tags?.source_type ?? 'APP';
  const raw = decode(envelope.log.payload ?? '').replace(/\r?\n$/, '');
  return {
    seq: 0,
    stamp: envelope.timestamp,
    time: Number(envelope.timestamp.slice(0, -6)),
    source: chipOf(type),
    type,
    instance: (type === 'RTR' ? envelope.tags?.instance_id : envelope.instance_id) ?? '',
    err: envelope.log.type === 'ERR',
    raw,
    text: plain(raw),
  };
}

/** The parsed JSON of a line that is an object, else null. @param {LogLine} line */
export function jsonOf(line) {
  if (line.json === undefined) {
    line.json = null;
    const at = line.text.indexOf('{');
    if (at >= 0 && line.text.trimEnd().endsWith('}'))
      try {
        line.json = JSON.parse(line.text.slice(at));
      } catch {
        /* only looks like it */
      }
  }
  return line.json;
}

const keyOf = l => l.stamp + l.instance + l.type + l.raw;

/** Up to max lines; the oldest go first. */
export class Ring {
  constructor(max = 50000) {
    this.max = max;
    this.lines = [];
    this.next = 1;
    this.sources = new Map();
    this.instances = new Set();
  }

  #count(lines, by) {
    for (const l of lines) {
      this.sources.set(l.source, (this.sources.get(l.source) ?? 0) + by);
      if (by > 0 && l.source === 'APP') this.instances.add(l.instance);
    }
  }

  /** Appends lines in order; answers how many old ones went. @param {LogLine[]} lines */
  push(lines) {
    this.#count(lines, 1);
    for (const l of lines) {
      l.seq = this.next++;
      this.lines.push(l);
    }
    // Some at a time: to move them all for each line would take long.
    if (this.lines.length < this.max + 5000) return 0;
    const gone = this.lines.length - this.max;
    this.#count(this.lines.splice(0, gone), -1);
    return gone;
  }

  /** Puts older lines before those that are there. */
  unshift(lines) {
    let n = (this.lines[0]?.seq ?? this.next) - lines.length;
    for (const l of lines) l.seq = n++;
    this.#count(lines, 1);
    this.lines = [...lines, ...this.lines];
  }

  /** Those of the lines that are not among the newest here. */
  without(lines) {
    const tail = new Set(this.lines.slice(-3000).map(keyOf));
    return lines.filter(l => !tail.has(keyOf(l)));
  }
}

const pageSize = 1000; // the log cache's most

async function read(app, params, o) {
  const answer = await get(`/api/v1/read/${app}?envelope_types=LOG&limit=${pageSize}&${new URLSearchParams(params)}`, o);
  return (answer.envelopes?.batch ?? []).map(lineOf).filter(Boolean);
}

/** The newest lines before a time (or now), oldest first. @param {string} app @param {string} [before] in ns */
export async function older(app, before, o) {
  return (await read(app, { descending: 'true', ...(before && { end_time: before }) }, o)).reverse();
}

/**
 * The newest lines before a time (or now) that have a text or match an expression, oldest first: of all that is kept, not only
 * of what the log cache has.
 */
export async function search(app, before, text, o) {
  const find = async what => {
    const params = new URLSearchParams({ limit: pageSize, ...what, ...(before && { end_time: before }) });
    for (;;) {
      const answer = await get(`/api/v1/search/${app}?${params}`, o);
      const lines = (answer.envelopes?.batch ?? []).map(lineOf).filter(Boolean);
      if (lines.length || !answer.next_end_time) return lines.reverse();
      params.set('end_time', answer.next_end_time); // not all was looked at
    }
  };
  if (!text) return find({});
  return find({ pattern: `(?i)${text}` }).catch(e => {
    if (e.status !== 400) throw e; // it is no expression there
    return find({ text, ignore_case: 'true' });
  });
}

/** The first lines from a time on. */
export const newer = (app, from, o) => read(app, { start_time: from }, o);

/**
 * Follows an app's log: history, then what comes; after a break of the stream, what was missed.
 * @param {string} app
 * @param {{lines: (all: LogLine[]) => void, state: (s: string, e?: Error) => void, last: () => string|null,
 *   ring: Ring, at?: string|null}} to
 * @returns {() => void} ends it
 */
export function follow(app, to) {
  let source,
    waiting = null,
    again = false,
    ended = false,
    timer;
  const abort = new AbortController();
  // The lines before, and all from a time on: a page at a time, so that none is missing between history and stream.
  async function allSince(from, before, o) {
    for (let page = await newer(app, from, o); ; page = await newer(app, from, o)) {
      to.lines(to.ring.without([...before, ...page]));
      if (page.length < pageSize || page.at(-1).stamp === from) return;
      before = [];
      from = page.at(-1).stamp;
    }
  }
  async function catchUp() {
    if (waiting) {
      again = true;
      return;
    } // the stream began after this read: read once more
    waiting = [];
    try {
      const o = { signal: abort.signal };
      const last = to.last();
      if (last) await allSince(last, [], o);
      else if (to.at) await allSince(to.at, await older(app, to.at, o), o);
      else to.lines(to.ring.without(await older(app, null, o)));
      to.lines(to.ring.without(waiting));
      to.state('live');
    } catch (e) {
      if (e.name !== 'AbortError') to.state('failed', e);
    }
    waiting = null;
    if (again && !ended) {
      again = false;
      catchUp();
    }
  }
  function open() {
    source = new EventSource(`${base}/api/v2/read?log&source_id=${app}`);
    source.onopen = catchUp;
    source.onmessage = m => {
      let batch;
      try {
        batch = JSON.parse(m.data).batch;
      } catch {
        return;
      }
      const lines = (batch ?? []).map(lineOf).filter(Boolean);
      if (waiting) waiting.push(...lines);
      else if (lines.length) to.lines(lines);
    };
    source.onerror = () => {
      if (ended) return;
      to.state('lost');
      if (source.readyState === EventSource.CLOSED) timer = setTimeout(open, 1500);
    };
  }
  // The gateway answers with its first event only: the history does not wait for it.
  open();
  catchUp();
  return () => {
    ended = true;
    clearTimeout(timer);
    abort.abort();
    source.close();
  };
}
