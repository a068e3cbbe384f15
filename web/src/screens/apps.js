// All apps that the user sees: one list request, and details of the rows on the screen.
import { html, useState, useEffect, useMemo, useRef } from '../lib/html.js';
import { list, among } from '../lib/api.js';
import { useResource, oneAtATime, useEvery } from '../lib/resource.js';
import { onChanges } from '../lib/events.js';
import { details, stateOf } from '../lib/apps.js';
import { place, setQuery, Link, base } from '../lib/router.js';
import { bytes, percent, count } from '../lib/format.js';
import { mayPush } from '../lib/roles.js';
import { setting } from '../lib/settings.js';
import { Head, State, Time, Problem, Skeleton, Empty, Lines, Icon } from '../parts/basic.js';
import { useWindow, useMedia } from '../parts/window.js';
import { Spark } from '../parts/spark.js';

const sort = setting('apps.sort', { by: 'name', down: false });

// Rows of apps, with what belongs to each: its space's and its org's names.
async function load(query, signal) {
  const { resources, included } = await list('/v3/apps?include=space.organization&per_page=5000' + query, { signal });
  const orgs = new Map((included.organizations ?? []).map(o => [o.guid, o.name]));
  const spaces = new Map(
    (included.spaces ?? []).map(s => [s.guid, { name: s.name, org: orgs.get(s.relationships.organization.data.guid) ?? '' }]),
  );
  return resources.map(app => {
    const space = spaces.get(app.relationships.space.data.guid) ?? { name: '', org: '' };
    return { app, space: space.name, org: space.org, text: `${app.name} ${space.org} ${space.name} ${app.state}`.toLowerCase() };
  });
}

// Beyond this many changed apps the whole list is asked for.
const fewApps = 50;

// All apps: asked for once, and then those alone that changed.
function useApps() {
  const apps = useResource(
    signal => load('', signal),
    [],
    c => c.kind === 'space' || c.kind === 'org' || c.kind === 'role' || (c.kind === 'app' && c.guid === '*'),
  );
  const changed = useRef(new Set()),
    latest = useRef(apps);
  latest.current = apps;
  const later = useMemo(
    () =>
      oneAtATime(async () => {
        const guids = [...changed.current];
        changed.current.clear();
        if (!guids.length || !latest.current.data) return;
        if (guids.length > fewApps) return latest.current.reload();
        const now = await load('&guids=' + among(guids)).catch(() => null);
        if (!now) return latest.current.reload();
        const rest = latest.current.data.filter(r => !guids.includes(r.app.guid));
        latest.current.set([...rest, ...now]);
      }, 60),
    [],
  );
  useEffect(
    () =>
      onChanges(changes => {
        for (const c of changes) if (c.kind === 'app' && c.guid !== '*') changed.current.add(c.guid);
        if (changed.current.size) later();
      }),
    [],
  );
  return apps;
}

/** Whether a row has all the words; space:X, org:X and state:X name a column. */
function matches(row, words) {
  return words.every(w => {
    const [, column, value] = /^(space|org|state):(.*)$/.exec(w) ?? [];
    if (!column) return row.text.includes(w);
    return (column === 'state' ? row.app.state : row[column]).toLowerCase() === value;
  });
}

const columns = { name: r => r.app.name.toLowerCase(), space: r => `${r.org}/${r.space}`.toLowerCase(), state: r => r.app.state };

const natural = new Intl.Collator('en', { numeric: true }); // shop-9 before shop-10

function ordered(rows, { by, down }) {
  const key = columns[by] ?? columns.name;
  return rows
    .map(r => [key(r), r])
    .sort((a, b) => natural.compare(a[0], b[0]) * (down ? -1 : 1))
    .map(x => x[1]);
}

// Details of the visible rows: loaded when rows come in sight, and again when something of them changed.
function useDetails(rows) {
  const [all, setAll] = useState({});
  const state = useRef({ loaded: new Map(), rows }); // GUID → the app's state that the details are of
  state.current.rows = rows;
  const later = useMemo(
    () =>
      oneAtATime(async () => {
        const { rows, loaded } = state.current;
        const wanted = rows.map(r => r.app).filter(a => loaded.get(a.guid) !== a.state);
        if (!wanted.length) return;
        for (const a of wanted) loaded.set(a.guid, a.state);
        try {
          const more = await details(wanted);
          setAll(old => ({ ...old, ...more }));
        } catch {
          for (const a of wanted) loaded.delete(a.guid);
        }
      }, 60),
    [],
  );
  useEffect(() => {
    later();
  }, [rows.map(r => r.app.guid + r.app.state).join()]);
  useEffect(
    () =>
      onChanges(changes => {
        const { loaded } = state.current,
          before = loaded.size;
        for (const c of changes)
          if (c.guid === '*' && !c.app) loaded.clear();
          else loaded.delete(c.app ?? c.guid);
        if (loaded.size < before) later();
      }),
    [],
  );
  useEvery(
    15000,
    () => {
      state.current.loaded.clear();
      later();
    },
    [],
  );
  return all;
}

/** The screen /apps. */
export default function Apps() {
  const query = place.value.query.get('q') ?? '';
  const apps = useApps();
  const rows = useMemo(() => {
    const words = query.toLowerCase().split(/\s+/).filter(Boolean);
    return ordered(
      (apps.data ?? []).filter(r => matches(r, words)),
      sort.value,
    );
  }, [apps.data, query, sort.value]);
  const newApp = mayPush() && html`<${Link} to="/new" class="button primary"><${Icon} name="plus" />New app<//>`;
  const empty = apps.data?.length === 0;
  return html`
    <${Head}
      title="Apps"
      note=${apps.data &&
      html`
        <span class="muted" role="status">
          ${query ? `${rows.length} of ${count(apps.data.length, 'app')}` : count(apps.data.length, 'app')}
        </span>
      `}
    >
      ${newApp}
    <//>
    <${Problem} error=${apps.error} />
    ${!apps.data && !apps.error && html`<${Skeleton} rows=${8} />`}
    ${empty &&
    html`
      <${Empty} title="You see no apps yet." line=${mayPush() ? 'cf push my-app' : 'cf orgs'}>
        ${mayPush()
          ? html`Push one from a folder, or <${Link} to="/new">drop the folder here or begin with a sample<//>.`
          : 'You see the apps of spaces in which you have a role. A manager of a space, or an administrator, gives you one.'}
      <//>
    `}
    ${apps.data &&
    !empty &&
    html`
      <div class="toolbar">
        <input
          type="search"
          aria-label="Filter apps"
          placeholder="Filter by name, org, space or state  ( / )"
          value=${query}
          spellcheck=${false}
          autocomplete="off"
          onInput=${e => setQuery({ q: e.currentTarget.value })}
        />
        <${States} rows=${apps.data} query=${query} />
      </div>
      ${rows.length ? html`<${Table} rows=${rows} />` : html`<${Empty} title="No app has these words.">Change the filter.<//>`}
      <${Lines} lines=${['cf apps', 'cf curl "/v3/apps?per_page=5000&include=space.organization"']} />
    `}
  `;
}

function States({ rows, query }) {
  return html`
    <div class="chips" role="group" aria-label="State">
      ${['STARTED', 'STOPPED'].map(s => {
        const word = 'state:' + s.toLowerCase(),
          on = query.split(/\s+/).includes(word);
        const toggle = () =>
          setQuery({
            q: on
              ? query
                  .split(/\s+/)
                  .filter(w => w !== word)
                  .join(' ')
              : (query.replace(/state:\S*/g, '').trim() + ' ' + word).trim(),
          });
        return html`
          <button key=${s} type="button" aria-pressed=${on} onClick=${toggle}>
            ${s.toLowerCase()} ${rows.filter(r => r.app.state === s).length}
          </button>
        `;
      })}
    </div>
  `;
}

function Sorted({ by, children }) {
  const now = sort.value;
  const click = () => {
    sort.value = { by, down: now.by === by && !now.down };
  };
  return html`
    <th scope="col" aria-sort=${now.by === by ? (now.down ? 'descending' : 'ascending') : undefined}>
      <button type="button" class="sort" onClick=${click}>${children}</button>
    </th>
  `;
}

function Table({ rows }) {
  const narrow = useMedia('(max-width: 900px)');
  const height = narrow ? 112 : 49;
  const w = useWindow(rows.length, height);
  const shown = rows.slice(w.from, w.to);
  const more = useDetails(shown);
  return html`
    <div class="scroll applist">
      <table aria-rowcount=${rows.length + 1}>
        <caption class="hidden">Apps</caption>
        <thead>
          <tr>
            <${Sorted} by="name">App<//>
            <${Sorted} by="state">State<//>
            <th scope="col" class="num">Instances</th>
            <th scope="col" class="num">CPU</th>
            <th scope="col" class="num">Memory</th>
            <th scope="col">Routes</th>
            <th scope="col">Last deploy</th>
          </tr>
        </thead>
        <tbody ref=${w.ref}>
          ${w.before > 0 &&
          html`<tr key="before" class="spacer" aria-hidden="true" style=${{ height: w.before + 'px' }}><td colspan="7"></td></tr>`}
          ${shown.map((r, n) => html`<${Row} key=${r.app.guid} row=${r} detail=${more[r.app.guid]} index=${w.from + n + 2} />`)}
          ${w.after > 0 &&
          html`<tr key="after" class="spacer" aria-hidden="true" style=${{ height: w.after + 'px' }}><td colspan="7"></td></tr>`}
        </tbody>
      </table>
    </div>
  `;
}

function Row({ row, detail, index }) {
  const { app } = row;
  const web = detail?.processes.find(p => p.type === 'web') ?? detail?.processes[0];
  const running = detail?.stats?.filter(i => i.state === 'RUNNING').length ?? 0;
  return html`
    <tr data-row aria-rowindex=${index}>
      <th scope="row">
        <${Link} to=${'/apps/' + app.guid} class="cut" title=${app.name}>${app.name}<//>
        <span class="sub cut" title=${`${row.org} / ${row.space}`}>${row.org} / ${row.space}</span>
      </th>
      <td class="c-state">
        <${State} value=${stateOf(app, detail)} />
        ${detail?.crash && html`<span class="sub bad cut" title=${detail.crash}>${detail.crash}</span>`}
      </td>
      <td class="num c-inst">
        ${web ? html`${app.state === 'STARTED' ? running : 0}<span class="muted"> / ${web.instances}</span>` : '–'}
      </td>
      <td class="num c-use"><${Use} values=${detail?.usage?.cpu} format=${percent} what="CPU" /></td>
      <td class="num c-use"><${Use} values=${detail?.usage?.memory} format=${bytes} what="Memory" /></td>
      <td class="c-routes"><${Routes} routes=${detail?.routes} /></td>
      <td class="c-when">${detail ? html`<${Time} at=${detail.deployed} />` : ''}</td>
    </tr>
  `;
}

function Use({ values, format, what }) {
  if (!values?.length) return html`<span class="muted">–</span>`;
  const now = format(values.at(-1));
  return html`<span class="use"><${Spark} values=${values} label=${`${what} over 15 minutes, now ${now}`} /><span>${now}</span></span>`;
}

/** A route's URL with this page's scheme and port, which is where the router listens. */
export function routeURL(route) {
  if (route.protocol === 'tcp') return null;
  return `${location.protocol}//${route.url.replace(/^([^/]*)/, host => (location.port ? `${host}:${location.port}` : host))}`;
}

function Routes({ routes }) {
  if (!routes?.length) return html`<span class="muted">${routes ? 'none' : ''}</span>`;
  const url = routeURL(routes[0]);
  return html`
    <span class="cut" title=${routes.map(r => r.url).join('\n')}>
      ${url ? html`<a href=${url} target="_blank" rel="noreferrer">${routes[0].url}</a>` : routes[0].url}
      ${routes.length > 1 && html`<span class="muted"> +${routes.length - 1}</span>`}
    </span>
  `;
}
