// How a service instance of the built-in broker fares: its server, what it uses, and what it can be restored to.
import { html } from '../lib/html.js';
import { get } from '../lib/api.js';
import { useResource, useEvery } from '../lib/resource.js';
import { range, sources, axisOf, onAxis, smoothed } from '../lib/metrics.js';
import { bytes, percent, quoted } from '../lib/format.js';
import { Problem, Skeleton, Section, Lines, Time } from '../parts/basic.js';
import { Chart, number } from '../parts/chart.js';
import { Spans, useSpan } from '../parts/spans.js';

const recovers = offering => ['postgres', 'redis'].includes(offering.name);
/** Whether an instance of an offering has a server, whose log can be read. */
export const hasServer = offering => offering.name !== 'files';

const tls = { required: 'required', optional: 'optional: clients may use it' };

async function loadFacts({ instance: i, offering, may }, signal) {
  const path = `/v1/service_instances/${i.guid}`;
  const [server, points] = await Promise.all([
    hasServer(offering) ? get(path + '/server', { signal }) : {},
    recovers(offering) && may.credentials ? get(path + '/points', { signal }) : null,
  ]);
  return { server, points };
}

/** What the server is, and what is there to restore, as items of a list of facts; of is what the screen has loaded. */
export function Server({ of, backups }) {
  const { instance: i } = of;
  const concerns = c => c.kind === 'service_instance' && (c.guid === i.guid || c.guid === '*');
  const all = useResource(signal => loadFacts(of, signal), [i.guid, i.last_operation?.updated_at], concerns);
  const d = all.data,
    backup = backups?.find(b => b.state === 'READY');
  if (!d) return html`<div><dt>Server</dt><dd>${all.error ? all.error.message : '…'}</dd></div>`;
  return html`
    ${d.server.version !== undefined &&
    html`<div><dt>Version</dt><dd>${d.server.version ?? html`<span class="muted">does not run</span>`}</dd></div>`}
    ${d.server.tls && html`<div><dt>TLS</dt><dd>${tls[d.server.tls]}</dd></div>`}
    <div>
      <dt>Last backup</dt>
      <dd>${backup ? html`<${Time} at=${backup.created_at} />` : html`<span class="muted">none</span>`}</dd>
    </div>
    ${d.points && html`<div><dt>Restorable</dt><dd>${pointsOf(d.points)}</dd></div>`}
  `;
}

function pointsOf(points) {
  if (!points.enabled) return html`<span class="muted">to backups alone</span>`;
  if (!points.first) return html`<span class="muted">to no second yet</span>`;
  return html`to each second since <${Time} at=${points.first} />`;
}

const plots = [
  { label: 'CPU, of one core', format: percent, scale: 0.01, lines: [['used', 'cpu']], server: true },
  { label: 'Memory', format: bytes, lines: [['used', 'memory'], ['limit', 'memory_quota']], server: true },
  { label: 'Disk', format: bytes, lines: [['used', 'persistent_disk'], ['limit', 'persistent_disk_quota']] },
  { label: 'Connections', format: number, lines: [['open', 'connections']], server: true },
];

// The series of the plots that have any. Labels change with a restart and a rename: there is one series all the same.
async function loadPlots(guid, wanted, span, signal) {
  const times = axisOf(span);
  const line = async ([label, metric], scale) => {
    const query = `max by (source_id) (${smoothed(`${metric}{${sources([guid])}}`, span.step)})`;
    const [found] = await range(query, times[0], times.at(-1), span.step, { signal });
    return found && { label, values: onAxis(found, times, span.step, scale), ...(label === 'limit' && { colour: '--muted' }) };
  };
  const all = await Promise.all(
    wanted.map(async p => ({ ...p, series: (await Promise.all(p.lines.map(l => line(l, p.scale)))).filter(Boolean) })),
  );
  return { times, plots: all.filter(p => p.series.length) };
}

/** The section with the charts. */
export function Usage({ of }) {
  const { instance: i, offering } = of,
    span = useSpan();
  const wanted = plots.filter(p => hasServer(offering) || !p.server);
  const all = useResource(signal => loadPlots(i.guid, wanted, span, signal), [i.guid, span.name]);
  useEvery(span.step * 1000, all.reload, [i.guid, span.name]);
  const d = all.data;
  return html`
    <${Section} title="Metrics" actions=${html`<${Spans} />`}>
      <${Problem} error=${all.error} />
      ${!d && !all.error && html`<${Skeleton} rows=${4} />`}
      ${d && !d.plots.length && html`<p class="muted">There are no metrics of this time. They come every 15 s.</p>`}
      ${d &&
      html`
        <div class="charts">
          ${d.plots.map(
            p => html`<${Chart} key=${p.label} label=${p.label} times=${d.times} series=${p.series} format=${p.format} />`,
          )}
        </div>
      `}
      <${Lines}
        lines=${[
          `cf curl /api/v1/query -X POST -H "Content-Type: application/x-www-form-urlencoded" ` +
            `-d ${quoted(`query=persistent_disk{source_id="${i.guid}"}`)}`,
        ]}
      />
    <//>
  `;
}
