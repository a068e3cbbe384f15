// What a screen shows of the API: loaded, and loaded again when the stream says that it changed.
import { useState, useEffect, useRef, useCallback } from './html.js';
import { onChanges, generation } from './events.js';

/**
 * Loads, and reloads when a change concerns it. Data of before stays while it reloads, and after an error.
 * @template T
 * @param {(signal: AbortSignal) => Promise<T>} load
 * @param {any[]} deps what load depends on: other values start from nothing
 * @param {(change: {kind: string, guid: string, app?: string, space?: string}) => boolean} [concerns]
 * @returns {{data: T|undefined, error: Error|undefined, at: number, reload: () => Promise<void>, set: (data: T) => void}}
 */
export function useResource(load, deps, concerns) {
  const [state, setState] = useState({ data: undefined, error: undefined, at: 0, key: null });
  const live = useRef({});
  const key = JSON.stringify(deps);
  live.current = { ...live.current, load, concerns, key };
  const reload = useCallback(async () => {
    const mine = (live.current.run = {});
    live.current.abort?.abort();
    const abort = (live.current.abort = new AbortController());
    const wanted = live.current.key;
    const settle = next => {
      if (live.current.run === mine && live.current.key === wanted) setState(next);
    };
    try {
      const data = await live.current.load(abort.signal);
      settle({ data, error: undefined, at: Date.now(), key: wanted });
    } catch (error) {
      if (error.name !== 'AbortError') settle(s => ({ ...s, data: s.key === wanted ? s.data : undefined, error, key: wanted }));
    }
  }, []);
  useEffect(() => {
    reload();
    return () => {
      live.current.run = null;
      live.current.abort?.abort();
    };
  }, [key, generation.value]);
  useEffect(() => {
    // A load that runs is not given up for a newer change: under steady changes none would end.
    let gone = false;
    const again = oneAtATime(() => gone || reload(), 120);
    const end = onChanges(changes => {
      if (live.current.concerns && changes.some(live.current.concerns)) again();
    });
    return () => {
      gone = true;
      end();
    };
  }, [reload]);
  const current = state.key === key ? state : { data: undefined, error: undefined, at: 0 };
  return { ...current, reload, set: data => setState({ data, error: undefined, at: Date.now(), key }) };
}

/** f, some ms after it is asked for, and again after it has ended where it was asked for meanwhile: never twice at once. */
export function oneAtATime(f, ms) {
  let timer = null,
    running = false,
    asked = false;
  const run = async () => {
    timer = null;
    if (running) {
      asked = true;
      return;
    }
    running = true;
    try {
      await f();
    } finally {
      running = false;
    }
    if (asked) {
      asked = false;
      timer ??= setTimeout(run, ms);
    }
  };
  return () => {
    timer ??= setTimeout(run, ms);
  };
}

// Kinds whose changes belong to an app each: one that names no app is of none.
const appKinds = new Set('app process instance package build droplet deployment revision task app_job event'.split(' '));

/** Whether a change is of one of the kinds, and of the app where it belongs to one. @param {string} app @param {string} kinds */
export const ofApp = (app, kinds) => {
  const set = new Set(kinds.split(' '));
  return c => set.has(c.kind) && (c.guid === '*' || c.guid === app || c.app === app || (!c.app && !appKinds.has(c.kind)));
};

/** Calls f each ms while the page is visible. */
export function useEvery(ms, f, deps) {
  const latest = useRef(f);
  latest.current = f;
  useEffect(() => {
    const timer = setInterval(() => {
      if (!document.hidden) latest.current();
    }, ms);
    return () => clearInterval(timer);
  }, [ms, ...deps]);
}
