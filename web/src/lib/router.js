// The client-side routes: a path below /console selects a screen, its query the screen's settings.
import { html, signal } from './html.js';

export const base = '/console';

const read = () => ({ path: location.pathname.slice(base.length) || '/', query: new URLSearchParams(location.search) });

/** Where the browser is: {path, query}. */
export const place = signal(read());

addEventListener('popstate', () => {
  place.value = read();
});

/** Goes to a path below /console. @param {string} to @param {{replace?: boolean}} [how] */
export function go(to, how = {}) {
  const url = base + to;
  if (url === location.pathname + location.search) return;
  history[how.replace ? 'replaceState' : 'pushState'](null, '', url);
  const before = place.value.path;
  place.value = read();
  if (!how.replace && before !== place.value.path) scrollTo(0, 0);
}

/** Sets parameters of the query in place, without an entry in the history. @param {Record<string, string|null>} params */
export function setQuery(params) {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(params)) {
    if (value === null || value === '') query.delete(name);
    else query.set(name, value);
  }
  const text = query.toString();
  go(place.value.path + (text ? '?' + text : ''), { replace: true });
}

/**
 * The parameters of a path that a pattern like /apps/:guid/:tab? matches, else null.
 * @param {string} pattern @param {string} path @returns {Record<string, string>|null}
 */
export function match(pattern, path) {
  const want = pattern.split('/').filter(Boolean);
  const have = path.split('/').filter(Boolean);
  if (have.length > want.length) return null;
  const params = {};
  for (const [n, part] of want.entries()) {
    const optional = part.endsWith('?');
    if (have[n] === undefined) {
      if (optional) continue;
      return null;
    }
    if (part.startsWith(':')) params[part.slice(1, optional ? -1 : undefined)] = decodeURIComponent(have[n]);
    else if (part !== have[n]) return null;
  }
  return params;
}

const plain = e => e.button === 0 && !e.metaKey && !e.ctrlKey && !e.shiftKey && !e.altKey;

/** A link to a path of the console. */
export function Link({ to, children, ...rest }) {
  const click = e => {
    if (plain(e)) {
      e.preventDefault();
      go(to);
    }
  };
  return html`<a ...${rest} href=${base + to} onClick=${click}>${children}</a>`;
}
