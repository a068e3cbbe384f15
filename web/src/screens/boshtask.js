// One task of the BOSH director, with its events and what its instances print, as they come.
import { html } from '../lib/html.js';
import { get, call } from '../lib/api.js';
import { useResource, useEvery } from '../lib/resource.js';
import { ofKind } from '../lib/operations.js';
import { Link } from '../lib/router.js';
import { duration, quoted, stamp } from '../lib/format.js';
import { isAdmin, readsMachine } from '../lib/roles.js';
import { Head, State, Time, Problem, Skeleton, Section, Lines } from '../parts/basic.js';
import { LogOf } from '../parts/loglines.js';
import { Table } from '../parts/table.js';
import { confirm } from '../parts/dialog.js';

const zero = t => !t || t.startsWith('0001');

/** The screen /bosh/tasks/ID. */
export default function Task({ params: { id } }) {
  const task = useResource(
    signal => get('/v1/deployment_tasks/' + encodeURIComponent(id), { signal }),
    [id],
    ofKind('bosh_task bosh_deployment instance'),
  );
  const t = task.data,
    running = t && ['queued', 'processing'].includes(t.state);
  useEvery(
    2000,
    () => {
      if (running) task.reload();
    },
    [running],
  );
  const cancel = () =>
    confirm({
      title: `Cancel task ${id}?`,
      submit: 'Cancel the task',
      text: `Task ${id} of ${t.deployment} stops after what it does now. What it has done stays.`,
      lines: [`cupola deployment cancel-task ${id}`],
      run: async () => {
        await call('DELETE', '/v1/deployment_tasks/' + id);
        await task.reload();
      },
    });
  if (!t) return task.error ? html`<${Head} title=${'Task ' + id} /><${Problem} error=${task.error} />` : html`<${Skeleton} rows=${5} />`;
  const columns = [
    { title: 'Time', cell: e => html`<time datetime=${e.at} class="nowrap">${stamp(e.at)}</time>` },
    { title: 'Stage', cell: e => e.stage },
    { title: 'Of', cell: e => html`<span class="mono">${e.subject}</span>` },
    { title: 'State', cell: e => html`<${State} value=${e.state} />` },
    { title: 'Detail', cell: e => e.detail && html`<span class="pre">${e.detail}</span>` },
  ];
  return html`
    <div class="crumbs">
      <${Link} to="/bosh">Deployments<//> / <${Link} to=${'/bosh/deployments/' + encodeURIComponent(t.deployment)}>${t.deployment}<//>
    </div>
    <${Head} title=${`Task ${t.id}: ${t.kind}`} note=${html`<${State} value=${t.state} />`}>
      ${isAdmin() && running && html`<button type="button" onClick=${cancel}>Cancel the task…</button>`}
    <//>
    <${Problem} error=${task.error} />
    <dl class="facts">
      <div><dt>User</dt><dd>${t.user}</dd></div>
      <div><dt>Asked for</dt><dd><${Time} at=${t.created_at} /></dd></div>
      ${!zero(t.started_at) &&
      html`
        <div>
          <dt>Takes</dt>
          <dd>${duration(((zero(t.ended_at) ? Date.now() : new Date(t.ended_at)) - new Date(t.started_at)) / 1000)}</dd>
        </div>
      `}
    </dl>
    ${t.result && html`<div class=${t.state === 'error' ? 'problem' : 'panel'}><span class="pre">${t.result}</span></div>`}
    <${Section} title="Events">
      ${t.events.length
        ? html`<${Table} caption="Events of the task" columns=${columns} rows=${t.events.map((e, n) => ({ ...e, n }))} id=${e => e.n} />`
        : html`<p class="muted">There are none yet.</p>`}
    <//>
    <${Output} t=${t} />
    <${Lines} lines=${[`cupola deployment task ${t.id}`, `cupola deployment logs ${quoted(t.deployment)}`]} />
  `;
}

// What scripts and processes of the instances that the task is about print while it runs.
function Output({ t }) {
  const all = useResource(signal => get('/v1/deployments', { signal }), []);
  const of = all.data?.find(d => d.name === t.deployment);
  const groups = new Set(t.events.map(e => e.subject.split('/')[0]));
  if (!of || !groups.size || !readsMachine()) return null; // its log goes with a deployment; a global auditor may not read it
  return html`
    <${Section} title="Output">
      <${LogOf}
        app=${of}
        label=${`What the instances print during task ${t.id}`}
        pass=${l => groups.has(l.source)}
        since=${t.started_at}
        until=${zero(t.ended_at) ? undefined : t.ended_at}
      />
    <//>
  `;
}
