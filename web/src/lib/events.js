// The one live stream of the page: what changed, and whether the daemon is there.
import { signal, batch } from './html.js';
import { base } from './router.js';
import { login } from './api.js';
import { openStream } from './stream.js';

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
export function onChanges(f) {
  listeners.add(f);
  return () => listeners.delete(f);
}

function receive(text) {
  heard.value = Date.now();
  let doc;
  try {
    doc = JSON.parse(text);
  } catch {
    return;
  }
  if (doc.hello) {
    batch(() => {
      if (hello.value && !doc.hello.resumed) generation.value++;
      hello.value = doc.hello;
      connection.value = 'live';
    });
  }
  if (doc.changes) for (const f of [...listeners]) f(doc.changes);
  if (doc.end) login();
}

function take(what) {
  if (what.message) receive(what.message);
  if (what.lost && hello.value) connection.value = 'lost';
  if (what.ended) login();
}

/** Opens the stream: by the worker that all tabs share, where the browser has such workers. */
export function connect() {
  const script = document.querySelector('meta[name=worker]')?.content;
  if (!globalThis.SharedWorker || !script) {
    openStream(base, take);
    return;
  }
  const { port } = new SharedWorker(trusted(script), { type: 'module', name: 'events' });
  port.onmessage = ({ data }) => take(data);
  addEventListener('pagehide', () => port.postMessage('bye'));
  addEventListener('pageshow', e => {
    if (e.persisted) location.reload();
  }); // it missed what came meanwhile
}

// The console's own script, for browsers that ask for a proof (Trusted Types).
function trusted(script) {
  if (!globalThis.trustedTypes) return script;
  return trustedTypes.createPolicy('cupola', { createScriptURL: url => url }).createScriptURL(script);
}
