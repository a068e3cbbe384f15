// The one live stream of the page: what changed, and whether the daemon is there.
import { signal, batch } from './html.js';
import { base } from './router.js';
import { login } from './api.js';

/** The first message of the stream: version, user, admin, domain. null before it came. */
export const hello = signal(null);
/** 'connecting', 'live' or 'lost'. */
export const connection = signal('connecting');
/** When the stream was last heard of, in ms. */
export const heard = signal(Date.now());
/** Counts reconnects after which everything shown may be stale. */
export const generation = signal(0);

const listeners = new Set();

/** Calls f with each change, until the returned function is called. @param {(changes: Array) => void} f */
export function onChanges(f) { listeners.add(f); return () => listeners.delete(f); }

let source, retry;

function receive(message) {
  heard.value = Date.now();
  let doc;
  try { doc = JSON.parse(message.data); } catch { return; }
  if (doc.hello) {
    batch(() => {
      if (hello.value && !doc.hello.resumed) generation.value++;
      hello.value = doc.hello;
      connection.value = 'live';
    });
  }
  if (doc.changes) for (const f of [...listeners]) f(doc.changes);
  if (doc.end) { source.close(); login(); }
}

/** Opens the stream. The browser reconnects by itself, but not after an answer that is not a stream: then this does. */
export function connect() {
  clearTimeout(retry);
  source = new EventSource(base + '/events');
  source.onmessage = receive;
  source.onerror = () => {
    if (hello.value) connection.value = 'lost';
    if (source.readyState !== EventSource.CLOSED) return;
    retry = setTimeout(reconnect, 1000);
  };
}

// A new EventSource sends no Last-Event-ID: its hello is not resumed, and all is loaded again.
async function reconnect() {
  try {
    const answer = await fetch(base + '/api/userinfo', { credentials: 'same-origin' });
    if (answer.status === 401) return login();
  } catch { /* still down: connect fails, and tries again */ }
  connect();
}
