// An app's routes, and its last requests as the router logged them.
import { html, useState, useEffect, useMemo } from '../lib/html.js';
import { get, call, act, list } from '../lib/api.js';
import { useResource, ofApp } from '../lib/resource.js';
import { Ring, follow } from '../lib/logs.js';
import { request } from '../lib/rtr.js';
import { quoted, bytes, clock, count } from '../lib/format.js';
import { Problem, Skeleton, Section, Lines, Field, Empty } from '../parts/basic.js';
import { open, confirm, Sheet } from '../parts/dialog.js';
import { announce } from '../parts/live.js';
import { routeURL } from './apps.js';

/** The tab Routes. */
export default function AppRoutes(of) {
  const { app, may } = of;
  const routes = useResource(
    signal => list(`/v3/routes?app_guids=${app.guid}&include=domain`, { signal }),
    [app.guid],
    ofApp(app.guid, 'route'),
  );
  const rows = routes.data?.resources;
  const domain = r => routes.data.included.domains?.find(d => d.guid === r.relationships.domain.data.guid)?.name ?? '';
  const map = () => open(MapRoute, { title: 'Map a route', of, reload: routes.reload });
  return html`
    <${Section} title="Routes" actions=${may.operate && html`<button type="button" class="primary" onClick=${map}>Map a route…</button>`}>
      <${Problem} error=${routes.error} />
      ${!rows && !routes.error && html`<${Skeleton} rows=${2} />`}
      ${rows?.length === 0 &&
      html`
        <${Empty} title="No route leads to this app." line=${`cf map-route ${quoted(app.name)} DOMAIN --hostname ${quoted(app.name)}`} />
      `}
      ${rows?.length > 0 &&
      html`
        <div class="scroll">
          <table class="cards">
            <caption class="hidden">Routes</caption>
            <thead>
              <tr>
                <th scope="col">Route</th>
                <th scope="col">Protocol</th>
                <th scope="col">Destinations</th>
                <th scope="col">Options</th>
                <th scope="col"><span class="hidden">Actions</span></th>
              </tr>
            </thead>
            <tbody>${rows.map(r => html`<${Row} key=${r.guid} of=${of} route=${r} domain=${domain(r)} reload=${routes.reload} />`)}</tbody>
          </table>
        </div>
      `}
    <//>
    <${Requests} app=${app} />
    <${Lines} lines=${[`cf app ${quoted(app.name)}`, `cf curl /v3/apps/${app.guid}/routes`]} />
  `;
}

function Row({ of, route, domain, reload }) {
  const own = route.destinations.filter(d => d.app.guid === of.app.guid),
    others = route.destinations.length - own.length;
  const url = routeURL(route);
  const line =
    `cf unmap-route ${quoted(of.app.name)} ${quoted(domain)}${route.host ? ' --hostname ' + quoted(route.host) : ''}` +
    `${route.path ? ' --path ' + quoted(route.path) : ''}${route.port ? ' --port ' + route.port : ''}`;
  const unmap = () =>
    confirm({
      title: `Unmap ${route.url}?`,
      text: `Requests to ${route.url} no longer reach ${of.app.name}. The route itself stays.`,
      submit: 'Unmap',
      lines: [line],
      run: async () => {
        for (const d of own) await call('DELETE', `/v3/routes/${route.guid}/destinations/${d.guid}`);
        announce('Unmapped');
        await reload();
      },
    });
  return html`
    <tr data-row>
      <th scope="row">
        ${url ? html`<a href=${url} target="_blank" rel="noreferrer">${route.url}</a>` : html`<span class="mono">${route.url}</span>`}
      </th>
      <td data-label="Protocol">${route.protocol}</td>
      <td data-label="Destinations">
        ${own.map(
          d => html`
            <span key=${d.guid} class="mono item">
              ${d.app.process.type}
              :
              ${d.port ?? 'default'} ${d.protocol ?? ''}
              ${d.weight !== null && d.weight !== undefined ? ` weight ${d.weight}` : ''}
            </span>
          `,
        )}
        ${others > 0 && html`<span class="sub">and ${count(others, 'destination')} of other apps</span>`}
      </td>
      <td data-label="Options" class="mono">
        ${Object.entries(route.options ?? {})
          .map(([k, v]) => `${k}=${v}`)
          .join(' ') || '–'}
      </td>
      <td>${of.may.operate && html`<button type="button" aria-label=${'Unmap ' + route.url} onClick=${unmap}>Unmap…</button>`}</td>
    </tr>
  `;
}

function MapRoute({ of, reload, close }) {
  const { app, space, org } = of;
  const domains = useResource(signal => list(`/v3/organizations/${org.guid}/domains`, { signal }), [org.guid]);
  const [guid, setGuid] = useState('');
  const [host, setHost] = useState(app.name.toLowerCase().replace(/[^a-z0-9-]+/g, '-'));
  const [path, setPath] = useState('');
  const [port, setPort] = useState('');
  const [protocol, setProtocol] = useState('');
  const [appPort, setAppPort] = useState('');
  const domain = domains.data?.resources.find(d => d.guid === guid) ?? domains.data?.resources[0];
  const tcp = domain?.supported_protocols?.includes('tcp');
  const where = tcp ? port && ' --port ' + port : `${host && ' --hostname ' + quoted(host)}${path && ' --path ' + quoted(path)}`;
  const how = tcp ? '' : `${protocol && ' --app-protocol ' + protocol}${appPort && ' --app-port ' + appPort}`;
  const line = domain && `cf map-route ${quoted(app.name)} ${quoted(domain.name)}${where}${how}`;
  const destination = { app: { guid: app.guid }, ...(how && protocol && { protocol }), ...(how && appPort && { port: Number(appPort) }) };
  const run = async () => {
    const route = await routeOf({ domain, space, host: tcp ? '' : host, path: tcp ? '' : path, port: tcp && port ? Number(port) : null });
    await call('POST', `/v3/routes/${route.guid}/destinations`, { json: { destinations: [destination] } });
    announce(`${route.url} is mapped`);
    await reload();
  };
  return html`
    <${Sheet} title=${`Map a route to ${app.name}`} close=${close} submit="Map" run=${run} disabled=${!domain} lines=${[line]}>
      <${Problem} error=${domains.error} />
      <${Field} as="select" label="Domain" value=${domain?.guid} onValue=${setGuid}>
        ${domains.data?.resources.map(
          d => html`
            <option key=${d.guid} value=${d.guid}>
              ${d.name}
              ${d.internal ? ' (internal)' : ''}
              ${d.supported_protocols?.includes('tcp') ? ' (TCP)' : ''}
            </option>
          `,
        )}
      <//>
      ${tcp
        ? html`<${Field} label="Port" type="number" value=${port} onValue=${setPort} note="Empty: a free one" />`
        : html`
            <div class="fields">
              <${Field} label="Host" value=${host} onValue=${setHost} />
              <${Field} label="Path" value=${path} onValue=${setPath} placeholder="/api" />
            </div>
            <div class="fields">
              <${Field} as="select" label="Protocol of the app" value=${protocol} onValue=${setProtocol}>
                <option value="">HTTP/1.1</option><option value="http2">HTTP/2</option>
              <//>
              <${Field} label="Port of the app" type="number" min="1" value=${appPort} onValue=${setAppPort} placeholder="8080" />
            </div>
          `}
    <//>
  `;
}

// The route with these parts: the one that there is in the space, else a new one.
async function routeOf({ domain, space, host, path, port }) {
  const query = new URLSearchParams({ domain_guids: domain.guid, hosts: host, paths: path, ...(port && { ports: String(port) }) });
  const tcp = domain.supported_protocols?.includes('tcp');
  if (port || !tcp) {
    const { resources } = await get(`/v3/routes?${query}`);
    if (resources[0]) return resources[0];
  }
  return act('POST', '/v3/routes', {
    ...(host && { host }),
    ...(path && { path }),
    ...(port && { port }),
    relationships: { domain: { data: { guid: domain.guid } }, space: { data: { guid: space.guid } } },
  });
}

// The requests in the app's log, as they come.
function useRequests(guid) {
  const ring = useMemo(() => new Ring(5000), [guid]);
  const [version, setVersion] = useState(0);
  const [error, setError] = useState(null);
  useEffect(() => {
    let timer = null;
    const end = follow(guid, {
      ring,
      last: () => ring.lines.at(-1)?.stamp ?? null,
      state: (_, e) => setError(e ?? null),
      lines: all => {
        ring.push(all);
        timer ??= setTimeout(() => {
          timer = null;
          setVersion(v => v + 1);
        }, 250);
      },
    });
    return () => {
      end();
      clearTimeout(timer);
    };
  }, [guid]);
  const rows = useMemo(() => {
    const found = [];
    for (let n = ring.lines.length - 1; n >= 0 && found.length < 100; n--) {
      const l = ring.lines[n];
      if (l.source !== 'RTR') continue;
      l.request ??= request(l.text);
      if (l.request) found.push(l);
    }
    return found;
  }, [version]);
  return { rows, error };
}

const tone = status => (status >= '500' ? 'bad' : status >= '400' ? 'warn' : '');

function Requests({ app }) {
  const { rows, error } = useRequests(app.guid);
  return html`
    <${Section} title="Last requests">
      <${Problem} error=${error} />
      ${!rows.length && html`<p class="muted">The router has logged no request to this app lately.</p>`}
      ${rows.length > 0 &&
      html`
        <div class="scroll requests" tabindex="0" role="region" aria-label="Last requests">
          <table>
            <caption class="hidden">Last requests</caption>
            <thead>
              <tr>
                <th scope="col">Time</th>
                <th scope="col">Status</th>
                <th scope="col">Request</th>
                <th scope="col" class="num">Took</th>
                <th scope="col" class="num">Sent</th>
                <th scope="col">Instance</th>
                <th scope="col">Client</th>
                <th scope="col">Request ID</th>
              </tr>
            </thead>
            <tbody>
              ${rows.map(
                l => html`
                  <tr key=${l.seq}>
                    <td class="mono">${clock(l.time)}</td>
                    <td><span class=${'status ' + tone(l.request.status)}>${l.request.status}</span></td>
                    <td class="mono path">
                      <span class="cut" title=${`${l.request.method} ${l.request.host}${l.request.path}`}>
                        ${l.request.method} ${l.request.path}
                      </span>
                    </td>
                    <td class="num">${(l.request.seconds * 1000).toFixed(1)} ms</td>
                    <td class="num">${bytes(l.request.sent)}</td>
                    <td class="mono">${l.request.index || '–'}</td>
                    <td class="mono">${l.request.client}</td>
                    <td class="mono">${l.request.id.slice(0, 8)}</td>
                  </tr>
                `,
              )}
            </tbody>
          </table>
        </div>
      `}
    <//>
  `;
}
