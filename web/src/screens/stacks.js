// Stacks and the image cache: what is there and who uses it; pull, collect and remove.
import { html, useState, useRef, useEffect } from '../lib/html.js';
import { list } from '../lib/api.js';
import { useResource } from '../lib/resource.js';
import { isAdmin, readsMachine } from '../lib/roles.js';
import { operate, ofKind } from '../lib/operations.js';
import { bytes, quoted, count } from '../lib/format.js';
import { Head, Time, Problem, Section, Empty, Lines, Same, Field, Check, Button, Icon, Skeleton } from '../parts/basic.js';
import { Table, Waiting } from '../parts/table.js';
import { Meter } from '../parts/meter.js';
import { open, confirm, Sheet } from '../parts/dialog.js';
import { announce } from '../parts/live.js';

async function load(signal) {
  const [listing, rows] = await Promise.all([operate('stack/list', {}, undefined, signal), list('/v3/stacks?per_page=5000', { signal })]);
  const known = new Map(rows.resources.map(s => [s.name, s]));
  return { ...listing, Images: listing.Images ?? [], Stacks: (listing.Stacks ?? []).map(s => ({ ...s, row: known.get(s.Name) })) };
}

/** The screen /stacks. */
export default function Stacks() {
  if (!readsMachine()) return html`<${Head} title="Stacks" /><${Problem} error=${new Error('Only administrators see this page.')} />`;
  return html`<${Whole} />`;
}

function Whole() {
  const all = useResource(load, [], ofKind('stack build droplet task'));
  const d = all.data;
  return html`
    <${Head} title="Stacks and images">
      ${isAdmin() &&
      html`
        <button type="button" onClick=${() => open(Collect, { title: 'Remove unused images', reload: all.reload, wide: true })}>
          Remove unused…
        </button>
        <button type="button" class="primary" onClick=${() => open(Pull, { title: 'Pull an image', reload: all.reload })}>
          Pull an image…
        </button>
      `}
    <//>
    <${Waiting} of=${all} rows=${5} />
    ${d?.Kernels?.length > 0 &&
    html`
      <div class="notice">
        <${Icon} name="wait" />
        <span>
          ${count(
            d.Kernels.length,
            'app',
          )} were staged on an image with another major version of Linux. Restage and check them: ${d.Kernels.map(k => k.App).join(', ')}
        </span>
      </div>
    `}
    ${d && html`<${StackList} all=${d.Stacks} reload=${all.reload} /><${ImageList} all=${d.Images} reload=${all.reload} />`}
    <${Lines} lines=${['sudo cupola stack list', "cf curl /v1/admin/stack/list -X POST -d '{}'"]} />
  `;
}

const inspect = name => open(Inspect, { title: name, name, wide: true });

const remove = (name, what, reload) => () =>
  confirm({
    title: `Remove ${name}?`,
    submit: 'Remove',
    text: `The ${what} ${name} is removed from this machine. One that something uses stays, and the answer says what uses it.`,
    lines: [`sudo cupola stack rm ${quoted(name)}`],
    run: async () => {
      const r = (await operate('stack/rm', { Name: name })) ?? {};
      announce(r.Bytes ? `${bytes(r.Bytes)} freed` : 'Removed');
      await reload();
    },
  });

function StackList({ all, reload }) {
  const columns = [
    {
      title: 'Stack',
      cell: s => html`
        <button type="button" class="link strong" onClick=${() => inspect(s.Name)}>${s.Name}</button>
        ${s.Default && html` <span class="label">default</span>`}
        <span class="sub">${s.row?.description || s.Description}</span>
      `,
    },
    { title: 'Kind', cell: s => s.Kind },
    { title: 'CF_STACK', cell: s => s.Compat || '–' },
    {
      title: 'Origin',
      cell: s => s.Origin || html`<span class="muted">${['host', 'minifs'].includes(s.Kind) ? 'part of cupola' : '–'}</span>`,
    },
    { title: 'Size', num: true, cell: s => (s.Bytes ? bytes(s.Bytes) : '–') },
    isAdmin() && {
      title: 'Actions',
      quiet: true,
      cell: s =>
        !['host', 'minifs'].includes(s.Kind) &&
        html`<button type="button" onClick=${remove(s.Name, 'stack', reload)} aria-label=${'Remove the stack ' + s.Name}>Remove…</button>`,
    },
  ];
  return html`<${Section} title="Stacks"><${Table} caption="Stacks" columns=${columns} rows=${all} id=${s => s.Name} /><//>`;
}

const users = i =>
  [i.Pinned && 'apps', i.Mounted && 'containers', i.Stacks?.length > 0 && 'stack ' + i.Stacks.join(', ')].filter(Boolean).join(', ');

function ImageList({ all, reload }) {
  const sum = all.reduce((n, i) => n + i.DiskBytes, 0);
  const columns = [
    {
      title: 'Image',
      cell: i => html`
        <button type="button" class="link strong" onClick=${() => inspect(i.Digest)} title=${i.References?.join('\n')}>
          ${i.Reference}
        </button>
        <span class="sub mono">${i.Digest.slice(0, 19)}…</span>
        ${i.Warning && html`<span class="sub bad">${i.Warning}</span>`}
      `,
    },
    { title: 'Size on disk', num: true, cell: i => bytes(i.DiskBytes) },
    { title: 'Layers', num: true, cell: i => String(i.Layers?.length ?? '–') },
    { title: 'Needed by', cell: i => users(i) || html`<span class="muted">nothing</span>` },
    { title: 'Used', cell: i => html`<${Time} at=${i.Used} />` },
    { title: 'Pulled', cell: i => html`<${Time} at=${i.Pulled} />` },
    isAdmin() && {
      title: 'Actions',
      quiet: true,
      cell: i => html`
        <button type="button" onClick=${remove(i.Reference, 'image', reload)} aria-label=${'Remove the image ' + i.Reference}>
          Remove…
        </button>
      `,
    },
  ];
  return html`
    <${Section}
      title="Images"
      actions=${all.length > 0 &&
      html`<span class="muted">${count(all.length, 'image')}, ${bytes(sum)} with shared layers counted for each</span>`}
    >
      ${all.length
        ? html`<${Table} caption="Images in the cache" columns=${columns} rows=${all} id=${i => i.Digest} />`
        : html`
            <${Empty} title="The cache is empty." line="sudo cupola stack pull docker://docker.io/library/alpine:latest">
              Images are pulled when an app names one, or here.
            <//>
          `}
    <//>
  `;
}

function Inspect({ name, close }) {
  const d = useResource(signal => operate('stack/inspect', { Name: name }, undefined, signal), [name]);
  const s = d.data?.Stack,
    i = d.data?.Image;
  return html`
    <${Sheet} title=${s?.Name ?? i?.Reference ?? name} close=${close} lines=${[`sudo cupola stack inspect ${quoted(name)}`]}>
      <${Problem} error=${d.error} />
      ${!d.data && !d.error && html`<${Skeleton} rows=${3} />`}
      ${d.data?.Warnings?.map(w => html`<div key=${w} class="notice"><${Icon} name="wait" /><span>${w}</span></div>`)}
      ${d.data &&
      html`
        <dl class="pairs">
          ${s && html`<div><dt>Kind</dt><dd>${s.Kind}</dd></div><div><dt>CF_STACK</dt><dd>${s.Compat || '–'}</dd></div>`}
          ${i &&
          html`
            <div><dt>Digest</dt><dd class="mono">${i.Digest}</dd></div>
            <div><dt>References</dt><dd class="pre">${(i.References ?? []).join('\n')}</dd></div>
            ${i.Fallbacks?.length > 0 && html`<div><dt>Fallbacks</dt><dd class="pre">${i.Fallbacks.join('\n')}</dd></div>`}
            <div><dt>Size on disk</dt><dd>${bytes(i.DiskBytes)}</dd></div>
          `}
          <div>
            <dt>Used by</dt>
            <dd>
              ${d.data.Users?.length
                ? html`<ul>${d.data.Users.map(u => html`<li key=${u}>${u}</li>`)}</ul>`
                : html`<span class="muted">nothing</span>`}
            </dd>
          </div>
        </dl>
      `}
    <//>
  `;
}

/** The layers of a pull: {index: step} of "1 of 3 download". */
function layersOf(steps) {
  const layers = new Map();
  for (const s of steps) {
    const [, n, of, phase] = /^(\d+) of (\d+) (.*)$/.exec(s.Detail) ?? [];
    if (n) layers.set(Number(n), { n: Number(n), of: Number(of), phase, done: s.Done, total: s.Total });
  }
  return [...layers.values()].sort((a, b) => a.n - b.n);
}

function Layer({ layer: l }) {
  return html`
    <${Meter}
      label=${`Layer ${l.n} of ${l.of}: ${l.phase}`}
      used=${l.done}
      total=${l.total || null}
      text=${l.total ? `${bytes(l.done)} of ${bytes(l.total)}` : bytes(l.done)}
      warn=${2}
    />
  `;
}

function PullFields({ form, set, busy }) {
  return html`
    <${Field}
      label="Image"
      required
      placeholder="docker://docker.io/library/alpine:3"
      value=${form.Reference}
      onValue=${set('Reference')}
      spellcheck=${false}
      disabled=${busy}
      note="In a registry that users may name. Without a host: Docker Hub."
    />
    <div class="fields">
      <${Field} label="Stack name" value=${form.Name} onValue=${set('Name')} disabled=${busy} note="Optional: all apps may use it" />
      <${Field} label="CF_STACK" value=${form.Compat} onValue=${set('Compat')} disabled=${busy || !form.Name} note="For buildpacks" />
    </div>
    <div class="fields">
      <${Field} label="Registry user" autocomplete="off" value=${form.Username} onValue=${set('Username')} disabled=${busy} />
      <${Field}
        label="Registry password"
        type="password"
        autocomplete="new-password"
        value=${form.Password}
        onValue=${set('Password')}
        disabled=${busy}
      />
    </div>
  `;
}

/** Pulls an image, with a bar for each layer. Closing the dialog ends the pull; another one goes on where it ended. */
function Pull({ close, reload }) {
  const [form, setForm] = useState({ Reference: '', Name: '', Compat: '', Username: '', Password: '' });
  const [steps, setSteps] = useState(null);
  const [done, setDone] = useState(null);
  const [error, setError] = useState(null);
  const abort = useRef(new AbortController());
  useEffect(() => () => abort.current.abort(), []);
  const set = name => value => setForm({ ...form, [name]: value });
  const run = async () => {
    setError(null);
    setSteps([]);
    const json = Object.fromEntries(Object.entries(form).filter(([, v]) => v));
    try {
      setDone(
        await operate(
          'stack/pull',
          json,
          s => setSteps(all => [...all.filter(x => x.Step !== 'layer' || x.Detail.split(' ')[0] !== s.Detail.split(' ')[0]), s]),
          abort.current.signal,
        ),
      );
      announce('Pulled');
      await reload();
    } catch (e) {
      if (e.name !== 'AbortError') setError(e);
    }
  };
  const busy = steps && !done && !error,
    layers = layersOf((steps ?? []).filter(s => s.Step === 'layer')),
    warnings = (steps ?? []).filter(s => s.Step === 'warning');
  const line =
    `sudo cupola stack pull ${quoted(form.Reference || 'IMAGE')}${form.Name ? ' --name ' + quoted(form.Name) : ''}` +
    `${form.Compat ? ' --compat ' + quoted(form.Compat) : ''}` +
    `${form.Username ? ' --username ' + quoted(form.Username) : ''}`;
  return html`
    <form
      class="sheet"
      onSubmit=${e => {
        e.preventDefault();
        if (!busy) run();
      }}
      aria-label="Pull an image"
    >
      <header>
        <h2>Pull an image</h2>
        <button type="button" class="quiet" aria-label="Close" onClick=${close}><${Icon} name="close" /></button>
      </header>
      <div class="body">
        ${!done && html`<${PullFields} form=${form} set=${set} busy=${busy} />`}
        ${steps &&
        html`
          <div class="layers" aria-live="off">
            ${busy && !layers.length && html`<p role="status">Asking the registry…</p>`}
            ${layers.map(l => html`<${Layer} key=${l.n} layer=${l} />`)}
          </div>
        `}
        ${warnings.map(w => html`<div key=${w.Detail} class="notice"><${Icon} name="wait" /><span>${w.Detail}</span></div>`)}
        ${done &&
        html`
          <p role="status">
            <strong>Pulled ${done.Name}</strong> (
            ${bytes(done.Bytes)}
            )
            <br />
            <span class="mono muted">${done.Digest}</span>
          </p>
        `}
        <${Problem} error=${error} />
        <${Same} lines=${[line]} />
      </div>
      <footer>
        <button type="button" onClick=${close}>${done ? 'Close' : busy ? 'Stop' : 'Cancel'}</button>
        ${!done && html`<button type="submit" class="primary" aria-busy=${Boolean(busy)}>${error ? 'Try again' : 'Pull'}</button>`}
      </footer>
    </form>
  `;
}

/** Says what a collection would remove, before it removes it. */
function Collect({ close, reload }) {
  const [all, setAll] = useState(true);
  const [days, setDays] = useState('7');
  const [found, setFound] = useState(null);
  const [removed, setRemoved] = useState(null);
  const request = all ? { All: true } : { OlderThan: Number(days) * 24 * 3600 * 1e9 };
  const look = async () => setFound((await operate('stack/gc', { ...request, DryRun: true })) ?? {});
  const run = async () => {
    const r = (await operate('stack/gc', request)) ?? {};
    setRemoved(r);
    announce(`${count(r.Images?.length ?? 0, 'image')} removed`);
    await reload();
    return false;
  };
  const images = (removed ?? found)?.Images ?? [];
  const flags = all ? '--all' : `--older-than ${Number(days) * 24}h`;
  const columns = [
    { title: 'Image', cell: i => html`<span>${i.Reference}</span><span class="sub mono">${i.Digest.slice(0, 19)}…</span>` },
    { title: 'Size on disk', num: true, cell: i => bytes(i.DiskBytes) },
    { title: 'Used', cell: i => html`<${Time} at=${i.Used} />` },
  ];
  return html`
    <${Sheet}
      title="Remove unused images"
      close=${close}
      submit=${found && images.length && !removed ? `Remove ${count(images.length, 'image')}` : ''}
      run=${run}
      danger
      lines=${[`sudo cupola stack gc ${flags} --dry-run`, `sudo cupola stack gc ${flags}`]}
    >
      <p class="muted">Images that an app, a stack or a container needs, and those used within 15 minutes, always stay.</p>
      <div class="toolbar">
        <${Check}
          label="All unused images"
          checked=${all}
          onValue=${v => {
            setAll(v);
            setFound(null);
          }}
        />
        ${!all &&
        html`
          <${Field}
            label="Unused for days"
            type="number"
            min="1"
            value=${days}
            onValue=${v => {
              setDays(v);
              setFound(null);
            }}
          />
        `}
        <${Button} run=${look}>Show what would go<//>
      </div>
      ${(removed || found) &&
      (images.length
        ? html`
            <p role="status">
              ${removed ? 'Removed' : 'Would remove'} ${count(images.length, 'image')}
              , ${bytes((removed ?? found).Bytes)}
              :
            </p>
            <${Table} caption="Images" columns=${columns} rows=${images} id=${i => i.Digest} />
          `
        : html`<p role="status">Nothing would go.</p>`)}
    <//>
  `;
}
