// One app: its head with the actions, and the tab that the path names.
import { html, useState, useEffect } from '../lib/html.js';
import { get, list } from '../lib/api.js';
import { useResource, ofApp } from '../lib/resource.js';
import { Link, go } from '../lib/router.js';
import { useKeys } from '../lib/keys.js';
import { mayIn } from '../lib/roles.js';
import { Skeleton, Problem, Head, State } from '../parts/basic.js';
import { Actions } from './appactions.js';
import { tabs } from './apptabs.js';

const loaded = new Map();

// The app with its space, org, processes and the revision that the running processes have.
async function load(guid, signal) {
  const app = await get(`/v3/apps/${guid}?include=space.organization`, { signal });
  const [processes, deployments] = await Promise.all([
    list(`/v3/apps/${guid}/processes`, { signal }),
    get(`/v3/deployments?app_guids=${guid}&status_values=ACTIVE&order_by=-created_at`, { signal }),
  ]);
  const space = app.included?.spaces?.[0],
    org = app.included?.organizations?.[0];
  return { app, space, org, processes: processes.resources, deployment: deployments.resources[0] ?? null };
}

function useTab(slug) {
  const [, again] = useState(0);
  const [error, setError] = useState(null);
  const tab = tabs.find(t => t.slug === (slug ?? ''));
  useEffect(() => {
    if (tab && !loaded.has(tab))
      tab.load().then(m => {
        loaded.set(tab, m.default);
        again(n => n + 1);
      }, setError);
  }, [tab]);
  return { tab, Content: tab && loaded.get(tab), error };
}

/** The screen /apps/GUID/TAB. */
export default function App({ params: { guid, tab: slug } }) {
  const of = useResource(signal => load(guid, signal), [guid], ofApp(guid, 'app process deployment role space org'));
  const { tab, Content, error } = useTab(slug);
  useEffect(() => {
    document.title = of.data ? `${of.data.app.name} · ${tab?.title ?? ''} · cupola` : 'cupola';
  }, [of.data?.app.name, tab]);
  // Of the roles as they are now: one that is lost takes its buttons along.
  const may = of.data && mayIn(of.data.app.relationships.space.data.guid);
  const shown = tabs.filter(t => !t.needs || may?.[t.needs]);
  useEffect(
    () => document.querySelector('.tabs [aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'center' }),
    [tab, Boolean(of.data)],
  );
  useKeys(
    shown.map(t => ['t ' + t.key, t.title + ' of this app', () => go(path(guid, t))]),
    [guid, shown.length],
  );
  if (!of.data) return of.error ? html`<${Head} title="App" /><${Problem} error=${of.error} />` : html`<${Skeleton} rows=${6} />`;
  const { app, space, org } = of.data;
  return html`
    <div class="crumbs">
      <${Link} to="/apps">Apps<//> / <${Link} to=${'/apps?q=' + encodeURIComponent('org:' + org?.name)}>${org?.name}<//> / <${Link}
        to=${'/apps?q=' + encodeURIComponent('space:' + space?.name)}
      >
        ${space?.name}
      <//>
    </div>
    <${Head} title=${app.name} note=${html`<${State} value=${app.state} />`}>
      <${Actions} of=${{ ...of.data, may }} reload=${of.reload} />
    <//>
    <${Problem} error=${of.error} />
    <nav class="tabs" aria-label=${'App'}>
      ${shown.map(t => html`<${Link} key=${t.slug} to=${path(guid, t)} aria-current=${t === tab ? 'page' : undefined}>${t.title}<//>`)}
    </nav>
    <${Problem} error=${error} what="The page could not be loaded." />
    ${!tab && html`<${Problem} error=${new Error('There is no such tab.')} />`}
    ${tab && (Content ? html`<${Content} key=${guid + tab.slug} ...${of.data} may=${may} reload=${of.reload} />` : html`<${Skeleton} />`)}
  `;
}

const path = (guid, t) => `/apps/${guid}${t.slug ? '/' + t.slug : ''}`;
