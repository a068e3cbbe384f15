// Reads the stream of events for all tabs of the console: a SharedWorker.
import { openStream } from './lib/stream.js';

const tabs = new Set();
let hello = null,
  lost = false;

function send(what) {
  if (what.lost) lost = true;
  if (what.message) {
    const doc = JSON.parse(what.message);
    if (doc.hello) {
      hello = doc.hello;
      lost = false;
    }
    if (doc.end) hello = null;
  }
  for (const tab of tabs) tab.postMessage(what);
}

addEventListener('connect', e => {
  const tab = e.ports[0];
  tabs.add(tab);
  tab.onmessage = ({ data }) => {
    if (data === 'bye') tabs.delete(tab);
  };
  // A tab that comes later has loaded nothing yet, so nothing of it is old.
  if (hello) tab.postMessage({ message: JSON.stringify({ hello: { ...hello, resumed: true } }) });
  if (lost) tab.postMessage({ lost: true });
});

openStream('/console', send);
