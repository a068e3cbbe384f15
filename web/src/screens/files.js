// The files of an app's droplet, read-only: the browser unpacks what cf download-droplet gets.
import { html, useState, useMemo } from '../lib/html.js';
import { get, call } from '../lib/api.js';
import { useResource, ofApp } from '../lib/resource.js';
import { entries, unzipped } from '../lib/tar.js';
import { bytes, quoted, count } from '../lib/format.js';
import { place, setQuery, base } from '../lib/router.js';
import { save } from '../lib/save.js';
import { Problem, Skeleton, Lines, Button, Empty, Icon, Time } from '../parts/basic.js';
import { Commands } from '../parts/commands.js';

const most = 512 * 1024 * 1024,
  shown = 256 * 1024;

/** The tab Files. */
export default function Files({ app }) {
  const droplet = useResource(
    signal =>
      get(`/v3/apps/${app.guid}/droplets/current`, { signal }).catch(e => {
        if (e.status === 404) return null;
        throw e;
      }),
    [app.guid],
    ofApp(app.guid, 'droplet'),
  );
  const d = droplet.data;
  if (d === undefined) return droplet.error ? html`<${Problem} error=${droplet.error} />` : html`<${Skeleton} rows=${3} />`;
  if (d === null) return html`<${Empty} title="The app has no droplet." line=${`cf push ${quoted(app.name)}`} />`;
  if (app.lifecycle.type === 'docker')
    return html`<${Empty} title="The app runs an image, which has no droplet.">The image is ${d.image}.<//>`;
  return html`
    <${Droplet} key=${d.guid} app=${app} d=${d} />
    <${Lines} lines=${[fetching(app)]} />
  `;
}

const fetching = app => `cf download-droplet ${quoted(app.name)} --path droplet.tgz`;

function Droplet({ app, d }) {
  const [files, setFiles] = useState(null);
  const [read, setRead] = useState(0);
  const load = async () => {
    const answer = await call('GET', `/v3/droplets/${d.guid}/download`, { whole: true });
    setFiles(entries(await unzipped(answer.body, most, setRead)));
  };
  const where = `${base}/api/v3/droplets/${d.guid}/download`;
  return html`
    <div class="toolbar">
      <span>Droplet of <${Time} at=${d.created_at} /></span>
      ${!files && html`<${Button} kind="primary" run=${load}>List its files<//>`}
      <a class="button" href=${where} download=${app.name + '.tgz'}>Download</a>
      <${Commands}
        of=${'the droplet of ' + app.name}
        lines=${[!files && ['List its files', `${fetching(app)} && tar tvzf droplet.tgz`], ['Download', fetching(app)]]}
      />
      ${!files && read > 0 && html`<span class="muted" role="status">${bytes(read)} unpacked</span>`}
      ${files &&
      html`
        <span class="muted" role="status">
          ${count(files.filter(f => f.kind === 'file').length, 'file')}
          , ${bytes(files.reduce((sum, f) => sum + (f.kind === 'file' ? f.size : 0), 0))}
        </span>
      `}
    </div>
    ${!files && html`<p class="note">The droplet is unpacked in this browser; an instance's own files are in the terminal.</p>`}
    ${files && html`<${Tree} app=${app} files=${files} />`}
  `;
}

// What is directly in a folder: its files, and the folders that anything below names.
function within(files, folder) {
  const prefix = folder ? folder + '/' : '',
    by = new Map();
  for (const f of files) {
    if (!f.path.startsWith(prefix) || f.path === folder) continue;
    const rest = f.path.slice(prefix.length),
      cut = rest.indexOf('/');
    const name = cut < 0 ? rest : rest.slice(0, cut);
    if (cut >= 0 || f.kind === 'folder') {
      if (!by.has(name)) by.set(name, { name, folder: true });
    } else by.set(name, { name, file: f });
  }
  return [...by.values()].sort((a, b) => Boolean(b.folder) - Boolean(a.folder) || a.name.localeCompare(b.name));
}

const mode = m =>
  [6, 3, 0]
    .map(s =>
      'rwx'
        .split('')
        .map((c, n) => ((m >> s) & (4 >> n) ? c : '-'))
        .join(''),
    )
    .join('');

function Tree({ app, files }) {
  const at = place.value.query.get('path') ?? '';
  const file = useMemo(() => files.find(f => f.path === at && f.kind === 'file'), [files, at]);
  const folder = file ? at.split('/').slice(0, -1).join('/') : at;
  const rows = useMemo(() => within(files, folder), [files, folder]);
  const parts = at ? at.split('/') : [];
  const go = path => setQuery({ path: path || null });
  const join = name => (folder ? folder + '/' : '') + name;
  return html`
    <nav class="path" aria-label="Folder">
      <button type="button" class="quiet" onClick=${() => go('')}>droplet</button>
      ${parts.map(
        (p, n) => html`
          <span key=${n}>
            /
            <button
              type="button"
              class="quiet"
              aria-current=${n === parts.length - 1 ? 'page' : undefined}
              onClick=${() => go(parts.slice(0, n + 1).join('/'))}
            >
              ${p}
            </button>
          </span>
        `,
      )}
    </nav>
    ${file
      ? html`<${Content} app=${app} file=${file} />`
      : html`
          <div class="scroll">
            <table>
              <caption class="hidden">Files</caption>
              <thead><tr><th scope="col">Name</th><th scope="col" class="num">Size</th><th scope="col">Mode</th></tr></thead>
              <tbody>
                ${rows.map(
                  r => html`
                    <tr key=${r.name} data-row>
                      <th scope="row">
                        <button
                          type="button"
                          class="quiet file"
                          disabled=${Boolean(r.file) && r.file.kind !== 'file'}
                          onClick=${() => go(join(r.name))}
                        >
                          <${Icon} name=${r.folder ? 'next' : 'audit'} />
                          ${r.name}
                          ${r.folder ? '/' : ''}
                        </button>
                        ${r.file?.kind === 'symlink' && html`<span class="muted"> → ${r.file.target}</span>`}
                      </th>
                      <td class="num">${r.file ? bytes(r.file.size) : ''}</td>
                      <td class="mono">${r.file ? mode(r.file.mode) : ''}</td>
                    </tr>
                  `,
                )}
              </tbody>
            </table>
          </div>
        `}
  `;
}

function Content({ app, file }) {
  const head = file.data.subarray(0, shown);
  const binary = head.subarray(0, 8192).includes(0);
  return html`
    <div class="toolbar">
      <span class="mono">${bytes(file.size)} ${mode(file.mode)}</span>
      <button type="button" onClick=${() => save(file.path.split('/').at(-1), [file.data])}>Download this file</button>
      <${Commands} of=${file.path} lines=${[['Download this file', `${fetching(app)} && tar xzf droplet.tgz ./${quoted(file.path)}`]]} />
    </div>
    ${binary
      ? html`<p class="muted">This file is not text.</p>`
      : html`<pre class="panel content" tabindex="0" role="region" aria-label=${file.path}>${new TextDecoder().decode(head)}</pre>`}
    ${!binary && file.size > shown && html`<p class="note">Only the first ${bytes(shown)} are shown.</p>`}
  `;
}
