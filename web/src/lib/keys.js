// The keyboard: single keys and sequences of two, like "g a". Typing in a field is never a command.
import { useEffect } from './html.js';

const bindings = new Map();
let first = null,
  firstAt = 0;

const typing = e => e.target.closest?.('input, textarea, select, [contenteditable], .terminal') !== null;

function find(e) {
  const key = e.key === ' ' ? 'Space' : e.key;
  if (first && e.timeStamp - firstAt < 1200 && bindings.has(first + ' ' + key)) return first + ' ' + key;
  return bindings.has(key) ? key : null;
}

addEventListener('keydown', e => {
  if ((e.ctrlKey || e.metaKey) && !e.altKey && e.key.toLowerCase() === 'k' && bindings.has('mod+k')) {
    e.preventDefault();
    bindings.get('mod+k').at(-1).run(e);
    return;
  }
  if (e.ctrlKey || e.metaKey || e.altKey || typing(e) || document.querySelector('dialog[open]')) return;
  const found = find(e);
  if (found) {
    first = null;
    if (bindings.get(found).at(-1).run(e) !== false) e.preventDefault();
  } else {
    first = e.key;
    firstAt = e.timeStamp;
  }
});

/** Binds a key until the returned function is called; the newest binding of a key wins. */
export function bind(key, label, run) {
  const binding = { label, run };
  if (!bindings.has(key)) bindings.set(key, []);
  bindings.get(key).push(binding);
  return () => {
    const left = bindings.get(key).filter(b => b !== binding);
    if (left.length) bindings.set(key, left);
    else bindings.delete(key);
  };
}

/** Binds keys while a component is shown. @param {Array<[string, string, (e: KeyboardEvent) => any]>} all */
export function useKeys(all, deps = []) {
  useEffect(() => {
    const ends = all.map(([key, label, run]) => bind(key, label, run));
    return () => ends.forEach(end => end());
  }, deps);
}

/** What is bound now: [key, label], for the help. */
export const bound = () => [...bindings].map(([key, list]) => [key, list.at(-1).label]);
