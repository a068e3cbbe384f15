// A new app: from a folder or a zip that is dropped here, or from an image; with its manifest, and the staging log as it comes.
import { html, useState, useMemo, useEffect } from '../lib/html.js';
import { list } from '../lib/api.js';
import { useResource } from '../lib/resource.js';
import { mayIn } from '../lib/roles.js';
import { chosen, dropped, wanted } from '../lib/zip.js';
import { manifest, nameIn, withRoute } from '../lib/yaml.js';
import { push } from '../lib/push.js';
import { Link, go, base } from '../lib/router.js';
import { bytes, count, quoted } from '../lib/format.js';
import { Head, Field, Check, Problem, Skeleton, Empty, Same, Section, Icon } from '../parts/basic.js';
import { LogOf } from '../parts/loglines.js';
import { announce } from '../parts/live.js';

async function load(signal) {
  const o = { signal };
  const [spaces, stacks, packs] = await Promise.all([
    list('/v3/spaces?include=organization&order_by=name', o),
    list('/v3/stacks', o),
    list('/v3/buildpacks', o),
  ]);
  const orgs = new Map((spaces.included.organizations ?? []).map(g => [g.guid, g.name]));
  return {
    spaces: spaces.resources
      .filter(s => mayIn(s.guid).edit)
      .map(s => ({
        guid: s.guid,
        name: `${orgs.get(s.relationships.organization.data.guid)} / ${s.name}`,
        org: orgs.get(s.relationships.organization.data.guid),
        space: s.name,
      })),
    stacks: stacks.resources.map(s => s.name),
    packs: [...new Set(packs.resources.filter(p => p.enabled).map(p => p.name))],
  };
}

const blank = {
  name: '',
  memory: '',
  instances: '1',
  buildpack: '',
  stack: '',
  command: '',
  check: '',
  noRoute: false,
  image: '',
  username: '',
};

// The manifest that the form makes.
function written(f, image) {
  return manifest({
    name: f.name,
    instances: Number(f.instances) || undefined,
    memory: f.memory || undefined,
    buildpacks: !image && f.buildpack ? [f.buildpack] : undefined,
    stack: image ? undefined : f.stack || undefined,
    docker: image ? { image: f.image, username: f.username || undefined } : undefined,
    command: f.command || undefined,
    'health-check-type': f.check || undefined,
    'no-route': f.noRoute || undefined,
    'default-route': f.noRoute ? undefined : true,
  });
}

/** The screen /new. */
export default function NewApp() {
  const data = useResource(load, []);
  const [kind, setKind] = useState('files');
  const [source, setSource] = useState(null);
  const [form, setForm] = useState(blank);
  const [edited, setEdited] = useState(null);
  const [space, setSpace] = useState('');
  const [run, setRun] = useState(null);
  const set = name => value => setForm(f => ({ ...f, [name]: value }));
  const image = kind === 'image';
  const text = edited ?? written(form, image);
  const name = edited === null ? form.name : nameIn(edited);
  const target = data.data?.spaces.find(s => s.guid === space) ?? data.data?.spaces[0];
  const given = s => {
    setSource(s);
    setEdited(s?.manifest ?? null);
    if (s && !form.name) set('name')(s.name);
  };
  if (!data.data) return html`<${Head} title="New app" />${data.error ? html`<${Problem} error=${data.error} />` : html`<${Skeleton} />`}`;
  if (!target)
    return html`<${Head} title="New app" /><${Empty} title="You may not push to any space.">You need the role space developer in one.<//>`;
  if (run) return html`<${Progress} run=${run} again=${() => setRun(null)} />`;
  const missing = !name ? 'Give it a name.' : image ? (form.image ? '' : 'Name an image.') : source ? '' : 'Drop a folder or a zip.';
  const start = e => {
    e.preventDefault();
    if (!missing)
      setRun({
        space: target.guid,
        name,
        manifest: text,
        source: image ? { image: form.image, username: form.username, password: form.password } : source,
      });
  };
  const lines = [
    `cf target -o ${quoted(target.org)} -s ${quoted(target.space)}`,
    image
      ? `cf push ${quoted(name || 'NAME')} --docker-image ${quoted(form.image || 'IMAGE')}`
      : `cf push ${quoted(name || 'NAME')} -f manifest.yml`,
  ];
  return html`
    <${Head} title="New app" />
    <form class="newapp" onSubmit=${start}>
      <div class="panel stack">
        <fieldset class="choice row">
          <legend class="legend">From</legend>
          ${[
            ['files', 'Folder or zip', 'built by a buildpack'],
            ['image', 'Container image', 'from a registry'],
          ].map(
            ([v, t, note]) => html`
              <label key=${v}>
                <input type="radio" name="kind" checked=${kind === v} onChange=${() => setKind(v)} />
                <span><strong>${t}</strong> ${note}</span>
              </label>
            `,
          )}
        </fieldset>
        ${image
          ? html`<${Image} form=${form} set=${set} />`
          : html`<${Drop} source=${source} given=${given} /><${Samples} given=${given} open=${!source} />`}
        <${Field} as="select" label="Space" value=${target.guid} onValue=${setSpace}>
          ${data.data.spaces.map(s => html`<option key=${s.guid} value=${s.guid}>${s.name}</option>`)}
        <//>
        ${edited === null && html`<${Settings} form=${form} set=${set} data=${data.data} image=${image} />`}
      </div>
      <div class="stack">
        <${Section}
          title="Manifest"
          actions=${edited === null
            ? html`<button type="button" onClick=${() => setEdited(text)}>Edit</button>`
            : html`<button type="button" onClick=${() => setEdited(null)}>Use the form</button>`}
        >
          ${edited === null
            ? html`<pre class="panel manifest" tabindex="0" role="region" aria-label="Manifest">${text}</pre>`
            : html`
                <${Field}
                  as="textarea"
                  label=${source?.manifest === edited ? 'manifest.yml of the folder' : 'The manifest that is applied'}
                  rows="16"
                  spellcheck=${false}
                  value=${edited}
                  onValue=${setEdited}
                />
              `}
        <//>
        <div class="toolbar">
          <button type="submit" class="primary" disabled=${Boolean(missing)}><${Icon} name="upload" />Push${name ? ' ' + name : ''}</button>
          <span class="muted" role="status">${missing}</span>
        </div>
        <${Same} lines=${lines} />
      </div>
    </form>
  `;
}

function Settings({ form, set, data, image }) {
  return html`
    <div class="fields">
      <${Field} label="Name" required value=${form.name} onValue=${set('name')} spellcheck=${false} autocomplete="off" />
      <${Field} label="Instances" type="number" min="0" value=${form.instances} onValue=${set('instances')} />
      <${Field} label="Memory" value=${form.memory} onValue=${set('memory')} placeholder="256M" />
    </div>
    ${!image &&
    html`
      <div class="fields">
        <${Field} as="select" label="Buildpack" value=${form.buildpack} onValue=${set('buildpack')}>
          <option value="">detected</option>
          ${data.packs.map(p => html`<option key=${p}>${p}</option>`)}
        <//>
        <${Field} as="select" label="Stack" value=${form.stack} onValue=${set('stack')}>
          <option value="">default</option>
          ${data.stacks.map(s => html`<option key=${s}>${s}</option>`)}
        <//>
      </div>
    `}
    <div class="fields">
      <${Field}
        label="Start command"
        value=${form.command}
        onValue=${set('command')}
        placeholder=${image ? "the image's" : "the buildpack's"}
      />
      <${Field} as="select" label="Health check" value=${form.check} onValue=${set('check')}>
        <option value="">port</option>
        <option value="http">http</option>
        <option value="process">process</option>
      <//>
    </div>
    <${Check} label="No route: it serves no requests" checked=${form.noRoute} onValue=${set('noRoute')} />
  `;
}

function Image({ form, set }) {
  return html`
    <${Field}
      label="Image"
      value=${form.image}
      onValue=${set('image')}
      placeholder="registry.example.com/team/app:tag"
      spellcheck=${false}
    />
    <div class="fields">
      <${Field} label="Registry user" value=${form.username} onValue=${set('username')} note="For private images" autocomplete="off" />
      <${Field}
        label="Registry password"
        type="password"
        value=${form.password ?? ''}
        onValue=${set('password')}
        autocomplete="new-password"
      />
    </div>
  `;
}

// What was dropped or chosen, as a source: a zip as it is, or the files that cf push would upload.
async function sourceOf(files) {
  if (files.length === 1 && /\.(zip|jar|war)$/i.test(files[0].path))
    return { zip: files[0].file, count: 1, size: files[0].file.size, name: files[0].path.replace(/\.\w+$/, '') };
  const own = files.find(f => f.path === 'manifest.yml');
  const upload = await wanted(files);
  if (!upload.length) throw new Error('There is no file to upload.');
  const text = own && (await own.file.text());
  return {
    files: upload,
    count: upload.length,
    left: files.length - upload.length,
    size: upload.reduce((sum, f) => sum + f.file.size, 0),
    manifest: text ? withRoute(text) : null,
    name: text ? nameIn(text) : '',
  };
}

function Drop({ source, given }) {
  const [over, setOver] = useState(false);
  const [error, setError] = useState(null);
  const take = async files => {
    setError(null);
    try {
      const s = await sourceOf(files);
      given(s);
      announce(`${count(s.count, 'file')} chosen`);
    } catch (e) {
      setError(e);
      given(null);
    }
  };
  const drop = async e => {
    e.preventDefault();
    setOver(false);
    take(await dropped(e.dataTransfer));
  };
  return html`
    <div
      class=${'drop-zone' + (over ? ' over' : '')}
      onDragOver=${e => {
        e.preventDefault();
        setOver(true);
      }}
      onDragLeave=${() => setOver(false)}
      onDrop=${drop}
    >
      <${Icon} name="upload" />
      <p role="status">
        ${source
          ? html`
              <strong>${source.zip ? 'A zip' : count(source.count, 'file')}</strong>
              , ${bytes(source.size)}
              ${source.left ? html`<span class="muted"> (${source.left} left out, as cf push does)</span>` : ''}
            `
          : 'Drop a folder or a zip here, or choose one:'}
      </p>
      <div class="actions">
        <label class="button">
          Folder…
          <input class="hidden" type="file" webkitdirectory=${true} onChange=${e => take(chosen(e.currentTarget.files))} />
        </label>
        <label class="button">
          Zip…
          <input
            class="hidden"
            type="file"
            accept=".zip,.jar,.war"
            onChange=${e => take([...e.currentTarget.files].map(file => ({ path: file.name, file })))}
          />
        </label>
      </div>
      <${Problem} error=${error} />
    </div>
  `;
}

// The small apps that the daemon brings, to begin with.
function Samples({ given, open }) {
  const { data, error } = useResource(async signal => (await fetch(base + '/samples', { signal })).json(), []);
  const [failed, setFailed] = useState(null);
  const choose = async s => {
    setFailed(null);
    try {
      const answer = await fetch(`${base}/samples/${s.name}.zip`);
      if (!answer.ok) throw new Error(`The sample could not be loaded: status ${answer.status}.`);
      const zip = await answer.blob();
      given({ zip, count: 1, size: zip.size, name: nameIn(s.manifest), manifest: withRoute(s.manifest) });
      announce(`The sample ${s.name} is chosen`);
    } catch (e) {
      setFailed(e);
    }
  };
  return html`
    <details class="samples" open=${open}>
      <summary>Or begin with a sample</summary>
      <ul>
        ${data?.map(
          s => html`
            <li key=${s.name}><button type="button" onClick=${() => choose(s)}>${s.name}</button> <span class="muted">${s.about}</span></li>
          `,
        )}
      </ul>
      <${Problem} error=${error ?? failed} />
    </details>
  `;
}

const steps = [
  ['manifest', 'Apply the manifest'],
  ['pack', 'Make a zip of the files'],
  ['upload', 'Upload'],
  ['stage', 'Stage'],
  ['start', 'Start'],
];

function Progress({ run, again }) {
  const [at, setAt] = useState({ step: 'manifest', note: '' });
  const [made, setMade] = useState({});
  const [error, setError] = useState(null);
  useEffect(() => {
    push(run, (step, note = '', more = {}) => {
      setAt({ step, note });
      setMade(m => ({ ...m, ...more }));
      announce(step === 'done' ? `${run.name} runs` : (steps.find(s => s[0] === step)?.[1] ?? ''));
    }).catch(setError);
  }, [run]);
  const shown = steps.filter(s => s[0] !== 'pack' || run.source.files),
    now = at.step === 'done' ? shown.length : shown.findIndex(s => s[0] === at.step);
  return html`
    <${Head} title=${`Push ${run.name}`} />
    <ol class="steps">
      ${shown.map(
        ([step, label], n) => html`
          <li
            key=${step}
            class=${n < now ? 'ok' : n === now ? (error ? 'bad' : 'wait') : ''}
            aria-current=${n === now ? 'step' : undefined}
          >
            <${Icon} name=${n < now ? 'ok' : n === now ? (error ? 'bad' : 'wait') : 'none'} />
            <span>${label}${n === now && at.note ? ' ' + at.note : ''}</span>
          </li>
        `,
      )}
    </ol>
    <${Problem} error=${error} />
    <div class="toolbar">
      ${at.step === 'done' && html`<${Link} to=${'/apps/' + made.app.guid} class="button primary">Open ${run.name}<//>`}
      ${error &&
      html`
        <button type="button" onClick=${again}>Change and try again</button>
        ${made.app && html`<${Link} to=${`/apps/${made.app.guid}/logs`} class="button">Its log<//>`}
      `}
    </div>
    ${made.note && html`<p class="muted">Upload${made.note}.</p>`}
    ${made.since &&
    html`
      <${Section} title="Log"><${LogOf} app=${made.app} label="Staging and start" pass=${l => l.source !== 'RTR'} since=${made.since} /><//>
    `}
  `;
}
