// The machine that the daemon runs on: what doctor finds, with cures, and what it uses now.
import { html, useState, useRef } from '../lib/html.js';
import { get } from '../lib/api.js';
import { useResource, useEvery } from '../lib/resource.js';
import { readsMachine } from '../lib/roles.js';
import { operate } from '../lib/operations.js';
import { bytes, percent, duration, count, stamp } from '../lib/format.js';
import { Head, State, Time, Problem, Section, Lines, Line, Button } from '../parts/basic.js';
import { Table, Waiting } from '../parts/table.js';
import { Meter } from '../parts/meter.js';
import { Spark } from '../parts/spark.js';
import { Commands } from '../parts/commands.js';

const kept = 100; // samples of the courses

/** The screen /machine. */
export default function Machine() {
  if (!readsMachine()) return html`<${Head} title="Machine" /><${Problem} error=${new Error('Only administrators see this page.')} />`;
  return html`<${Whole} />`;
}

function Whole() {
  const courses = useRef({ cpu: [], memory: [] });
  const machine = useResource(async signal => {
    const m = await get('/v1/machine', { signal });
    for (const [name, value] of [
      ['cpu', m.cpu_used],
      ['memory', m.memory.total_bytes - m.memory.available_bytes],
    ])
      courses.current[name] = [...courses.current[name], value].slice(-kept);
    return m;
  }, []);
  useEvery(3000, machine.reload, []);
  const m = machine.data;
  return html`
    <${Head}
      title="Machine"
      note=${m && html`<span class="muted">${m.hostname} · Linux ${m.kernel} · cgroup v${m.cgroup_version}</span>`}
    />
    <${Waiting} of=${machine} rows=${3} />
    ${m && html`<${Use} m=${m} courses=${courses.current} />`}
    <${Alerts} />
    <${Checks} />
    ${m && html`<${Daemon} m=${m} />`}
    <${Leaks} />
    <${Keys} />
    <${Lines} lines=${['sudo cupola doctor', 'cf curl /v1/machine', 'cf curl /v1/machine/checks', 'cf curl /v1/alerts']} />
  `;
}

function Use({ m, courses }) {
  const memory = m.memory.total_bytes - m.memory.available_bytes,
    swap = m.memory.swap_total_bytes - m.memory.swap_free_bytes;
  const disk = m.disk.total_bytes - m.disk.available_bytes,
    inodes = m.disk.inodes - m.disk.inodes_free;
  return html`
    <div class="tiles">
      <section class="panel tile" aria-label="CPU">
        <${Meter} label="CPU" used=${m.cpu_used} total=${1} text=${`${percent(m.cpu_used)} of ${count(m.cpus, 'core')}`} />
        <${Spark} values=${courses.cpu} label=${`CPU, now ${percent(m.cpu_used)}`} />
        <p class="muted">Load ${m.load.map(l => l.toFixed(2)).join('  ')}</p>
      </section>
      <section class="panel tile" aria-label="Memory">
        <${Meter}
          label="Memory"
          used=${memory}
          total=${m.memory.total_bytes}
          text=${`${bytes(memory)} of ${bytes(m.memory.total_bytes)}`}
        />
        <${Spark} values=${courses.memory} label=${`Memory, now ${bytes(memory)}`} />
        <p class="muted">
          The daemon ${bytes(m.memory.daemon_bytes)}
          ${m.memory.swap_total_bytes ? ` · swap ${bytes(swap)} of ${bytes(m.memory.swap_total_bytes)}` : ' · no swap'}
        </p>
      </section>
      <section class="panel tile" aria-label="Disk">
        <${Meter}
          label="Disk"
          used=${disk}
          total=${m.disk.total_bytes}
          text=${`${bytes(m.disk.available_bytes)} free of ${bytes(m.disk.total_bytes)}`}
        />
        ${m.disk.inodes > 0 &&
        html`
          <${Meter} label="Inodes" used=${inodes} total=${m.disk.inodes} text=${`${percent(m.disk.inodes_free / m.disk.inodes)} free`} />
        `}
        <p class="muted mono">${m.disk.path}</p>
      </section>
      <section class="panel tile" aria-label="Pressure"><${PSI} pressure=${m.pressure} /></section>
    </div>
  `;
}

function PSI({ pressure }) {
  const names = ['cpu', 'memory', 'io'].filter(n => pressure[n]);
  if (!names.length)
    return html`
      <p><strong>Pressure</strong></p>
      <p class="muted">This kernel does not tell how long tasks wait (PSI). Boot it with psi=1.</p>
    `;
  return html`
    <table class="plain">
      <caption>Pressure: tasks that wait</caption>
      <thead>
        <tr>
          <th scope="col">Resource</th>
          <th scope="col" class="num">10 s</th>
          <th scope="col" class="num">1 min</th>
          <th scope="col" class="num">5 min</th>
        </tr>
      </thead>
      <tbody>
        ${names.map(n => {
          const p = pressure[n].find(x => x.kind === 'some');
          return html`
            <tr key=${n}>
              <th scope="row">${n === 'io' ? 'I/O' : n === 'cpu' ? 'CPU' : n}</th>
              ${[p?.avg10, p?.avg60, p?.avg300].map(
                (v, k) => html`<td key=${k} class=${'num' + (v > 20 ? ' bad' : '')}>${v?.toFixed(1)} %</td>`,
              )}
            </tr>
          `;
        })}
      </tbody>
    </table>
  `;
}

function Alerts() {
  const alerts = useResource(signal => get('/v1/alerts', { signal }), []);
  const targets = useResource(signal => get('/v1/alerts/targets', { signal }), []);
  useEvery(10000, alerts.reload, []);
  const firing = (alerts.data?.resources ?? []).filter(a => a.state === 'FIRING');
  const failing = (targets.data?.resources ?? []).filter(t => t.failing_since);
  const columns = [
    { title: 'Rule', cell: a => html`<strong>${a.rule}</strong>` },
    { title: 'Severity', cell: a => html`<span class=${a.severity === 'critical' ? 'bad' : ''}>${a.severity}</span>` },
    { title: 'Since', cell: a => html`<${Time} at=${a.since} />` },
    {
      title: 'What',
      cell: a => html`
        <span class="pre">${a.subject}: ${a.text}</span>
        ${a.silenced && html` <span class="muted">(silenced)</span>`}
        ${a.mend && html`<${Line} text=${a.mend} label="Copy the cure" />`}
      `,
    },
  ];
  const lines = [
    ['List alerts', 'sudo cupola alerts list --all'],
    ['Send them somewhere', 'sudo cupola alerts add-target NAME --webhook URL'],
    ['Silence them', 'sudo cupola alerts silence --for 2h'],
  ];
  return html`
    <${Section} title="Alerts" actions=${html`<${Commands} of="alerts" lines=${lines} />`}>
      <${Waiting} of=${alerts} rows=${1} />
      ${alerts.data &&
      (firing.length
        ? html`<${Table} caption="Alerts that fire" columns=${columns} rows=${firing} id=${a => a.guid} kind="alerts" />`
        : html`<p><${State} value="OK" /> No alert fires.</p>`)}
      ${targets.data?.resources.length === 0 && html`<p class="muted">Alerts go nowhere yet: add a webhook or a mail address.</p>`}
      ${failing.map(t => html`<p key=${t.guid} class="bad">The target ${t.name} takes no messages: ${t.failure}</p>`)}
    <//>
  `;
}

const order = { fail: 0, warn: 1, ok: 2 };

function Checks() {
  const checks = useResource(signal => get('/v1/machine/checks', { signal }), []);
  const [all, setAll] = useState(false);
  const results = [...(checks.data?.results ?? [])].sort((a, b) => order[a.level] - order[b.level]);
  const bad = results.filter(r => r.level !== 'ok'),
    shown = all ? results : bad;
  const note = checks.data && `${results.length - bad.length} of ${results.length} are fine`;
  const columns = [
    { title: 'Check', cell: r => html`<strong>${r.name}</strong>` },
    { title: 'Result', cell: r => html`<${State} value=${r.level} />` },
    {
      title: 'Finding',
      cell: r => html`<span class="pre">${r.detail}</span>${r.fix && html`<${Line} text=${r.fix} label="Copy the cure" />`}`,
    },
  ];
  return html`
    <${Section}
      title="Checks"
      actions=${html`
        ${note && html`<span class="muted" role="status">${note}, <${Time} at=${checks.data.checked_at} /></span>`}
        <button type="button" aria-pressed=${all} onClick=${() => setAll(!all)}>All checks</button>
        <${Button} run=${checks.reload}>Check again<//>
        <${Commands} of="the checks of this machine" lines=${[['Check again', 'sudo cupola doctor']]} />
      `}
    >
      <${Waiting} of=${checks} rows=${3} />
      ${checks.data &&
      (shown.length
        ? html`<${Table} caption="Checks of the machine" columns=${columns} rows=${shown} id=${r => r.name} kind="checks" />`
        : html`<p><${State} value="OK" /> All checks are fine.</p>`)}
    <//>
  `;
}

function Daemon({ m }) {
  return html`
    <${Section} title="Daemon">
      <dl class="facts">
        <div><dt>Version</dt><dd>${m.version}</dd></div>
        <div><dt>Up for</dt><dd title=${stamp(m.started_at)}>${duration((new Date(m.now) - new Date(m.started_at)) / 1000)}</dd></div>
        <div><dt>Containers</dt><dd>${m.containers}</dd></div>
        <div><dt>Database</dt><dd>${bytes(m.database.bytes)} <span class="muted">+ ${bytes(m.database.wal_bytes)} log</span></dd></div>
        <div>
          <dt>Last automatic backup</dt>
          <dd>
            ${m.last_backup
              ? html`
                  <${Time} at=${m.last_backup.made_at} /> <span class="muted">
                    ${bytes(m.last_backup.bytes)}
                    , ${m.last_backup.kept} kept
                  </span>
                `
              : html`<span class="bad">none yet</span>`}
          </dd>
        </div>
        <div><dt>Goroutines</dt><dd>${m.goroutines}</dd></div>
        <div><dt>Open files</dt><dd>${m.open_files}</dd></div>
      </dl>
      <${Lines} lines=${['sudo cupola backup FILE', 'sudo cupola verify FILE']} title="Back up all data on the command line" />
    <//>
  `;
}

function Leaks() {
  const [found, setFound] = useState(null);
  return html`
    <${Section}
      title="Leaks"
      actions=${html`
        <${Button} run=${async () => setFound((await operate('doctor')) ?? [])}>Look for leaks<//>
        <${Commands} of="leaks" lines=${[['Look for leaks', 'sudo cupola doctor --leaks']]} />
      `}
    >
      ${found === null
        ? html`<p class="muted">Mounts, links, cgroups and files of this daemon that belong to no container.</p>`
        : found.length
          ? html`
              <ul class="plainlist">${found.map(l => html`<li key=${l} class="mono">${l}</li>`)}</ul>
              <${Line} text="sudo cupola doctor --leaks" />
            `
          : html`<p role="status"><${State} value="OK" /> Nothing leaked.</p>`}
    <//>
  `;
}

function Keys() {
  const keys = useResource(signal => operate('token-keys/list', {}, undefined, signal), []);
  const columns = [
    { title: 'Key', cell: k => html`<span class="mono">${k.ID}</span>` },
    {
      title: 'Use',
      cell: k => (k.Until.startsWith('0001') ? 'signs tokens' : html`<span class="muted">verifies tokens until ${stamp(k.Until)}</span>`),
    },
    { title: 'Made', cell: k => html`<${Time} at=${k.Made} />` },
  ];
  return html`
    <${Section} title="Keys of tokens">
      <${Problem} error=${keys.error} />
      ${keys.data?.length > 0 && html`<${Table} caption="Keys that verify tokens" columns=${columns} rows=${keys.data} id=${k => k.ID} />`}
      <${Lines} lines=${['sudo cupola token-keys list', 'sudo cupola token-keys rotate']} title="Replace the key on the command line" />
    <//>
  `;
}
