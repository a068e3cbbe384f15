// BOSH deployments: the list, the director's tasks, persistent disks, and a deploy with the diff shown before.
import { html, useState } from '../lib/html.js';
import { get, call } from '../lib/api.js';
import { useResource } from '../lib/resource.js';
import { ofKind } from '../lib/operations.js';
import { Link, go } from '../lib/router.js';
import { megabytes, duration, quoted } from '../lib/format.js';
import { isAdmin } from '../lib/roles.js';
import { Head, State, Time, Problem, Section, Empty, Lines, Field, Check } from '../parts/basic.js';
import { Table, Waiting } from '../parts/table.js';
import { TextDiff } from '../parts/textdiff.js';
import { open, confirm, Sheet } from '../parts/dialog.js';
import { announce } from '../parts/live.js';

/** The state of a director's task as the bosh CLI has it. */
export const taskState = t => String(t.state);

const zero = t => !t || t.startsWith('0001');

/** The director's last tasks, of one deployment or of all. */
export function Tasks({ of }) {
  const all = useResource(signal => get('/v1/deployment_tasks', { signal }), [], ofKind('bosh_task bosh_deployment'));
  const rows = all.data?.filter(t => !of || t.deployment === of);
  const columns = [
    {
      title: 'Task',
      cell: t => html`
        <${Link} to=${'/bosh/tasks/' + t.id} class="strong">${t.id} ${t.kind}<//>
        ${!of && html`<span class="sub">${t.deployment}</span>`}
      `,
    },
    { title: 'State', cell: t => html`<${State} value=${taskState(t)} />` },
    { title: 'User', cell: t => t.user },
    { title: 'Asked for', cell: t => html`<${Time} at=${t.created_at} />` },
    {
      title: 'Took',
      cell: t => (zero(t.started_at) || zero(t.ended_at) ? '–' : duration((new Date(t.ended_at) - new Date(t.started_at)) / 1000)),
    },
    { title: 'Result', cell: t => html`<span class="pre">${t.result || '–'}</span>` },
  ];
  return html`
    <${Section} title="Tasks">
      <${Waiting} of=${all} rows=${2} />
      ${rows &&
      (rows.length
        ? html`<${Table} caption="Tasks" columns=${columns} rows=${rows} id=${t => t.id} />`
        : html`<p class="muted">There are no tasks.</p>`)}
    <//>
  `;
}

/** The screen /bosh. */
export default function BOSH() {
  const all = useResource(signal => get('/v1/deployments', { signal }), [], ofKind('bosh_deployment bosh_task'));
  const columns = [
    { title: 'Deployment', cell: d => html`<${Link} to=${'/bosh/deployments/' + encodeURIComponent(d.name)} class="strong">${d.name}<//>` },
    { title: 'Version', num: true, cell: d => String(d.version) },
    { title: 'Deployed', cell: d => html`<${Time} at=${d.updated_at} />` },
  ];
  return html`
    <${Head} title="Deployments">
      ${isAdmin() &&
      html`<button type="button" class="primary" onClick=${() => open(Deploy, { title: 'Deploy', wide: true })}>Deploy…</button>`}
    <//>
    <${Waiting} of=${all} />
    ${all.data?.length === 0 &&
    html`
      <${Empty} title="There are no BOSH deployments." line="cupola deployment deploy -f manifest.yml">
        A manifest describes groups of instances, their jobs and disks.
      <//>
    `}
    ${all.data?.length > 0 && html`<${Table} caption="BOSH deployments" columns=${columns} rows=${all.data} />`}
    <${Tasks} />
    <${Disks} />
    <${Lines} lines=${['cupola deployment ls', 'cupola deployment tasks', 'cupola deployment disks']} />
  `;
}

function Disks() {
  const all = useResource(signal => get('/v1/disks', { signal }), [], ofKind('bosh_deployment bosh_task'));
  const remove = d => () =>
    confirm({
      title: 'Delete this disk?',
      submit: 'Delete',
      text:
        `The persistent disk of ${d.deployment} ${d.group}/${d.index} (${megabytes(d.size_mb)}) ` +
        `and all data on it are deleted. This cannot be undone.`,
      lines: [`cf curl /v1/disks/${d.guid} -X DELETE`],
      run: async () => {
        await call('DELETE', '/v1/disks/' + d.guid);
        await all.reload();
      },
    });
  const columns = [
    { title: 'Disk of', cell: d => html`<strong>${d.deployment} ${d.group}/${d.index}</strong>` },
    { title: 'AZ', cell: d => d.az || '–' },
    { title: 'Size', num: true, cell: d => megabytes(d.size_mb) },
    { title: 'State', cell: d => (d.orphaned ? html`<${State} value="ORPHANED" />` : 'attached') },
    isAdmin() && {
      title: 'Actions',
      quiet: true,
      cell: d =>
        d.orphaned &&
        html`
          <button type="button" onClick=${remove(d)} aria-label=${`Delete the disk of ${d.deployment} ${d.group}/${d.index}`}>
            Delete…
          </button>
        `,
    },
  ];
  if (!all.data?.length && !all.error) return null;
  return html`
    <${Section} title="Persistent disks">
      <${Problem} error=${all.error} />
      ${all.data && html`<${Table} caption="Persistent disks" columns=${columns} rows=${all.data} />`}
    <//>
  `;
}

const nameOf = manifest => /^name:\s*["']?([^"'\s#]+)/m.exec(manifest)?.[1] ?? '';

/** Deploys a manifest: first what is wrong with it and what it changes, then the task. */
export function Deploy({ close, manifest: before = '', name }) {
  const [manifest, setManifest] = useState(before);
  const [recreate, setRecreate] = useState(false);
  const [review, setReview] = useState(null);
  const check = async () => {
    const deployed = await get('/v1/deployments/' + encodeURIComponent(nameOf(manifest))).then(
      d => d.manifest,
      e => {
        if (e.status === 404) return '';
        throw e;
      },
    );
    const { findings } = await call('POST', '/v1/deployments', { json: { manifest, dry_run: true } });
    setReview({ deployed, findings: findings ?? [] });
  };
  const deploy = async () => {
    const t = await call('POST', '/v1/deployments', { json: { manifest, recreate } });
    announce('The task has begun');
    go('/bosh/tasks/' + t.id);
  };
  const file = async e => {
    const [f] = e.currentTarget.files;
    if (f) {
      setManifest(await f.text());
      setReview(null);
    }
  };
  const run = async () => {
    if (review) return deploy();
    await check();
    return false;
  };
  return html`
    <${Sheet}
      title=${name ? 'Deploy ' + name : 'Deploy'}
      close=${close}
      submit=${review ? 'Deploy' : 'Review'}
      run=${run}
      disabled=${!manifest.trim()}
      lines=${[`cupola deployment diff -f manifest.yml`, `cupola deployment deploy -f manifest.yml${recreate ? ' --recreate' : ''}`]}
    >
      ${review
        ? html`
            <${Findings} findings=${review.findings} />
            <h3>${review.deployed ? 'What changes in the manifest' : 'A new deployment'} <span class="muted">${nameOf(manifest)}</span></h3>
            <${TextDiff} from=${review.deployed} to=${manifest} />
            <${Check} label="Create all instances again, with new ephemeral disks" checked=${recreate} onValue=${setRecreate} />
            <button type="button" onClick=${() => setReview(null)}>Change the manifest</button>
          `
        : html`
            <div class="field">
              <label for="manifest-file">From a file</label>
              <input id="manifest-file" type="file" accept=".yml,.yaml" onChange=${file} />
            </div>
            <${Field}
              label="Manifest"
              as="textarea"
              rows="16"
              required
              spellcheck=${false}
              value=${manifest}
              onValue=${setManifest}
              placeholder="name: …"
            />
          `}
    <//>
  `;
}

function Findings({ findings }) {
  if (!findings.length) return html`<p role="status"><${State} value="OK" /> The manifest has no errors.</p>`;
  return html`
    <ul class="plainlist">
      ${findings.map(
        (f, n) => html`
          <li key=${n}>
            <${State} value=${f.level === 'error' ? 'FAIL' : f.level === 'warning' ? 'WARN' : 'OK'} title=${f.level} /> <span class="mono">
              ${f.path}
            </span>
            ${f.line ? ` line ${f.line}` : ''}
            : ${f.what}
            ${f.mend && html`<span class="sub">${f.mend}</span>`}
          </li>
        `,
      )}
    </ul>
  `;
}
