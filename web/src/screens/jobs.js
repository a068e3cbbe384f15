// An app's jobs: commands and requests that run by schedules, or when asked for. Each with its last run, its history
// and, of commands, their logs.
import { html, useState } from '../lib/html.js';
import { get, call } from '../lib/api.js';
import { useResource, ofApp } from '../lib/resource.js';
import { quoted, duration, stamp } from '../lib/format.js';
import { Time, Problem, Skeleton, Empty, Lines, State, Field, Button } from '../parts/basic.js';
import { open, confirm, Sheet } from '../parts/dialog.js';
import { Commands } from '../parts/commands.js';
import { announce } from '../parts/live.js';
import { LogOf } from '../parts/loglines.js';

// The API has jobs and calls apart; at is where it has one.
async function load(app, signal) {
  const list = async path => {
    const { resources } = await get(`${path}?app_guid=${app.guid}`, { signal });
    return resources.map(job => ({ ...job, at: `${path}/${job.guid}` }));
  };
  const all = (await Promise.all([list('/jobs'), list('/calls')])).flat().sort((a, b) => a.name.localeCompare(b.name));
  return Promise.all(
    all.map(async job => {
      const [schedules, runs] = await Promise.all([
        get(job.at + '/schedules', { signal }),
        get(job.at + '/history?per_page=1', { signal }),
      ]);
      return { ...job, schedules: schedules.resources, last: runs.resources[0] };
    }),
  );
}

const isCall = job => job.at.startsWith('/calls/');
const does = job => (isCall(job) ? job.url && 'POST ' + job.url : job.command);

/** Lets a job run by an expression of cron, in a time zone. */
const schedule = (at, { expression, zone }) =>
  call('POST', at + '/schedules', { json: { expression: zone ? `CRON_TZ=${zone} ${expression}` : expression, enabled: true } });

/** The tab Jobs. */
export default function Jobs({ app, may }) {
  const jobs = useResource(signal => load(app, signal), [app.guid], ofApp(app.guid, 'task app_job event'));
  const [shown, setShown] = useState(null);
  const rows = jobs.data;
  const create = () => open(Create, { title: 'New job', app, reload: jobs.reload });
  const name = quoted(app.name);
  return html`
    <div class="section-head">
      <h2>Jobs ${rows && html`<span class="muted">${rows.length}</span>`}</h2>
      ${may.edit && html`<button type="button" class="primary" onClick=${create}>New job…</button>`}
    </div>
    <${Problem} error=${jobs.error} />
    ${!rows && !jobs.error && html`<${Skeleton} />`}
    ${rows?.length === 0 &&
    html`
      <${Empty} title="This app has no jobs." line=${`cupola jobs create ${name} nightly "bin/clean" --schedule "30 2 * * *"`}>
        A job is a command that runs as a task, or a URL that is requested, by a cron expression or when asked for.
      <//>
    `}
    ${rows?.length > 0 &&
    html`
      <div class="scroll">
        <table class="cards">
          <caption class="hidden">Jobs</caption>
          <thead>
            <tr>
              <th scope="col">Name</th>
              <th scope="col">Command</th>
              <th scope="col">Schedules</th>
              <th scope="col">Last run</th>
              <th scope="col"><span class="hidden">Actions</span></th>
            </tr>
          </thead>
          <tbody>
            ${rows.map(
              job => html`
                <${Job}
                  key=${job.guid}
                  app=${app}
                  job=${job}
                  may=${may}
                  shown=${shown === job.guid}
                  show=${() => setShown(shown === job.guid ? null : job.guid)}
                  reload=${jobs.reload}
                />
              `,
            )}
          </tbody>
        </table>
      </div>
    `}
    <${Lines} lines=${[`cupola jobs list ${name}`, may.edit && `cupola jobs create ${name} NAME "COMMAND" --schedule "30 2 * * *"`]} />
  `;
}

function commands(app, job, may) {
  const words = `${quoted(job.name)} --app ${quoted(app.name)}`,
    paused = isPaused(job);
  return [
    ['History', `cupola jobs history ${words}`],
    may.edit && ['Run now', `cupola jobs run ${words}`],
    may.edit && ['Schedule…', `cupola jobs schedule ${words} "30 2 * * *"`],
    may.edit && job.schedules.length > 0 && [paused ? 'Resume' : 'Pause', `cupola jobs ${paused ? 'resume' : 'pause'} ${words}`],
    may.edit && ['Delete…', `cupola jobs delete ${words}`],
  ];
}

const isPaused = job => job.schedules.length > 0 && job.schedules.every(s => !s.enabled);

function Job({ app, job, may, shown, show, reload }) {
  const { at } = job;
  const run = async () => {
    await call('POST', at + '/execute');
    announce(`Job ${job.name} started`);
    await reload();
  };
  const setEnabled = enabled => async () => {
    for (const s of job.schedules) if (s.enabled !== enabled) await call('PATCH', `${at}/schedules/${s.guid}`, { json: { enabled } });
    await reload();
  };
  const remove = () =>
    confirm({
      title: `Delete the job ${job.name}?`,
      text: 'Its schedules and its history go with it. A run that goes on ends by itself.',
      submit: 'Delete the job',
      lines: [`cupola jobs delete ${quoted(job.name)} --app ${quoted(app.name)}`],
      run: async () => {
        await call('DELETE', at);
        await reload();
      },
    });
  return html`
    <tr data-row>
      <th scope="row">${job.name}</th>
      <td data-label="Command" class="mono">${does(job) ?? html`<span class="muted">hidden</span>`}</td>
      <td data-label="Schedules"><${Schedules} app=${app} job=${job} may=${may} reload=${reload} /></td>
      <td data-label="Last run">${job.last ? html`<${Result} run=${job.last} />` : html`<span class="muted">never</span>`}</td>
      <td>
        <div class="actions">
          <button type="button" aria-expanded=${shown} aria-label=${'History of ' + job.name} onClick=${show}>History</button>
          ${may.edit &&
          html`
            <${Button} run=${run} aria-label=${'Run now: ' + job.name}>Run now<//>
            ${job.schedules.length > 0 &&
            (isPaused(job)
              ? html`<${Button} run=${setEnabled(true)} aria-label=${'Resume ' + job.name}>Resume<//>`
              : html`<${Button} run=${setEnabled(false)} aria-label=${'Pause ' + job.name}>Pause<//>`)}
            <button type="button" aria-label=${`Delete ${job.name}…`} onClick=${remove}>Delete…</button>
          `}
          <${Commands} of=${'job ' + job.name} lines=${commands(app, job, may)} />
        </div>
      </td>
    </tr>
    ${shown &&
    html`
      <tr class="inset">
        <td colspan="5"><${History} app=${app} job=${job} /></td>
      </tr>
    `}
  `;
}

function Schedules({ app, job, may, reload }) {
  const add = () => open(Schedule, { title: 'Schedule a job', app, job, reload });
  return html`
    ${!job.schedules.length && html`<span class="muted">when asked for</span>`}
    ${job.schedules.map(
      s => html`
        <div key=${s.guid}>
          <code>${s.expression}</code>
          <span class="sub">
            ${s.enabled ? (s.next_time ? 'next ' + stamp(s.next_time) : 'never again') : 'paused'}
            ${may.edit &&
            html`
              <button
                type="button"
                class="quiet"
                aria-label=${`Delete ${s.expression} of ${job.name}…`}
                onClick=${() => unschedule(app, job, s, reload)}
              >
                Delete…
              </button>
            `}
          </span>
        </div>
      `,
    )}
    ${may.edit && html`<button type="button" class="quiet" aria-label=${`Schedule ${job.name}…`} onClick=${add}>Schedule…</button>`}
  `;
}

const unschedule = (app, job, s, reload) =>
  confirm({
    title: `Delete the schedule ${s.expression}?`,
    text: `The job ${job.name} stays.`,
    submit: 'Delete the schedule',
    lines: [`cupola jobs unschedule ${quoted(job.name)} ${quoted(s.expression)} --app ${quoted(app.name)}`],
    run: async () => {
      await call('DELETE', `${job.at}/schedules/${s.guid}`);
      await reload();
    },
  });

function Result({ run }) {
  return html`
    <span>
      <${State} value=${run.state} />
      <span class="sub"><${Time} at=${run.execution_start_time ?? run.created_at} /></span>
      ${run.message && run.state !== 'SUCCEEDED' && html`<span class="sub bad">${run.message}</span>`}
    </span>
  `;
}

function took(run) {
  if (!run.execution_start_time) return '–';
  return duration(((run.execution_end_time ? new Date(run.execution_end_time) : Date.now()) - new Date(run.execution_start_time)) / 1000);
}

function History({ app, job }) {
  const runs = useResource(
    signal => get(job.at + '/history?per_page=50', { signal }),
    [job.guid],
    ofApp(app.guid, 'task app_job event'),
  );
  const [watched, setWatched] = useState(null);
  const rows = runs.data?.resources;
  if (!rows) return runs.error ? html`<${Problem} error=${runs.error} />` : html`<${Skeleton} rows=${2} />`;
  if (!rows.length) return html`<p class="muted">It has not run yet.</p>`;
  const more = runs.data.pagination.total_results - rows.length;
  return html`
    <table>
      <caption class="hidden">Runs of ${job.name}</caption>
      <thead>
        <tr>
          <th scope="col">State</th>
          <th scope="col">Due</th>
          <th scope="col">Started</th>
          <th scope="col">Took</th>
          <th scope="col"><span class="hidden">Log</span></th>
        </tr>
      </thead>
      <tbody>
        ${rows.map(
          r => html`
            <tr key=${r.guid}>
              <td>
                <${State} value=${r.state} />
                ${r.message && html`<span class=${r.state === 'FAILED' ? 'sub bad' : 'sub'}>${r.message}</span>`}
              </td>
              <td>${r.scheduled_time ? stamp(r.scheduled_time) : html`<span class="muted">asked for</span>`}</td>
              <td><${Time} at=${r.execution_start_time} /></td>
              <td>${took(r)}</td>
              <td>
                ${r.task_name &&
                html`
                  <button
                    type="button"
                    class="quiet"
                    aria-expanded=${watched === r.guid}
                    aria-label=${'Log of ' + r.task_name}
                    onClick=${() => setWatched(watched === r.guid ? null : r.guid)}
                  >
                    Log
                  </button>
                `}
              </td>
            </tr>
            ${watched === r.guid &&
            html`
              <tr class="inset">
                <td colspan="5">
                  <${LogOf}
                    app=${app}
                    label=${'Log of ' + r.task_name}
                    pass=${l => l.type === 'APP/TASK/' + r.task_name}
                    since=${r.created_at}
                  />
                </td>
              </tr>
            `}
          `,
        )}
      </tbody>
    </table>
    ${more > 0 && html`<p class="note">${more} more: <code>cupola jobs history ${quoted(job.name)} --app ${quoted(app.name)}</code></p>`}
  `;
}

const cronNote = 'Minute, hour, day of the month, month, day of the week; or @hourly, @daily, @weekly, @monthly';

function When({ expression, setExpression, zone, setZone, required }) {
  return html`
    <div class="fields">
      <${Field}
        label="Schedule"
        required=${required}
        value=${expression}
        onValue=${setExpression}
        placeholder="30 2 * * *"
        note=${cronNote}
      />
      <${Field} label="Time zone" value=${zone} onValue=${setZone} placeholder="UTC" note="A name like Europe/Berlin" />
    </div>
  `;
}

const scheduleFlags = (expression, zone) =>
  (expression && ` --schedule ${quoted(expression)}`) + (expression && zone && ` --time-zone ${quoted(zone)}`);

function Create({ app, reload, close }) {
  const [name, setName] = useState('');
  const [kind, setKind] = useState('command');
  const [command, setCommand] = useState('');
  const [url, setURL] = useState('');
  const [authorization, setAuthorization] = useState('');
  const [expression, setExpression] = useState('');
  const [zone, setZone] = useState('');
  const [memory, setMemory] = useState('');
  const [made, setMade] = useState(null); // where the job is, if its schedule was refused
  const calls = kind === 'url';
  const create = async () => {
    const path = calls ? '/calls' : '/jobs';
    const json = calls ? { name, url, auth_header: authorization } : { name, command, ...(memory && { memory_in_mb: Number(memory) }) };
    const job = await call('POST', `${path}?app_guid=${app.guid}`, { json });
    return `${path}/${job.guid}`;
  };
  const run = async () => {
    const at = made ?? (await create());
    setMade(at);
    if (expression) await schedule(at, { expression, zone });
    await reload();
  };
  const what = calls ? `--url ${quoted(url || 'URL')}` : quoted(command || 'COMMAND');
  const line =
    (calls && authorization ? 'CUPOLA_CALL_AUTHORIZATION=… ' : '') +
    `cupola jobs create ${quoted(app.name)} ${quoted(name || 'NAME')} ${what}` +
    `${scheduleFlags(expression, zone)}${!calls && memory ? ` -m ${memory}M` : ''}`;
  return html`
    <${Sheet}
      title=${`New job of ${app.name}`}
      close=${close}
      submit="Create"
      run=${run}
      lines=${[line]}
      disabled=${!name || !(calls ? url : command)}
    >
      <${Field}
        label="Name"
        required
        autofocus
        disabled=${Boolean(made)}
        value=${name}
        onValue=${setName}
        placeholder="nightly"
        note=${made ? 'The job is made; its schedule was refused' : 'Unique in the space'}
      />
      <${Field} as="select" label="What it does" disabled=${Boolean(made)} value=${kind} onValue=${setKind}>
        <option value="command">Run a command</option>
        <option value="url">Request a URL</option>
      <//>
      ${
        calls
          ? html`
              <${Field}
                label="URL"
                required
                disabled=${Boolean(made)}
                value=${url}
                onValue=${setURL}
                placeholder="https://app.example.com/cleanup"
                note="Gets a POST request without a body"
              />
              <${Field}
                label="Authorization"
                disabled=${Boolean(made)}
                value=${authorization}
                onValue=${setAuthorization}
                placeholder="Bearer …"
                note="A header of the request; it is not shown again"
              />
            `
          : html`
              <${Field}
                label="Command"
                required
                disabled=${Boolean(made)}
                value=${command}
                onValue=${setCommand}
                placeholder="bin/rake cleanup"
                note="Runs as a task, with the app's droplet and environment"
              />
            `
      }
      <${When} expression=${expression} setExpression=${setExpression} zone=${zone} setZone=${setZone} />
      ${
        !calls &&
        html`
          <${Field}
            label="Memory (MB)"
            type="number"
            min="1"
            disabled=${Boolean(made)}
            value=${memory}
            onValue=${setMemory}
            placeholder="the app's default"
          />
        `
      }
    <//>
  `;
}

function Schedule({ app, job, reload, close }) {
  const [expression, setExpression] = useState('');
  const [zone, setZone] = useState('');
  const run = async () => {
    await schedule(job.at, { expression, zone });
    await reload();
  };
  const line =
    `cupola jobs schedule ${quoted(job.name)} ${quoted(expression || '30 2 * * *')} --app ${quoted(app.name)}` +
    `${zone && ' --time-zone ' + quoted(zone)}`;
  return html`
    <${Sheet} title=${'Schedule ' + job.name} close=${close} submit="Schedule" run=${run} lines=${[line]} disabled=${!expression}>
      <${When} expression=${expression} setExpression=${setExpression} zone=${zone} setZone=${setZone} required />
    <//>
  `;
}
