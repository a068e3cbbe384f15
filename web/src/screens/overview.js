// An app's overview: its processes with their instances, why some do not run, and how to scale them.
import { html, useState, useMemo } from '../lib/html.js';
import { get, call } from '../lib/api.js';
import { useResource, useEvery, ofApp } from '../lib/resource.js';
import { bytes, megabytes, percent, duration, quoted, short, count } from '../lib/format.js';
import { crashReason } from '../lib/apps.js';
import { range, sources } from '../lib/metrics.js';
import { Link } from '../lib/router.js';
import { State, Time, Problem, Skeleton, Section, Lines, Icon, Button } from '../parts/basic.js';
import { confirm, open } from '../parts/dialog.js';
import { Commands } from '../parts/commands.js';
import { Spark } from '../parts/spark.js';
import { announce } from '../parts/live.js';
import { routeURL } from './apps.js';
import { Deploying } from './appactions.js';
import { Scale } from './scale.js';

async function loadStats(processes, signal) {
  const all = await Promise.all(processes.map(async p => [p.guid, await get(`/v3/processes/${p.guid}/stats`, { signal })]));
  return Object.fromEntries(all);
}

const loadCrashes = async (guid, signal) =>
  (
    await get(
      `/v3/audit_events?types=audit.app.process.crash,audit.app.process.unplaced&target_guids=${guid}&order_by=-created_at&per_page=50`,
      { signal },
    )
  ).resources;

async function loadFacts(app, signal) {
  const [routes, droplet] = await Promise.all([
    get(`/v3/apps/${app.guid}/routes?per_page=100`, { signal }),
    get(`/v3/apps/${app.guid}/droplets/current`, { signal }).catch(e => {
      if (e.status === 404) return null;
      throw e;
    }),
  ]);
  return { routes: routes.resources, droplet };
}

// The courses of CPU and memory of each instance, by "process GUID/index".
async function loadCourses(app, signal) {
  const end = Math.floor(Date.now() / 15000) * 15;
  const by = {};
  for (const name of ['cpu', 'memory']) {
    const series = await range(`sum by (process_id, instance_id) (${name}{${sources([app.guid])}})`, end - 900, end, 15, { signal });
    for (const s of series)
      (by[`${s.metric.process_id}/${s.metric.instance_id}`] ??= {})[name] = s.values.map(v => Number(v[1]) * (name === 'cpu' ? 0.01 : 1));
  }
  return by;
}

/** The tab Overview. */
export default function Overview(of) {
  const { app, processes } = of;
  const stats = useResource(
    signal => loadStats(processes, signal),
    [app.guid, processes.map(p => p.guid)],
    ofApp(app.guid, 'instance process app'),
  );
  const crashes = useResource(signal => loadCrashes(app.guid, signal), [app.guid], ofApp(app.guid, 'event instance'));
  const facts = useResource(signal => loadFacts(app, signal), [app.guid], ofApp(app.guid, 'route droplet app'));
  const courses = useResource(signal => (app.state === 'STARTED' ? loadCourses(app, signal) : {}), [app.guid, app.state]);
  useEvery(3000, stats.reload, [app.guid]);
  useEvery(15000, courses.reload, [app.guid]);
  const ordered = useMemo(
    () =>
      [...processes].sort(
        (a, b) => (b.type === 'web') - (a.type === 'web') || (b.instances > 0) - (a.instances > 0) || a.type.localeCompare(b.type),
      ),
    [processes],
  );
  const name = quoted(app.name);
  return html`
    <${Deploying} of=${of} reload=${of.reload} />
    <${Facts} app=${app} facts=${facts} />
    <${Problem} error=${stats.error} what="The instances could not be loaded." />
    ${ordered.map(
      p => html`
        <${Process}
          key=${p.guid}
          of=${of}
          process=${p}
          stats=${stats.data?.[p.guid]}
          crashes=${crashes.data ?? []}
          courses=${courses.data ?? {}}
        />
      `,
    )}
    <${Lines}
      lines=${[
        `cf app ${name}`,
        of.may.operate && (app.state === 'STARTED' ? `cf stop ${name}` : `cf start ${name}`),
        of.may.operate && of.deployment && `cf continue-deployment ${name}`,
        of.may.operate && of.deployment && `cf cancel-deployment ${name}`,
        of.may.operate && `cf scale ${name} -i ${(ordered[0]?.instances ?? 0) + 1}`,
        `cf curl /v3/processes/${ordered[0]?.guid}/stats`,
      ]}
    />
  `;
}

function Facts({ app, facts }) {
  const { routes, droplet } = facts.data ?? {};
  const packs = droplet?.buildpacks?.map(b => b.buildpack_name || b.name).join(', ');
  return html`
    <${Problem} error=${facts.error} />
    <dl class="facts">
      <div>
        <dt>Routes</dt>
        <dd>
          ${routes?.length
            ? routes.map(r => html`<${Route} key=${r.guid} route=${r} />`)
            : html`<span class="muted">${routes ? 'none' : '…'}</span>`}
        </dd>
      </div>
      <div>
        <dt>${app.lifecycle.type === 'docker' ? 'Image' : 'Stack'}</dt>
        <dd>${app.lifecycle.type === 'docker' ? (droplet?.image ?? '–') : (droplet?.stack ?? app.lifecycle.data.stack ?? '–')}</dd>
      </div>
      ${packs && html`<div><dt>Buildpacks</dt><dd>${packs}</dd></div>`}
      <div>
        <dt>Droplet</dt>
        <dd>
          ${droplet
            ? html`<span class="mono" title=${droplet.guid}>${short(droplet.guid)}</span> <${Time} at=${droplet.created_at} />`
            : html`<span class="muted">none: the app was never staged</span>`}
        </dd>
      </div>
      <div><dt>Created</dt><dd><${Time} at=${app.created_at} /></dd></div>
    </dl>
  `;
}

function Route({ route }) {
  const url = routeURL(route);
  return html`
    <span class="item">
      ${url ? html`<a href=${url} target="_blank" rel="noreferrer">${route.url}</a>` : html`<span class="mono">${route.url}</span>`}
    </span>
  `;
}

function Process({ of, process: p, stats, crashes, courses }) {
  const { app, may } = of;
  const instances = stats?.resources ?? [];
  const running = instances.filter(i => i.state === 'RUNNING').length;
  const scale = () => open(Scale, { title: 'Scale', of, process: p });
  const replacing = of.deployment && p.type === 'web'; // then the API scales no web process
  const part = of.deployment?.new_processes.some(n => n.guid === p.guid) ? 'new' : replacing ? 'old' : '';
  const actions =
    may.operate &&
    !replacing &&
    html`
      <${Quick} of=${of} process=${p} />
      <button type="button" onClick=${scale} aria-label=${'Scale ' + p.type}>Scale…</button>
      <${Commands} of=${`${p.type} of ${app.name}`} lines=${scaling(app, p)} />
    `;
  const title = html`
    ${p.type} ${part && html`<span class="label">${part}</span>`} <span class="muted">
      ${app.state === 'STARTED' ? `${running} of ${count(p.instances, 'instance')}` : count(p.instances, 'instance')} · ${megabytes(
        p.memory_in_mb,
      )} memory · ${megabytes(p.disk_in_mb)} disk
    </span>
  `;
  return html`
    <${Section} title=${title} actions=${actions}>
      ${p.instances > 0 &&
      app.state === 'STARTED' &&
      (stats
        ? html`
            <div class="scroll">
              <table class="cards instances">
                <caption class="hidden">Instances of ${p.type} ${part}</caption>
                <thead>
                  <tr>
                    <th scope="col">#</th>
                    <th scope="col">State</th>
                    <th scope="col">Since</th>
                    <th scope="col" class="num">CPU</th>
                    <th scope="col" class="num">Memory</th>
                    <th scope="col" class="num">Disk</th>
                    <th scope="col" class="num">Logs</th>
                    <th scope="col">Address</th>
                    <th scope="col"><span class="hidden">Actions</span></th>
                  </tr>
                </thead>
                <tbody>
                  ${instances.map(
                    i => html`
                      <${Instance}
                        key=${i.index}
                        of=${of}
                        process=${p}
                        i=${i}
                        why=${whyNot(i, p, crashes)}
                        course=${courses[`${p.guid}/${i.index}`]}
                      />
                    `,
                  )}
                </tbody>
              </table>
            </div>
          `
        : html`<${Skeleton} rows=${2} />`)}
      ${app.state !== 'STARTED' && p.instances > 0 && html`<p class="muted">The app is stopped.</p>`}
      ${stats?.stopping?.length > 0 && html`<p class="muted">${count(stats.stopping.length, 'old instance')} stopping.</p>`}
    <//>
  `;
}

// Why an instance does not run: what the stats say of its placement or crash, with the newest event of that.
function whyNot(i, p, crashes) {
  const event = crashes.find(e => e.data.index === i.index && e.actor.guid === p.guid);
  if (!event || (i.details && i.state === 'RUNNING')) return i.details ? { text: i.details } : null;
  const recent = i.state !== 'RUNNING';
  return recent || event.data.crash_count
    ? { text: i.details ?? crashReason(event), at: event.created_at, times: event.data.crash_count, past: !recent }
    : null;
}

function Instance({ of, process: p, i, why, course }) {
  const u = i.usage ?? {},
    up = i.state === 'RUNNING';
  const remove = () =>
    confirm({
      title: `Restart instance ${i.index} of ${p.type}?`,
      text: 'It stops, and a new one takes its place.',
      submit: 'Restart the instance',
      lines: [`cf restart-app-instance ${quoted(of.app.name)} ${i.index}${p.type === 'web' ? '' : ' --process ' + quoted(p.type)}`],
      run: async () => {
        await call('DELETE', `/v3/processes/${p.guid}/instances/${i.index}`);
        announce(`Instance ${i.index} restarts`);
      },
    });
  return html`
    <tr data-row>
      <th scope="row" class="mono">${i.index}</th>
      <td data-label="State">
        <span>
          <${State} value=${i.state} />
          ${up && i.routable === false && html` <span class="muted">not ready</span>`}
          ${why &&
          (!why.past || i.uptime < 300) &&
          html`
            <span class=${why.past ? 'sub' : 'sub bad'}>
              ${why.text}
              ${why.times > 1 ? ` (${why.times} times)` : ''}
              ${why.at && html` · <${Time} at=${why.at} />`} · <${Link} to=${`/apps/${of.app.guid}/logs?instance=${i.index}`}>logs<//>
            </span>
          `}
        </span>
      </td>
      <td data-label="Since" class="nowrap">${up ? duration(i.uptime) : '–'}</td>
      <td data-label="CPU" class="num"><${Use} values=${course?.cpu} now=${up ? percent(u.cpu) : '–'} what="CPU" /></td>
      <td data-label="Memory" class="num">
        <${Use} values=${course?.memory} now=${up ? bytes(u.mem) : '–'} of=${up ? bytes(i.mem_quota) : null} what="Memory" />
      </td>
      <td data-label="Disk" class="num nowrap">
        ${up ? html`${bytes(u.disk)} <span class="muted">of ${bytes(i.disk_quota)}</span>` : '–'}
      </td>
      <td data-label="Logs" class="num">${up ? bytes(u.log_rate) + '/s' : '–'}</td>
      <td data-label="Address" class="mono">${i.host ? `${i.host}:${i.instance_ports?.[0]?.internal ?? ''}` : '–'}</td>
      <td>
        ${of.may.operate &&
        html`
          <button type="button" class="quiet" onClick=${remove} aria-label=${`Restart instance ${i.index} of ${p.type}`}>Restart…</button>
        `}
      </td>
    </tr>
  `;
}

function Use({ values, now, of, what }) {
  return html`
    <span class="use">
      <${Spark} values=${values} label=${`${what} over 15 minutes, now ${now}`} />
      <span>${now}${of && html`<span class="muted"> of ${of}</span>`}</span>
    </span>
  `;
}

function scaling(app, p) {
  const line = n => `cf scale ${quoted(app.name)}${p.type === 'web' ? '' : ' --process ' + quoted(p.type)} -i ${n}`;
  return [
    p.instances > 0 && [`One instance of ${p.type} less`, line(p.instances - 1)],
    [`One more instance of ${p.type}`, line(p.instances + 1)],
    ['Scale…', `${line(p.instances)} -m ${p.memory_in_mb}M -k ${p.disk_in_mb}M`],
  ];
}

// One more or one less instance: takes effect at once, and restarts nothing.
function Quick({ of, process: p }) {
  const to = n => async () => {
    await call('POST', `/v3/processes/${p.guid}/actions/scale`, { json: { instances: n } });
    announce(count(n, 'instance'));
    await of.reload();
  };
  return html`
    <${Button} run=${to(Math.max(0, p.instances - 1))} disabled=${p.instances === 0} aria-label=${`One instance of ${p.type} less`}>−<//>
    <${Button} run=${to(p.instances + 1)} aria-label=${`One more instance of ${p.type}`}>+<//>
  `;
}
