// One BOSH deployment: its groups and instances, tasks, variables, and what can be done with it.
import { html } from '../lib/html.js';
import { get, call } from '../lib/api.js';
import { useResource } from '../lib/resource.js';
import { ofKind } from '../lib/operations.js';
import { Link, go } from '../lib/router.js';
import { quoted, count } from '../lib/format.js';
import { isAdmin } from '../lib/roles.js';
import { Head, State, Time, Section, Lines, Button } from '../parts/basic.js';
import { Table, Waiting } from '../parts/table.js';
import { open, confirm } from '../parts/dialog.js';
import { announce } from '../parts/live.js';
import { Deploy, Tasks } from './bosh.js';

const path = name => '/v1/deployments/' + encodeURIComponent(name);

async function load(name, signal) {
  const [all, instances, variables] = await Promise.all([
    get('/v1/deployments', { signal }),
    get(path(name) + '/instances', { signal }),
    get(path(name) + '/variables', { signal }),
  ]);
  const groups = new Map();
  for (const i of instances) {
    if (!groups.has(i.group)) groups.set(i.group, []);
    groups.get(i.group).push(i);
  }
  return { deployment: all.find(d => d.name === name), groups: [...groups], variables };
}

/** Asks the director for a task, and goes to it. */
async function ask(name, json) {
  const t = await call('POST', path(name) + '/tasks', { json });
  announce(`Task ${t.id} has begun`);
  go('/bosh/tasks/' + t.id);
}

const effects = {
  start: 'They start.',
  stop: 'They stop, and stay stopped.',
  restart: 'They stop and start again: what they serve is interrupted where a group has one instance.',
  recreate: 'They get new ephemeral disks: what is on these is lost. Persistent disks stay.',
};

function act(name, kind, group, index) {
  const what = group ? `${group}${index === undefined ? '' : '/' + index}` : 'all instances';
  confirm({
    title: `${kind[0].toUpperCase() + kind.slice(1)} ${what} of ${name}?`,
    danger: kind !== 'start',
    submit: kind[0].toUpperCase() + kind.slice(1),
    text: effects[kind],
    lines: [`cupola deployment ${kind} ${quoted(name)}${group ? ' ' + quoted(what) : ''}`],
    run: () => ask(name, { kind, ...(group && { group }), ...(index !== undefined && { index }) }),
  });
}

/** The screen /bosh/deployments/NAME. */
export default function Deployment({ params: { name } }) {
  const of = useResource(signal => load(name, signal), [name], ofKind('bosh_deployment bosh_task instance'));
  const d = of.data;
  const remove = () =>
    confirm({
      title: `Delete the deployment ${name}?`,
      submit: 'Delete',
      text: `All instances of ${name} are deleted. Its persistent disks stay.`,
      lines: [`cupola deployment delete ${quoted(name)}`],
      run: () => ask(name, { kind: 'delete' }),
    });
  const deploy = async () => open(Deploy, { title: 'Deploy ' + name, name, wide: true, manifest: (await get(path(name))).manifest });
  return html`
    <div class="crumbs"><${Link} to="/bosh">Deployments<//></div>
    <${Head}
      title=${name}
      note=${d?.deployment &&
      html`<span class="muted">version ${d.deployment.version}, deployed <${Time} at=${d.deployment.updated_at} /></span>`}
    >
      ${isAdmin() &&
      d?.deployment &&
      html`
        <${Button} kind="primary" run=${deploy}>Change and deploy…<//>
        ${['start', 'stop', 'restart', 'recreate'].map(
          k => html`<button key=${k} type="button" onClick=${() => act(name, k)}>${k[0].toUpperCase() + k.slice(1)}…</button>`,
        )}
        <button type="button" onClick=${remove}>Delete…</button>
      `}
    <//>
    <${Waiting} of=${of} />
    ${d?.groups.map(([group, rows]) => html`<${Group} key=${group} name=${name} group=${group} rows=${rows} />`)}
    <${Tasks} of=${name} />
    ${d?.variables.length > 0 && html`<${Variables} rows=${d.variables} />`}
    <${Lines}
      lines=${[
        `cupola deployment instances ${quoted(name)} --processes`,
        `cupola deployment logs ${quoted(name)}`,
        `cf curl ${path(name)}/instances`,
      ]}
    />
  `;
}

function Group({ name, group, rows }) {
  const errand = rows[0].lifecycle === 'errand';
  const columns = [
    { title: 'Instance', cell: i => html`<strong>${i.group}/${i.index}</strong><span class="sub mono">${i.guid}</span>` },
    {
      title: 'State',
      cell: i => html`
        <${State} value=${i.state} />
        ${!i.up_to_date && !errand && html` <span class="muted">outdated</span>`}
        ${i.failure && html`<span class="sub bad pre">${i.failure}</span>`}
      `,
    },
    {
      title: 'Processes',
      cell: i =>
        i.processes.length
          ? html`
              <ul>
                ${i.processes.map(
                  p => html`
                    <li key=${p.name}>
                      ${p.name} <${State} value=${p.state} />
                      ${p.role && html` <span class="muted">${p.role}</span>`}
                      ${p.crash_count > 0 &&
                      html` <span class="muted">${count(p.crash_count, 'crash').replace('crashs', 'crashes')}</span>`}
                      ${p.details && html`<span class="sub bad">${p.details}</span>`}
                    </li>
                  `,
                )}
              </ul>
            `
          : '–',
    },
    { title: 'AZ', cell: i => i.az || '–' },
    { title: 'Address', cell: i => (i.address ? html`<span class="mono">${i.address}</span>` : '–') },
    { title: 'Since', cell: i => html`<${Time} at=${i.since} />` },
    isAdmin() &&
      !errand && {
        title: 'Actions',
        quiet: true,
        cell: i => html`
          <span class="actions">
            <button
              type="button"
              onClick=${() => act(name, i.state === 'stopped' ? 'start' : 'restart', i.group, i.index)}
              aria-label=${`${i.state === 'stopped' ? 'Start' : 'Restart'} ${i.group}/${i.index}`}
            >
              ${i.state === 'stopped' ? 'Start…' : 'Restart…'}
            </button>
          </span>
        `,
      },
  ];
  const run = () =>
    confirm({
      title: `Run the errand ${group}?`,
      danger: false,
      submit: 'Run',
      text: `The errand ${group} runs once in its own containers.`,
      lines: [`cupola deployment run-errand ${quoted(name)} ${quoted(group)}`],
      run: () => ask(name, { kind: 'run-errand', errand: group }),
    });
  const actions =
    isAdmin() &&
    (errand
      ? html`<button type="button" onClick=${run}>Run the errand…</button>`
      : html`
          <button type="button" onClick=${() => act(name, 'restart', group)} aria-label=${'Restart the group ' + group}>Restart…</button>
          <button type="button" onClick=${() => act(name, 'stop', group)} aria-label=${'Stop the group ' + group}>Stop…</button>
        `);
  return html`
    <${Section} title=${group} actions=${html`<span class="muted">${errand ? 'errand' : count(rows.length, 'instance')}</span>${actions}`}>
      <${Table} caption=${'Instances of ' + group} columns=${columns} rows=${rows} />
    <//>
  `;
}

function Variables({ rows }) {
  const columns = [
    { title: 'Variable', cell: v => html`<span class="mono">${v.name}</span>` },
    { title: 'Type', cell: v => v.type },
    { title: 'Changed', cell: v => html`<${Time} at=${v.updated_at} />` },
  ];
  return html`
    <${Section} title="Variables">
      <${Table} caption="Variables; their values are secret" columns=${columns} rows=${rows} id=${v => v.name} />
    <//>
  `;
}
