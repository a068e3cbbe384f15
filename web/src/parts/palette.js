// The palette: go to an app, a space or a section, by typing a part of the name.
import { html, useState, useMemo, useId } from '../lib/html.js';
import { go } from '../lib/router.js';
import { list } from '../lib/api.js';
import { useResource } from '../lib/resource.js';
import { mayIn, mayPush } from '../lib/roles.js';
import { visible } from '../routes.js';
import { tabs } from '../screens/apptabs.js';
import { Icon, Problem } from './basic.js';

const limit = 40;

/** How well a name has the characters asked for, in their order: less is better, null is not at all. */
export function rank(name, wanted) {
  const text = name.toLowerCase(),
    want = wanted.toLowerCase();
  const at = text.indexOf(want);
  if (at >= 0) return at === 0 ? 0 : 1 + at / 100;
  let from = 0;
  for (const c of want) {
    from = text.indexOf(c, from) + 1;
    if (!from) return null;
  }
  return 10 + from;
}

function everything(apps) {
  const found = visible().map(s => ({ name: s.title, what: 'section', icon: s.icon, to: s.path }));
  if (mayPush()) found.push({ name: 'New app', what: 'action', icon: 'plus', to: '/new' });
  for (const space of apps?.included.spaces ?? [])
    found.push({ name: space.name, what: 'space', icon: 'orgs', to: '/apps?q=' + encodeURIComponent('space:' + space.name) });
  for (const a of apps?.resources ?? []) {
    found.push({ name: a.name, what: 'app', icon: 'apps', to: '/apps/' + a.guid });
    const may = mayIn(a.relationships.space.data.guid);
    for (const t of tabs)
      if (t.slug && (!t.needs || may[t.needs]))
        found.push({ name: a.name + ' › ' + t.title, what: 'app', icon: 'next', to: `/apps/${a.guid}/${t.slug}`, deep: true });
  }
  return found;
}

function matching(all, text) {
  if (!text) return all.filter(e => !e.deep).slice(0, limit);
  return all
    .map(e => ({ e, r: rank(e.name.replace(' › ', ' '), text) }))
    .filter(x => x.r !== null)
    .sort((a, b) => a.r + (a.e.deep ? 5 : 0) - b.r - (b.e.deep ? 5 : 0))
    .slice(0, limit)
    .map(x => x.e);
}

/** The palette's dialog. */
export function Palette({ close }) {
  const [text, setText] = useState('');
  const [at, setAt] = useState(0);
  const id = useId();
  const apps = useResource(signal => list('/v3/apps?per_page=5000&include=space', { signal }), []);
  const all = useMemo(() => everything(apps.data), [apps.data]);
  const found = useMemo(() => matching(all, text), [all, text]);
  const choose = e => {
    close();
    go(e.to);
  };
  const key = e => {
    if (e.key === 'ArrowDown') setAt(n => Math.min(n + 1, found.length - 1));
    else if (e.key === 'ArrowUp') setAt(n => Math.max(n - 1, 0));
    else if (e.key === 'Enter' && found[at]) choose(found[at]);
    else return;
    e.preventDefault();
    document.getElementById(`${id}-${at}`)?.scrollIntoView({ block: 'nearest' });
  };
  return html`
    <div class="palette">
      <div>
        <input
          type="text"
          role="combobox"
          aria-expanded="true"
          aria-controls=${id}
          aria-activedescendant=${found.length ? `${id}-${at}` : undefined}
          aria-label="Go to an app, a space or an action"
          placeholder="App, space or action"
          autocomplete="off"
          spellcheck=${false}
          autofocus
          value=${text}
          onInput=${e => {
            setText(e.currentTarget.value);
            setAt(0);
          }}
          onKeyDown=${key}
        />
      </div>
      <${Problem} error=${apps.error} />
      <ul id=${id} role="listbox" aria-label="Results">
        ${found.map(
          (e, n) => html`
            <li key=${e.to + e.name} id=${`${id}-${n}`} role="option" aria-selected=${n === at} onClick=${() => choose(e)}>
              <${Icon} name=${e.icon} />
              <span class="cut" title=${e.name}>${e.name}</span>
              <span class="muted">${e.what}</span>
            </li>
          `,
        )}
      </ul>
      ${!found.length && html`<p class="empty">Nothing has that name.</p>`}
    </div>
  `;
}
