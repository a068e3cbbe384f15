// What a browser keeps for its user: settings in localStorage.
import { signal, effect } from './html.js';

const all = {};

/**
 * A signal whose value outlives the page. @template T @param {string} name @param {T} initial
 * @returns {import('@preact/signals').Signal<T>}
 */
export function setting(name, initial) {
  if (all[name]) return all[name];
  const key = 'cupola.' + name;
  let value = initial;
  try {
    const kept = localStorage.getItem(key);
    if (kept !== null) value = JSON.parse(kept);
  } catch {
    /* not ours, or storage is off */
  }
  const s = (all[name] = signal(value));
  effect(() => {
    try {
      localStorage.setItem(key, JSON.stringify(s.value));
    } catch {
      /* storage is off */
    }
  });
  return s;
}

/** 'system', 'light' or 'dark'. */
export const theme = setting('theme', 'system');
/** Whether times are shown in UTC. */
export const utc = setting('utc', false);

effect(() => {
  document.documentElement.style.colorScheme = theme.value === 'system' ? 'light dark' : theme.value;
  document.documentElement.dataset.theme = theme.value;
});
