// Cells: what each has and uses, and what runs there; placement pools, which choose cells for spaces.
import { html, useState } from '../lib/html.js';
import { get, list, call } from '../lib/api.js';
import { useResource, useEvery } from '../lib/resource.js';
import { ofKind } from '../lib/operations.js';
import { megabytes, quoted, count } from '../lib/format.js';
import { isAdmin } from '../lib/roles.js';
import { Link } from '../lib/router.js';
import { Head, State, Section, Empty, Lines, Field, Check, Time, Problem } from '../parts/basic.js';
import { Table, Waiting, useFilter } from '../parts/table.js';
import { Meter } from '../parts/meter.js';
import { open, confirm, Sheet } from '../parts/dialog.js';
import { announce } from '../parts/live.js';

async function loadCells(signal) {
  const cells = await get('/v1/cells', { signal });
  return cells.sort((a, b) => a.cell_id.localeCompare(b.cell_id));
}

/** The screen /cells. */
export default function Cells() {
  const cells = useResource(loadCells, [], ofKind('cell instance task build'));
  useEvery(5000, cells.reload, []);
  return html`
    <${Head} title="Cells" />
    <${Waiting} of=${cells} />
    ${cells.data && html`<ul class="cells">${cells.data.map(c => html`<${Cell} key=${c.cell_id} cell=${c} />`)}</ul>`}
    <${Running} />
    <${Pools} cells=${cells.data ?? []} />
    <${Lines} lines=${['sudo cupola cells', 'cf curl /v1/cells', 'cf curl /v3/placement_pools']} />
  `;
}

const labels = (what, all) =>
  all?.length > 0 &&
  html`<div><dt>${what}</dt><dd class="labels">${all.map(t => html`<span key=${t} class="label">${t}</span>`)}</dd></div>`;

function Cell({ cell: c }) {
  return html`
    <li class="panel cellcard">
      <div class="section-head">
        <h2>${c.cell_id}</h2>
        <span class="muted">zone ${c.zone}</span>
        ${c.leaving && html`<${State} value="LEAVING" title="Its containers move to other cells" />`}
        ${c.unreachable && html`<${State} value="UNREACHABLE" title="What runs on it is left as it is" />`}
      </div>
      <${Problem} error=${c.problem && { message: `${c.problem}\nTo mend it: ${c.mend}` }} />
      <${Meter}
        label="Memory"
        used=${c.used.memory_mb}
        total=${c.capacity.memory_mb}
        text=${`${megabytes(c.used.memory_mb)} of ${megabytes(c.capacity.memory_mb)}`}
      />
      <${Meter}
        label="Disk"
        used=${c.used.disk_mb}
        total=${c.capacity.disk_mb}
        text=${`${megabytes(c.used.disk_mb)} of ${megabytes(c.capacity.disk_mb)}`}
      />
      <${Meter}
        label="Containers"
        used=${c.used.containers}
        total=${c.capacity.containers}
        text=${`${c.used.containers} of ${c.capacity.containers}`}
      />
      <dl class="facts small">
        ${labels('Tags', c.tags)}
        ${labels('Required tags', c.required_tags)}
        ${labels('Root filesystems', c.preloaded_rootfses)}
        ${labels('Providers', c.rootfs_providers)}
      </dl>
    </li>
  `;
}

// What runs where: the cells' instances, with the names of the apps that they are of.
async function loadRunning(signal) {
  const [cells, processes, apps] = await Promise.all([
    get('/v1/cells?include=instances', { signal }),
    list('/v3/processes?per_page=5000', { signal }),
    list('/v3/apps?per_page=5000&include=space.organization', { signal }),
  ]);
  const by = new Map(processes.resources.map(p => [p.guid, p])),
    named = new Map(apps.resources.map(a => [a.guid, a]));
  const spaces = new Map((apps.included.spaces ?? []).map(s => [s.guid, s])),
    orgs = new Map((apps.included.organizations ?? []).map(o => [o.guid, o.name]));
  return cells
    .flatMap(c =>
      c.instances.map(i => {
        const process = by.get(i.process_guid),
          app = named.get(process?.relationships.app.data.guid),
          space = spaces.get(app?.relationships.space.data.guid);
        return {
          guid: c.cell_id + i.domain + i.process_guid + i.index,
          cell: c.cell_id,
          instance: i,
          process,
          app,
          place: space && `${orgs.get(space.relationships.organization.data.guid)} / ${space.name}`,
        };
      }),
    )
    .sort(
      (a, b) =>
        a.cell.localeCompare(b.cell) ||
        (a.app?.name ?? a.instance.process_guid).localeCompare(b.app?.name ?? b.instance.process_guid) ||
        a.instance.index - b.instance.index,
    );
}

function Running() {
  const all = useResource(loadRunning, [], ofKind('instance app process'));
  const { found, input, query } = useFilter(
    all.data,
    r => `${r.app?.name ?? ''} ${r.instance.process_guid} ${r.place ?? ''} ${r.cell} ${r.instance.state} ${r.instance.domain}`,
    'Filter instances',
  );
  const columns = [
    {
      title: 'What',
      cell: r =>
        r.app
          ? html`<${Link} to=${'/apps/' + r.app.guid} class="strong">${r.app.name}<//><span class="sub">${r.place}</span>`
          : html`<span class="mono">${r.instance.process_guid}</span><span class="sub">${r.instance.domain}</span>`,
    },
    { title: 'Instance', cell: r => html`<span class="nowrap">${r.process?.type ?? ''} ${r.instance.index}</span>` },
    { title: 'State', cell: r => html`<${State} value=${r.instance.state} />` },
    { title: 'Cell', cell: r => html`<span class="nowrap">${r.cell}</span>` },
    { title: 'Memory', num: true, cell: r => megabytes(r.process?.memory_in_mb) },
    { title: 'Since', cell: r => html`<${Time} at=${r.instance.since} />` },
  ];
  return html`
    <${Section} title="Who runs where">
      <${Waiting} of=${all} rows=${2} />
      ${all.data &&
      (all.data.length
        ? html`
            <div class="toolbar">
              ${input}
              <span class="muted" role="status">
                ${query ? `${found.length} of ${count(all.data.length, 'instance')}` : count(all.data.length, 'instance')}
              </span>
            </div>
            <${Table} caption="Instances by cell" columns=${columns} rows=${found.slice(0, shownRows)} />
            ${found.length > shownRows && html`<p class="muted">The first ${shownRows} of them; filter to see others.</p>`}
          `
        : html`<p class="muted">Nothing runs.</p>`)}
    <//>
  `;
}

const shownRows = 200;

async function loadPools(signal) {
  const [pools, spaces] = await Promise.all([
    list('/v3/placement_pools?per_page=5000', { signal }),
    list('/v3/spaces?per_page=5000&include=organization', { signal }),
  ]);
  const orgs = new Map((spaces.included.organizations ?? []).map(o => [o.guid, o.name]));
  const all = spaces.resources
    .map(s => ({
      guid: s.guid,
      name: `${orgs.get(s.relationships.organization.data.guid)} / ${s.name}`,
      org: orgs.get(s.relationships.organization.data.guid),
      space: s.name,
    }))
    .sort((a, b) => a.name.localeCompare(b.name));
  return { pools: pools.resources, spaces: all };
}

function Pools({ cells }) {
  const all = useResource(loadPools, [], ofKind('placement_pool isolation_segment space'));
  const reload = all.reload,
    spaceOf = guid => all.data.spaces.find(s => s.guid === guid)?.name ?? guid;
  const membersOf = p => {
    const { spaces, apps } = p.relationships;
    return [...spaces.data.map(s => spaceOf(s.guid)), ...(apps.data.length ? [count(apps.data.length, 'app')] : [])];
  };
  const remove = p => () =>
    confirm({
      title: `Delete the pool ${p.name}?`,
      text:
        `The placement pool ${p.name} goes. What starts in its spaces then uses the default pool, if there is one; ` +
        'its apps use that of their space.',
      submit: 'Delete',
      lines: [`cupola placement-pools delete ${quoted(p.name)}`],
      run: async () => {
        await call('DELETE', '/v3/placement_pools/' + p.guid);
        await reload();
      },
    });
  const edit = p => () => open(Pool, { title: p ? 'Change ' + p.name : 'Create a placement pool', pool: p, all: all.data, cells, reload });
  const tags = list_ =>
    list_?.length
      ? html`<span class="labels">${list_.map(t => html`<span key=${t} class="label">${t}</span>`)}</span>`
      : html`<span class="muted">none</span>`;
  const columns = [
    { title: 'Pool', cell: p => html`<strong>${p.name}</strong>${p.default && html` <span class="label">default</span>`}` },
    { title: 'Required tags', cell: p => tags(p.require) },
    { title: 'Disallowed tags', cell: p => tags(p.disallow) },
    {
      title: 'Spaces and apps',
      cell: p => membersOf(p).join(', ') || html`<span class="muted">none</span>`,
    },
    isAdmin() && {
      title: 'Actions',
      quiet: true,
      cell: p => html`
        <span class="actions">
          <button type="button" onClick=${edit(p)} aria-label=${'Change ' + p.name}>Change…</button>
          <button type="button" onClick=${remove(p)} aria-label=${'Delete ' + p.name}>Delete…</button>
        </span>
      `,
    },
  ];
  return html`
    <${Section}
      title="Placement pools"
      actions=${isAdmin() && all.data && html`<button type="button" onClick=${edit(null)}>Create a pool…</button>`}
    >
      <${Waiting} of=${all} rows=${2} />
      ${all.data &&
      (all.data.pools.length
        ? html`<${Table} caption="Placement pools" columns=${columns} rows=${all.data.pools} />`
        : html`
            <${Empty} title="There are no placement pools.">
              A pool says which tags the cells of a space must have, and which they must not have.
            <//>
          `)}
    <//>
  `;
}

const words = text =>
  text
    .split(',')
    .map(t => t.trim())
    .filter(Boolean);

function Pool({ pool: p, all, cells, close, reload }) {
  const [name, setName] = useState(p?.name ?? '');
  const [require, setRequire] = useState((p?.require ?? []).join(', '));
  const [disallow, setDisallow] = useState((p?.disallow ?? []).join(', '));
  const [isDefault, setDefault] = useState(p?.default ?? false);
  const before = new Set((p?.relationships.spaces.data ?? []).map(s => s.guid));
  const [spaces, setSpaces] = useState(before);
  const toggle = guid => on => {
    const next = new Set(spaces);
    if (on) next.add(guid);
    else next.delete(guid);
    setSpaces(next);
  };
  const run = async () => {
    const json = { name, require: words(require), disallow: words(disallow), default: isDefault };
    const made = p ? await call('PATCH', '/v3/placement_pools/' + p.guid, { json }) : await call('POST', '/v3/placement_pools', { json });
    const added = [...spaces].filter(s => !before.has(s)),
      path = `/v3/placement_pools/${made.guid}/relationships/spaces`;
    if (added.length) await call('POST', path, { json: { data: added.map(guid => ({ guid })) } });
    for (const s of before) if (!spaces.has(s)) await call('DELETE', `${path}/${s}`);
    announce('Saved');
    await reload();
  };
  const tags = [...new Set(cells.flatMap(c => [...c.tags, ...c.required_tags]))].sort();
  const flags =
    `${require ? ' --require ' + quoted(words(require).join(',')) : ''}` +
    `${disallow ? ' --disallow ' + quoted(words(disallow).join(',')) : ''}${isDefault ? ' --default' : ''}`;
  const named = all.spaces.filter(s => spaces.has(s.guid) && !before.has(s.guid));
  return html`
    <${Sheet}
      title=${p ? 'Change ' + p.name : 'Create a placement pool'}
      close=${close}
      submit=${p ? 'Save' : 'Create'}
      run=${run}
      lines=${[
        `cupola placement-pools ${p ? 'update' : 'create'} ${quoted(p?.name ?? (name || 'NAME'))}${flags}`,
        ...named.map(s => `cupola placement-pools assign ${quoted(name || 'NAME')} ${quoted(s.org)} ${quoted(s.space)}`),
      ]}
    >
      <div class="fields">
        <${Field} label="Name" required value=${name} onValue=${setName} autocomplete="off" />
        <${Field}
          label="Required tags"
          value=${require}
          onValue=${setRequire}
          note=${tags.length ? 'Cells have: ' + tags.join(', ') : 'No cell has tags: --cells gives them'}
        />
        <${Field} label="Disallowed tags" value=${disallow} onValue=${setDisallow} note="Separated by commas" />
      </div>
      <${Check} label="The default: for spaces without a pool" checked=${isDefault} onValue=${setDefault} />
      <fieldset class="schema">
        <legend class="legend">Spaces</legend>
        ${all.spaces.map(s => html`<${Check} key=${s.guid} label=${s.name} checked=${spaces.has(s.guid)} onValue=${toggle(s.guid)} />`)}
      </fieldset>
      <p class="muted">It takes effect when apps restart.</p>
    <//>
  `;
}
