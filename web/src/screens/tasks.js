// An app's tasks: run one, watch its log, cancel it, run it again.
import { html, useState } from '../lib/html.js';
import { get, call } from '../lib/api.js';
import { useResource, ofApp } from '../lib/resource.js';
import { quoted, megabytes, duration, count } from '../lib/format.js';
import { Time, Problem, Skeleton, Empty, Lines, State, Field, Button } from '../parts/basic.js';
import { open, confirm, Sheet } from '../parts/dialog.js';
import { Commands } from '../parts/commands.js';
import { announce } from '../parts/live.js';
import { LogOf } from '../parts/loglines.js';

/** The tab Tasks. */
export default function Tasks({ app, may }) {
  const tasks = useResource(
    signal => get(`/v3/apps/${app.guid}/tasks?order_by=-created_at&per_page=100`, { signal }),
    [app.guid],
    ofApp(app.guid, 'task'),
  );
  const [watched, setWatched] = useState(null);
  const rows = tasks.data?.resources;
  const start = async json => {
    const t = await call('POST', `/v3/apps/${app.guid}/tasks`, { json });
    announce(`Task ${t.name} started`);
    setWatched(t.guid);
    await tasks.reload();
  };
  const again = t => async () =>
    start({ command: (await get('/v3/tasks/' + t.guid)).command, memory_in_mb: t.memory_in_mb, disk_in_mb: t.disk_in_mb });
  const run = () => open(Run, { title: 'Run a task', app, start });
  return html`
    <div class="section-head">
      <h2>Tasks ${rows && html`<span class="muted">${tasks.data.pagination.total_results}</span>`}</h2>
      ${may.edit && html`<button type="button" class="primary" onClick=${run}>Run a task…</button>`}
    </div>
    <${Problem} error=${tasks.error} />
    ${!rows && !tasks.error && html`<${Skeleton} />`}
    ${rows?.length === 0 &&
    html`
      <${Empty} title="No task was run yet." line=${`cf run-task ${quoted(app.name)} --command "echo hello"`}>
        A task is a command that runs once, in a container like the app's.
      <//>
    `}
    ${rows?.length > 0 &&
    html`
      <div class="scroll">
        <table class="cards">
          <caption class="hidden">Tasks</caption>
          <thead>
            <tr>
              <th scope="col">ID</th>
              <th scope="col">Name</th>
              <th scope="col">State</th>
              <th scope="col">Started</th>
              <th scope="col">Took</th>
              <th scope="col">Limits</th>
              <th scope="col"><span class="hidden">Actions</span></th>
            </tr>
          </thead>
          <tbody>
            ${rows.map(
              t => html`
                <${Task}
                  key=${t.guid}
                  app=${app}
                  t=${t}
                  may=${may}
                  again=${again(t)}
                  watched=${watched === t.guid}
                  watch=${() => setWatched(watched === t.guid ? null : t.guid)}
                  reload=${tasks.reload}
                />
              `,
            )}
          </tbody>
        </table>
      </div>
    `}
    <${Lines} lines=${[`cf tasks ${quoted(app.name)}`, may.edit && `cf run-task ${quoted(app.name)} --command "COMMAND"`]} />
  `;
}

function took(t) {
  const end = t.state === 'SUCCEEDED' || t.state === 'FAILED' ? new Date(t.updated_at) : Date.now();
  return duration((end - new Date(t.created_at)) / 1000);
}

function commands(app, t, may) {
  const name = quoted(app.name),
    running = t.state === 'RUNNING' || t.state === 'PENDING';
  const command = `"$(cf curl /v3/tasks/${t.guid} | jq -r .command)"`; // lists of tasks do not have it
  return [
    ['Log', `cf logs ${name} --recent`],
    may.operate && running && ['Cancel…', `cf terminate-task ${name} ${t.sequence_id}`],
    may.edit && !running && ['Run again', `cf run-task ${name} --command ${command} -m ${t.memory_in_mb}M -k ${t.disk_in_mb}M`],
  ];
}

function Task({ app, t, may, again, watched, watch, reload }) {
  const running = t.state === 'RUNNING' || t.state === 'PENDING';
  const cancel = () =>
    confirm({
      title: `Cancel task ${t.sequence_id}?`,
      text: `The task ${t.name} ends at once, and fails.`,
      submit: 'Cancel the task',
      lines: [`cf terminate-task ${quoted(app.name)} ${t.sequence_id}`],
      run: async () => {
        await call('POST', `/v3/tasks/${t.guid}/actions/cancel`);
        await reload();
      },
    });
  return html`
    <tr data-row>
      <td data-label="ID" class="mono">${t.sequence_id}</td>
      <th scope="row">${t.name}</th>
      <td data-label="State">
        <span>
          <${State} value=${t.state} />
          ${t.result?.failure_reason && html`<span class="sub bad">${t.result.failure_reason}</span>`}
        </span>
      </td>
      <td data-label="Started"><${Time} at=${t.created_at} /></td>
      <td data-label="Took">${took(t)}</td>
      <td data-label="Limits">${megabytes(t.memory_in_mb)}, ${megabytes(t.disk_in_mb)} disk</td>
      <td>
        <div class="actions">
          <button type="button" aria-expanded=${watched} aria-label=${`Log of task ${t.sequence_id}`} onClick=${watch}>Log</button>
          ${may.operate &&
          running &&
          html`<button type="button" aria-label=${`Cancel task ${t.sequence_id}`} onClick=${cancel}>Cancel…</button>`}
          ${may.edit && !running && html`<${Button} run=${again} aria-label=${`Run again: task ${t.sequence_id}`}>Run again<//>`}
          <${Commands} of=${'task ' + t.sequence_id} lines=${commands(app, t, may)} />
        </div>
      </td>
    </tr>
    ${watched &&
    html`
      <tr class="inset">
        <td colspan="7">
          <${LogOf} app=${app} label=${`Log of task ${t.name}`} pass=${l => l.type === 'APP/TASK/' + t.name} since=${t.created_at} />
        </td>
      </tr>
    `}
  `;
}

function Run({ app, start, close }) {
  const [command, setCommand] = useState('');
  const [name, setName] = useState('');
  const [memory, setMemory] = useState('');
  const [disk, setDisk] = useState('');
  const json = {
    command,
    ...(name && { name }),
    ...(memory && { memory_in_mb: Number(memory) }),
    ...(disk && { disk_in_mb: Number(disk) }),
  };
  const line =
    `cf run-task ${quoted(app.name)} --command ${quoted(command || 'COMMAND')}${name && ' --name ' + quoted(name)}` +
    `${memory && ` -m ${memory}M`}${disk && ` -k ${disk}M`}`;
  return html`
    <${Sheet}
      title=${`Run a task of ${app.name}`}
      close=${close}
      submit="Run"
      run=${() => start(json)}
      lines=${[line]}
      disabled=${!command}
    >
      <${Field}
        label="Command"
        required
        autofocus
        value=${command}
        onValue=${setCommand}
        placeholder="bin/rake db:migrate"
        note="Runs in a container with the app's droplet and environment"
      />
      <div class="fields">
        <${Field} label="Name" value=${name} onValue=${setName} placeholder="made from a GUID" />
        <${Field} label="Memory (MB)" type="number" min="1" value=${memory} onValue=${setMemory} placeholder="the app's default" />
        <${Field} label="Disk (MB)" type="number" min="1" value=${disk} onValue=${setDisk} placeholder="the app's default" />
      </div>
    <//>
  `;
}
