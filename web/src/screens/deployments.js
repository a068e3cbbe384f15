// An app's timeline: packages, builds, droplets and deployments; and its revisions, which can be compared and rolled back to.
import { html, useState, useMemo } from '../lib/html.js';
import { get, call, list } from '../lib/api.js';
import { useResource, ofApp } from '../lib/resource.js';
import { short, quoted, duration, bytes } from '../lib/format.js';
import { crashReason } from '../lib/apps.js';
import { Problem, Skeleton, Section, Lines, State, Time, Button, Empty, Icon } from '../parts/basic.js';
import { LogOf } from '../parts/loglines.js';
import { open } from '../parts/dialog.js';
import { Deploying } from './appactions.js';
import { Rollback, Compare } from './revision.js';

async function load(app, signal) {
  const q = 'order_by=-created_at&per_page=50',
    o = { signal };
  const [packages, builds, droplets, deployments, revisions, deployed, crashes] = await Promise.all([
    get(`/v3/apps/${app.guid}/packages?${q}`, o),
    get(`/v3/apps/${app.guid}/builds?${q}`, o),
    get(`/v3/apps/${app.guid}/droplets?${q}`, o),
    get(`/v3/deployments?app_guids=${app.guid}&${q}`, o),
    list(`/v3/apps/${app.guid}/revisions`, o),
    get(`/v3/apps/${app.guid}/revisions/deployed`, o),
    get(`/v3/audit_events?types=audit.app.process.crash&target_guids=${app.guid}&${q}`, o),
  ]);
  return {
    packages: packages.resources,
    builds: builds.resources,
    droplets: droplets.resources,
    deployments: deployments.resources,
    revisions: revisions.resources.sort((a, b) => b.version - a.version),
    deployed: new Set(deployed.resources.map(r => r.guid)),
    crashes: crashes.resources,
  };
}

// One entry a package, build or deployment, newest first; a build's droplet is part of its entry.
function timeline(data) {
  const droplet = new Map(data.droplets.map(d => [d.guid, d]));
  const built = new Set(data.builds.map(b => b.droplet?.guid));
  return [
    ...data.packages.map(p => ({ kind: 'package', doc: p, at: p.created_at })),
    ...data.builds.map(b => ({ kind: 'build', doc: b, at: b.created_at, droplet: droplet.get(b.droplet?.guid) })),
    ...data.droplets.filter(d => !built.has(d.guid)).map(d => ({ kind: 'droplet', doc: d, at: d.created_at })),
    ...data.deployments.map(d => ({
      kind: 'deployment',
      doc: d,
      at: d.created_at,
      revision: data.revisions.find(r => r.guid === d.revision?.guid),
      crash: crashOf(d, data.crashes),
    })),
  ].sort((a, b) => (a.at < b.at ? 1 : a.at > b.at ? -1 : order[b.kind] - order[a.kind]));
}

const order = { package: 0, build: 1, droplet: 2, deployment: 3 };

// The crash that a deployment which did not get through saw last.
function crashOf(d, crashes) {
  if (d.status.reason === 'DEPLOYED') return null;
  const end = d.status.value === 'FINALIZED' ? (d.status.details?.last_status_change ?? d.updated_at) : '9';
  return crashes.find(e => e.created_at >= d.created_at && e.created_at <= end) ?? null;
}

/** The tab Deployments. */
export default function Deployments(of) {
  const { app } = of;
  const data = useResource(
    signal => load(app, signal),
    [app.guid],
    ofApp(app.guid, 'package build droplet deployment revision app process instance event'),
  );
  const entries = useMemo(() => (data.data ? timeline(data.data) : []), [data.data]);
  if (!data.data) return data.error ? html`<${Problem} error=${data.error} />` : html`<${Skeleton} rows=${6} />`;
  return html`
    <${Deploying} of=${of} reload=${() => Promise.all([of.reload(), data.reload()])} />
    <${Problem} error=${data.error} />
    <div class="columns">
      <${Section} title="Timeline">
        ${entries.length
          ? html`<ol class="timeline">${entries.map(e => html`<${Entry} key=${e.doc.guid} app=${app} e=${e} />`)}</ol>`
          : html`<${Empty} title="Nothing was pushed yet." line=${`cf push ${quoted(app.name)}`} />`}
      <//>
      <${Revisions} of=${of} data=${data.data} reload=${data.reload} />
    </div>
    <${Lines} lines=${[`cf revisions ${quoted(app.name)}`, `cf curl "/v3/deployments?app_guids=${app.guid}"`]} />
  `;
}

const icons = { package: 'upload', build: 'wait', droplet: 'bosh', deployment: 'play' };

function stateOf(e) {
  if (e.kind !== 'deployment') return e.doc.state;
  return e.doc.status.reason ?? e.doc.status.value;
}

function Entry({ app, e }) {
  const state = stateOf(e),
    busy = state === 'STAGING' || e.doc.status?.value === 'ACTIVE';
  const failed = state === 'FAILED' || Boolean(e.crash) || Boolean(e.doc.status?.details?.error);
  const [shown, setShown] = useState(null);
  const see = shown ?? (busy && e.kind === 'build');
  return html`
    <li class=${e.kind}>
      <span class="knot"><${Icon} name=${icons[e.kind]} /></span>
      <div>
        <p>
          <strong>${e.kind[0].toUpperCase() + e.kind.slice(1)}</strong> <span class="mono muted" title=${e.doc.guid}>
            ${short(e.doc.guid)}
          </span> <${State} value=${state} /> <span class="muted"><${Time} at=${e.at} /></span>
        </p>
        <p class="muted"><${About} e=${e} /></p>
        <${Failure} e=${e} />
        ${(e.kind === 'build' || failed) &&
        html`
          <button type="button" class="quiet" aria-expanded=${see} onClick=${() => setShown(!see)}>
            ${e.kind === 'build' ? 'Staging log' : 'Log lines before it'}
          </button>
        `}
        ${see && html`<${Log} app=${app} e=${e} busy=${busy} />`}
      </div>
    </li>
  `;
}

function About({ e }) {
  const d = e.doc;
  if (e.kind === 'package')
    return d.type === 'docker'
      ? d.data.image
      : `${d.type}${d.data.checksum?.value ? ', sha256 ' + d.data.checksum.value.slice(0, 12) : ''}`;
  if (e.kind === 'build') {
    const packs = e.droplet?.buildpacks?.map(b => (b.buildpack_name || b.name) + (b.version ? ' ' + b.version : '')).join(', ');
    return (
      `of package ${short(d.package.guid)}` +
      `${e.droplet ? ` → droplet ${short(e.droplet.guid)} on ${e.droplet.stack ?? e.droplet.image ?? 'its image'}` : ''}` +
      `${packs ? ' with ' + packs : ''}, took ${duration((new Date(d.updated_at) - new Date(d.created_at)) / 1000)}`
    );
  }
  if (e.kind === 'droplet') return d.stack ?? d.image ?? '';
  const step = d.status.canary?.steps;
  return (
    `${d.strategy}, droplet ${short(d.droplet?.guid)}${e.revision ? `, revision ${e.revision.version}` : ''}` +
    `${step ? `, canary step ${step.current} of ${step.total}` : ''}`
  );
}

function Failure({ e }) {
  const lines = [
    e.doc.error,
    e.doc.status?.details?.error,
    e.crash && `Instance ${e.crash.data.index} crashed: ${crashReason(e.crash)}`,
    e.doc.data?.error,
  ].filter(Boolean);
  return lines.map(l => html`<p key=${l} class="bad pre">${l}</p>`);
}

// The log of a staging; of a deployment that failed, the 20 lines before it.
function Log({ app, e, busy }) {
  if (e.kind === 'build')
    return html`
      <${LogOf} app=${app} label="Staging log" pass=${l => l.source === 'STG'} since=${e.at} until=${busy ? undefined : e.doc.updated_at} />
    `;
  const until = e.crash?.created_at ?? e.doc.status?.details?.last_status_change ?? e.doc.updated_at;
  return html`
    <${LogOf} app=${app} label="Log lines before the failure" pass=${l => l.source !== 'RTR'} since=${e.at} until=${until} limit=${20} />
  `;
}

function Revisions({ of, data, reload }) {
  const { app, may } = of;
  const [picked, setPicked] = useState([]);
  const pick = guid => setPicked(p => (p.includes(guid) ? p.filter(g => g !== guid) : [...p.slice(-1), guid]));
  const of2 = picked
    .map(g => data.revisions.find(r => r.guid === g))
    .filter(Boolean)
    .sort((a, b) => a.version - b.version);
  const current = data.revisions.find(r => data.deployed.has(r.guid));
  const compare = () => open(Compare, { title: 'Compare', wide: true, from: of2[0], to: of2[1], may });
  const actions = html`
    <button type="button" disabled=${of2.length !== 2} onClick=${compare} title="Choose two revisions">Compare…</button>
  `;
  return html`
    <${Section} title="Revisions" actions=${data.revisions.length > 1 && actions}>
      ${!data.revisions.length && html`<p class="muted">No revision yet: the first one is made when the app starts.</p>`}
      ${data.revisions.length > 0 &&
      html`
        <div class="scroll">
          <table class="cards">
            <caption class="hidden">Revisions</caption>
            <thead>
              <tr>
                <th scope="col"><span class="hidden">Compare</span></th>
                <th scope="col">Revision</th>
                <th scope="col">Made</th>
                <th scope="col"><span class="hidden">Actions</span></th>
              </tr>
            </thead>
            <tbody>
              ${data.revisions.map(
                r => html`
                  <tr key=${r.guid} data-row>
                    <td>
                      <input
                        type="checkbox"
                        aria-label=${`Compare revision ${r.version}`}
                        checked=${picked.includes(r.guid)}
                        onChange=${() => pick(r.guid)}
                      />
                    </td>
                    <th scope="row">
                      ${r.version} ${data.deployed.has(r.guid) && html`<${State} value="DEPLOYED" />`}
                      <span class="sub">${r.description}</span>
                      <span class="sub" title=${r.droplet.guid}>droplet <span class="mono">${short(r.droplet.guid)}</span></span>
                    </th>
                    <td data-label="Made"><${Time} at=${r.created_at} /></td>
                    <td>
                      ${may.edit &&
                      r.deployable &&
                      r !== current &&
                      html`
                        <button
                          type="button"
                          aria-label=${`Roll back to revision ${r.version}`}
                          onClick=${() =>
                            open(Rollback, {
                              title: 'Roll back',
                              wide: true,
                              of,
                              current,
                              to: r,
                              reload: () => Promise.all([of.reload(), reload()]),
                            })}
                        >
                          Roll back…
                        </button>
                      `}
                    </td>
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
