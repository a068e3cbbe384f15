// An app's metrics: what its instances use, and its requests by status with their latency.
import { html } from '../lib/html.js';
import { get } from '../lib/api.js';
import { useResource, useEvery } from '../lib/resource.js';
import { range, sources, axisOf, onAxis, smoothed } from '../lib/metrics.js';
import { bytes, percent, quoted, count } from '../lib/format.js';
import { Problem, Skeleton, Lines, Empty } from '../parts/basic.js';
import { Chart } from '../parts/chart.js';
import { Spans, useSpan } from '../parts/spans.js';

const long = 86400; // spans whose requests are read from counters: there are too many to read each

// Series of a gauge by instance, on one axis of time.
async function gauge(app, name, scale, times, step, signal) {
  const found = await range(smoothed(`${name}{${sources([app.guid])}}`, step), times[0], times.at(-1), step, { signal });
  const by = new Map();
  for (const s of found) {
    const label = `${s.metric.process_type ?? 'web'}/${s.metric.instance_id}`;
    by.set(label, onAxis(s, times, step, scale, by.get(label)));
  }
  return [...by]
    .sort()
    .slice(0, 12)
    .map(([label, values]) => ({ label, values }));
}

// The newest requests, at most 5,000 of them: their times to the nanosecond, so quantiles are exact.
async function timers(app, from, signal) {
  const all = [];
  let end = null;
  for (let page = 0; page < 5; page++) {
    const params = new URLSearchParams({
      envelope_types: 'TIMER',
      limit: '1000',
      descending: 'true',
      start_time: String(BigInt(from) * 1000000000n),
      ...(end && { end_time: end }),
    });
    const batch = (await get(`/api/v1/read/${app.guid}?${params}`, { signal })).envelopes?.batch ?? [];
    for (const e of batch)
      if (e.timer?.name === 'http')
        all.push({
          at: Number(e.timestamp.slice(0, -9)),
          took: Number(BigInt(e.timer.stop) - BigInt(e.timer.start)) / 1e9,
          code: e.tags?.status_code ?? '',
        });
    if (batch.length < 1000) break;
    end = batch.at(-1).timestamp;
  }
  return all;
}

// What binned gives, from the counters of the history.
async function counted(app, times, step, signal) {
  const ask = query => range(query, times[0], times.at(-1), step, { signal });
  const of = sources([app.guid]),
    nothing = times.map(() => null);
  const status = classes.map(async (label, n) => {
    const [found] = await ask(`sum(rate(http_requests_total{${of},status_code=~"${label[0]}.."}[${step}s]))`);
    return { label, colour: tones[n], values: found ? onAxis(found, times, step) : nothing };
  });
  const latency = quantiles.map(async ([label, q]) => {
    const [found] = await ask(`histogram_quantile(${q}, rate(http_request_duration_seconds_bucket{${of}}[${step}s]))`);
    return { label, values: found ? onAxis(found, times, step) : nothing };
  });
  const all = await Promise.all([...status, ...latency]); // at once: an abort rejects each of them
  const lines = { status: all.slice(0, classes.length), latency: all.slice(classes.length) };
  return { ...lines, some: lines.status.some(s => s.values !== nothing), total: 0, overall: null };
}

const classes = ['2xx', '3xx', '4xx', '5xx'],
  tones = ['--ok', '--accent', '--wait', '--bad'];
const quantiles = [
  ['p50', 0.5],
  ['p95', 0.95],
  ['p99', 0.99],
];
const quantile = (sorted, q) => sorted[Math.min(sorted.length - 1, Math.ceil(q * sorted.length) - 1)];

// Requests in bins of the axis: by class of status, and quantiles of their time.
function binned(requests, times, step) {
  const bins = times.map(() => []);
  for (const r of requests) bins[Math.floor((r.at - times[0]) / step)]?.push(r);
  const status = classes.map((label, n) => ({
    label,
    colour: tones[n],
    values: bins.map(b => b.filter(r => r.code[0] === label[0]).length / step),
  }));
  const sorted = bins.map(b => b.map(r => r.took).sort((x, y) => x - y));
  const latency = quantiles.map(([label, q]) => ({ label, values: sorted.map(s => (s.length ? quantile(s, q) : null)) }));
  const whole = requests.map(r => r.took).sort((x, y) => x - y);
  const total = requests.length;
  return { status, latency, some: total > 0, total, overall: total ? quantiles.map(([, q]) => quantile(whole, q)) : null };
}

async function load(app, span, signal) {
  const { length, step } = span,
    times = axisOf(span);
  const [cpu, memory, disk, requests] = await Promise.all([
    gauge(app, 'cpu', 0.01, times, step, signal),
    gauge(app, 'memory', 1, times, step, signal),
    gauge(app, 'disk', 1, times, step, signal),
    length < long
      ? timers(app, times[0], signal).then(all => binned(all, times, step))
      : counted(app, times, step, signal),
  ]);
  return { times, cpu, memory, disk, requests, step };
}

const milliseconds = s => (s * 1000 >= 100 ? Math.round(s * 1000) : (s * 1000).toFixed(1)) + ' ms';
const rate = n => (n >= 10 ? Math.round(n) : n.toFixed(n && n < 1 ? 2 : 1)) + '/s';

/** The tab Metrics. */
export default function Metrics({ app }) {
  const span = useSpan();
  const data = useResource(signal => load(app, span, signal), [app.guid, span.name]);
  useEvery(span.step * 1000, data.reload, [app.guid, span.name]);
  const d = data.data;
  const requests = d?.requests;
  const nothing = d && !d.cpu.length && !requests.some;
  return html`
    <div class="toolbar">
      <${Spans} />
      ${requests?.overall &&
      html`
        <span class="muted">
          ${count(requests.total, 'request')}
          ${requests.total >= 5000 ? ', the newest' : ''}
          : p50 ${milliseconds(requests.overall[0])}
          , p95 ${milliseconds(requests.overall[1])}
          , p99 ${milliseconds(requests.overall[2])}
        </span>
      `}
    </div>
    <${Problem} error=${data.error} />
    ${!d && !data.error && html`<${Skeleton} rows=${8} />`}
    ${nothing && html`<${Empty} title="There is no metric of this time.">Metrics come every 15 s while an instance runs.<//>`}
    ${d &&
    !nothing &&
    html`
      <div class="charts">
        <${Chart} label="CPU, of one core" times=${d.times} series=${d.cpu} format=${percent} />
        <${Chart} label="Memory" times=${d.times} series=${d.memory} format=${bytes} />
        <${Chart} label="Disk" times=${d.times} series=${d.disk} format=${bytes} />
        <${Chart} label="Requests by status" times=${d.times} series=${requests.status} format=${rate} />
        <${Chart} label="Latency" times=${d.times} series=${requests.latency} format=${milliseconds} sparse=${true} />
      </div>
    `}
    <${Lines}
      lines=${[
        `cf curl "/api/v1/read/${app.guid}?envelope_types=TIMER&descending=true"`,
        `cf curl /api/v1/query -X POST -H "Content-Type: application/x-www-form-urlencoded" ` +
          `-d ${quoted(`query=cpu{source_id="${app.guid}"}`)}`,
      ]}
    />
  `;
}
