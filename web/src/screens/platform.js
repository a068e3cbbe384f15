// What administrators set for all: quotas, security groups, feature flags, buildpacks, isolation segments, domains and users.
import { html, useState } from '../lib/html.js';
import { list, get, act, call } from '../lib/api.js';
import { useResource } from '../lib/resource.js';
import { ofKind } from '../lib/operations.js';
import { quoted, megabytes, bytes, count } from '../lib/format.js';
import { isAdmin, readsAll } from '../lib/roles.js';
import { Head, State, Time, Problem, Section, Empty, Lines, Field, Check, Button } from '../parts/basic.js';
import { Table, Waiting, useFilter } from '../parts/table.js';
import { Tabs } from '../parts/tabs.js';
import { open, confirm, Sheet } from '../parts/dialog.js';
import { Commands } from '../parts/commands.js';
import { announce } from '../parts/live.js';
import { rule } from './space.js';
import { EditQuota } from './quotaform.js';

const tabs = {
  '': ['Quotas', Quotas],
  'security-groups': ['Security groups', Groups],
  flags: ['Feature flags', Flags],
  buildpacks: ['Buildpacks', Buildpacks],
  segments: ['Isolation segments', Segments],
  domains: ['Shared domains', Domains],
  users: ['Users', Users],
};

/** The screen /platform/TAB. */
export default function Platform({ params: { tab = '' } }) {
  const [, Content] = tabs[tab] ?? [];
  if (!readsAll()) return html`<${Head} title="Platform" /><${Problem} error=${new Error('Only administrators see this page.')} />`;
  return html`
    <${Head} title="Platform" />
    <${Tabs}
      label="Platform"
      tabs=${Object.entries(tabs).map(([t, [title]]) => ({ to: '/platform' + (t && '/' + t), title, on: t === tab }))}
    />
    ${Content ? html`<${Content} key=${tab} />` : html`<${Problem} error=${new Error('There is no such page.')} />`}
  `;
}

const limit = (n, format = String) => (n === null || n === undefined ? html`<span class="muted">unlimited</span>` : format(n));

async function loadOrgQuotas(signal) {
  const [quotas, orgs] = await Promise.all([
    list('/v3/organization_quotas?per_page=5000', { signal }),
    list('/v3/organizations?per_page=5000', { signal }),
  ]);
  const named = new Map(orgs.resources.map(o => [o.guid, o.name]));
  return quotas.resources.map(q => ({ ...q, orgs: q.relationships.organizations.data.map(o => named.get(o.guid) ?? o.guid) }));
}

async function loadSpaceQuotas(signal) {
  const [quotas, orgs] = await Promise.all([
    list('/v3/space_quotas?per_page=5000', { signal }),
    list('/v3/organizations?per_page=5000', { signal }),
  ]);
  return { quotas: quotas.resources, orgs: orgs.resources };
}

const quotaColumns = (kind, of, edit, remove) => [
  { title: 'Quota', cell: q => html`<strong>${q.name}</strong>` },
  { title: kind === 'org' ? 'Orgs' : 'Org', cell: of },
  { title: 'Memory', num: true, cell: q => limit(q.apps.total_memory_in_mb, megabytes) },
  { title: 'Per process', num: true, cell: q => limit(q.apps.per_process_memory_in_mb, megabytes) },
  { title: 'Instances', num: true, cell: q => limit(q.apps.total_instances) },
  { title: 'Log rate', num: true, cell: q => limit(q.apps.log_rate_limit_in_bytes_per_second, n => bytes(n) + '/s') },
  { title: 'Services', num: true, cell: q => limit(q.services.total_service_instances) },
  { title: 'Routes', num: true, cell: q => limit(q.routes.total_routes) },
  isAdmin() && {
    title: 'Actions',
    quiet: true,
    cell: q => html`
      <span class="actions">
        <button type="button" onClick=${edit(q, kind)} aria-label=${'Change ' + q.name}>Change…</button>
        <button type="button" onClick=${remove(q, kind)} aria-label=${'Delete ' + q.name}>Delete…</button>
      </span>
    `,
  },
];

function Quotas() {
  const all = useResource(loadOrgQuotas, [], ofKind('quota org'));
  const spaces = useResource(loadSpaceQuotas, [], ofKind('quota org space'));
  const orgName = guid => spaces.data?.orgs.find(o => o.guid === guid)?.name ?? guid;
  const edit = (quota, kind) => () =>
    open(EditQuota, {
      title: quota ? 'Change ' + quota.name : 'Create a quota',
      quota,
      kind,
      orgs: spaces.data?.orgs ?? [],
      reload: kind === 'org' ? all.reload : spaces.reload,
      wide: true,
    });
  const remove = (q, kind) => () =>
    confirm({
      title: `Delete ${q.name}?`,
      submit: 'Delete',
      text: `The quota ${q.name} is deleted. One that an org has cannot be.`,
      lines: [`cf delete-${kind}-quota ${quoted(q.name)} -f`],
      run: async () => {
        await act('DELETE', `/v3/${kind === 'org' ? 'organization' : 'space'}_quotas/${q.guid}`);
        await (kind === 'org' ? all : spaces).reload();
      },
    });
  const columns = (kind, of) => quotaColumns(kind, of, edit, remove);
  return html`
    <${Section}
      title="Quotas of orgs"
      actions=${isAdmin() && html`<button type="button" onClick=${edit(null, 'org')}>Create a quota…</button>`}
    >
      <${Waiting} of=${all} rows=${2} />
      ${all.data &&
      html`
        <${Table}
          caption="Quotas of orgs"
          columns=${columns('org', q => q.orgs.join(', ') || html`<span class="muted">none</span>`)}
          rows=${all.data}
          kind="early"
        />
      `}
    <//>
    <${Section}
      title="Quotas of spaces"
      actions=${isAdmin() && html`<button type="button" onClick=${edit(null, 'space')}>Create a space quota…</button>`}
    >
      <${Waiting} of=${spaces} rows=${2} />
      ${spaces.data &&
      (spaces.data.quotas.length
        ? html`
            <${Table}
              caption="Quotas of spaces"
              columns=${columns(
                'space',
                q => html`
                  ${orgName(q.relationships.organization.data.guid)}
                  <span class="sub">${count(q.relationships.spaces.data.length, 'space')}</span>
                `,
              )}
              rows=${spaces.data.quotas}
              kind="early"
            />
          `
        : html`<p class="muted">There are none: the orgs' quotas limit spaces.</p>`)}
    <//>
    <${Lines} lines=${['cf org-quotas', 'cf space-quotas']} />
  `;
}

function Groups() {
  const all = useResource(signal => list('/v3/security_groups?per_page=5000', { signal }), [], ofKind('security_group'));
  const edit = g => () =>
    open(EditGroup, { title: g ? 'Change ' + g.name : 'Create a security group', group: g, reload: all.reload, wide: true });
  const remove = g => () =>
    confirm({
      title: `Delete ${g.name}?`,
      submit: 'Delete',
      text: `The security group ${g.name} is deleted: apps that its rules let connect no longer can, at once.`,
      lines: [`cf delete-security-group ${quoted(g.name)} -f`],
      run: async () => {
        await act('DELETE', '/v3/security_groups/' + g.guid);
        await all.reload();
      },
    });
  const where = (g, kind) =>
    g.globally_enabled[kind]
      ? 'everywhere'
      : g.relationships[kind + '_spaces'].data.length
        ? count(g.relationships[kind + '_spaces'].data.length, 'space')
        : html`<span class="muted">none</span>`;
  const columns = [
    { title: 'Group', cell: g => html`<strong>${g.name}</strong>` },
    { title: 'Running apps', cell: g => where(g, 'running') },
    { title: 'Staging', cell: g => where(g, 'staging') },
    {
      title: 'May connect to',
      cell: g =>
        g.rules.length
          ? html`<ul>${g.rules.map((r, n) => html`<li key=${n} class="mono">${rule(r)}</li>`)}</ul>`
          : html`<span class="muted">nothing</span>`,
    },
    isAdmin() && {
      title: 'Actions',
      quiet: true,
      cell: g => html`
        <span class="actions">
          <button type="button" onClick=${edit(g)} aria-label=${'Change ' + g.name}>Change…</button>
          <button type="button" onClick=${remove(g)} aria-label=${'Delete ' + g.name}>Delete…</button>
        </span>
      `,
    },
  ];
  return html`
    <${Section} title="Security groups" actions=${isAdmin() && html`<button type="button" onClick=${edit(null)}>Create a group…</button>`}>
      <${Waiting} of=${all} rows=${3} />
      ${all.data && html`<${Table} caption="Security groups" columns=${columns} rows=${all.data.resources} />`}
    <//>
    <${Lines} lines=${['cf security-groups']} />
  `;
}

function EditGroup({ group: g, close, reload }) {
  const [name, setName] = useState(g?.name ?? '');
  const [text, setText] = useState(JSON.stringify(g?.rules ?? [{ protocol: 'tcp', destination: '10.0.0.0/8', ports: '443' }], null, 2));
  const [enabled, setEnabled] = useState(g?.globally_enabled ?? { running: false, staging: false });
  let rules, error;
  try {
    rules = JSON.parse(text);
    if (!Array.isArray(rules)) error = 'Write a list of rules.';
  } catch (e) {
    error = e.message;
  }
  const run = async () => {
    const json = { name, rules, globally_enabled: enabled };
    await (g ? call('PATCH', '/v3/security_groups/' + g.guid, { json }) : call('POST', '/v3/security_groups', { json }));
    announce('Saved');
    await reload();
  };
  const lines = [
    `cf ${g ? 'update' : 'create'}-security-group ${quoted(g?.name ?? (name || 'GROUP'))} rules.json`,
    ...['running', 'staging']
      .filter(k => enabled[k] !== (g?.globally_enabled[k] ?? false))
      .map(k => `cf ${enabled[k] ? 'bind' : 'unbind'}-${k}-security-group ${quoted(name || 'GROUP')}`),
  ];
  return html`
    <${Sheet}
      title=${g ? 'Change ' + g.name : 'Create a security group'}
      close=${close}
      submit=${g ? 'Save' : 'Create'}
      run=${run}
      disabled=${Boolean(error)}
      lines=${lines}
    >
      <${Field} label="Name" required value=${name} onValue=${setName} autocomplete="off" />
      <${Field}
        label="Rules, as JSON"
        as="textarea"
        rows="8"
        spellcheck=${false}
        value=${text}
        onValue=${setText}
        error=${error}
        note="Each with protocol (tcp, udp, icmp, all), destination, and ports or type and code"
      />
      <${Check} label="For all running apps" checked=${enabled.running} onValue=${v => setEnabled({ ...enabled, running: v })} />
      <${Check} label="For all stagings" checked=${enabled.staging} onValue=${v => setEnabled({ ...enabled, staging: v })} />
    <//>
  `;
}

function Flags() {
  const all = useResource(signal => get('/v3/feature_flags?per_page=100', { signal }), [], ofKind('feature_flag'));
  const set = f => () =>
    confirm({
      title: `${f.enabled ? 'Disable' : 'Enable'} ${f.name}?`,
      danger: false,
      submit: f.enabled ? 'Disable' : 'Enable',
      text: `The feature flag ${f.name} holds for all orgs at once.`,
      lines: [`cf ${f.enabled ? 'disable' : 'enable'}-feature-flag ${f.name}`],
      run: async () => {
        await call('PATCH', '/v3/feature_flags/' + f.name, { json: { enabled: !f.enabled } });
        announce(`${f.name} is ${f.enabled ? 'disabled' : 'enabled'}`);
        await all.reload();
      },
    });
  const columns = [
    {
      title: 'Flag',
      cell: f => html`
        <span class="mono">${f.name}</span>
        ${f.custom_error_message && html`<span class="sub">${f.custom_error_message}</span>`}
      `,
    },
    { title: 'State', cell: f => html`<${State} value=${f.enabled ? 'ENABLED' : 'DISABLED'} />` },
    { title: 'Changed', cell: f => html`<${Time} at=${f.updated_at} />` },
    isAdmin() && {
      title: 'Actions',
      quiet: true,
      cell: f => html`
        <button type="button" onClick=${set(f)} aria-label=${`${f.enabled ? 'Disable' : 'Enable'} ${f.name}`}>
          ${f.enabled ? 'Disable…' : 'Enable…'}
        </button>
      `,
    },
  ];
  return html`
    <${Section} title="Feature flags">
      <${Waiting} of=${all} />
      ${all.data && html`<${Table} caption="Feature flags" columns=${columns} rows=${all.data.resources} id=${f => f.name} />`}
    <//>
    <${Lines} lines=${['cf feature-flags']} />
  `;
}

const named = b => quoted(b.name) + (b.stack ? ' -s ' + quoted(b.stack) : '');

function buildpackLines(b, count) {
  const line = flag => `cf update-buildpack ${named(b)} ${flag}`;
  return [
    b.position > 1 && ['Up', line('-i ' + (b.position - 1))],
    b.position < count && ['Down', line('-i ' + (b.position + 1))],
    b.enabled ? ['Disable', line('--disable')] : ['Enable', line('--enable')],
    b.locked ? ['Unlock', line('--unlock')] : ['Lock', line('--lock')],
    ['Delete…', `cf delete-buildpack ${named(b)} -f`],
  ];
}

function Buildpacks() {
  const all = useResource(signal => list('/v3/buildpacks?per_page=5000&order_by=position', { signal }), [], ofKind('buildpack'));
  const patch = (b, json) => async () => {
    await call('PATCH', '/v3/buildpacks/' + b.guid, { json });
    announce('Saved');
    await all.reload();
  };
  const rows = all.data?.resources ?? [];
  const remove = b => () =>
    confirm({
      title: `Delete ${b.name}?`,
      submit: 'Delete',
      text: `The buildpack ${b.name} is deleted: apps that it staged run on, and cannot be staged with it again.`,
      lines: [`cf delete-buildpack ${named(b)} -f`],
      run: async () => {
        await act('DELETE', '/v3/buildpacks/' + b.guid);
        await all.reload();
      },
    });
  const columns = [
    { title: 'Buildpack', cell: b => html`<strong>${b.name}</strong><span class="sub">${b.stack ?? 'any stack'}</span>` },
    { title: 'Position', num: true, cell: b => String(b.position) },
    { title: 'File', cell: b => html`<span class="mono">${b.filename ?? '–'}</span>` },
    {
      title: 'State',
      cell: b => html`
        <${State} value=${b.state} /> ${b.enabled ? '' : html`<${State} value="DISABLED" />`} ${b.locked
          ? html`<span class="label">locked</span>`
          : ''}
      `,
    },
    isAdmin() && {
      title: 'Actions',
      quiet: true,
      cell: b => html`
        <span class="actions">
          <${Button}
            run=${patch(b, { position: Math.max(1, b.position - 1) })}
            disabled=${b.position <= 1}
            aria-label=${'Move up ' + b.name}
          >
            Up
          <//>
          <${Button}
            run=${patch(b, { position: b.position + 1 })}
            disabled=${b.position >= rows.length}
            aria-label=${'Move down ' + b.name}
          >
            Down
          <//>
          <${Button} run=${patch(b, { enabled: !b.enabled })} aria-label=${`${b.enabled ? 'Disable' : 'Enable'} ${b.name}`}>
            ${b.enabled ? 'Disable' : 'Enable'}
          <//>
          <${Button} run=${patch(b, { locked: !b.locked })} aria-label=${`${b.locked ? 'Unlock' : 'Lock'} ${b.name}`}>
            ${b.locked ? 'Unlock' : 'Lock'}
          <//>
          <button type="button" onClick=${remove(b)} aria-label=${'Delete ' + b.name}>Delete…</button>
          <${Commands} of=${'the buildpack ' + b.name} lines=${buildpackLines(b, rows.length)} />
        </span>
      `,
    },
  ];
  return html`
    <${Section} title="Buildpacks">
      <p class="muted">Detected in this order. A locked one is not replaced by uploads.</p>
      <${Waiting} of=${all} />
      ${all.data &&
      (rows.length
        ? html`<${Table} caption="Buildpacks" columns=${columns} rows=${rows} />`
        : html`
            <${Empty} title="There are no buildpacks." line="cf create-buildpack NAME FILE.zip 1">Upload one with the command line.<//>
          `)}
    <//>
    <${Lines} lines=${['cf buildpacks', 'cf create-buildpack NAME FILE.zip 1']} />
  `;
}

function Segments() {
  const all = useResource(
    async signal => {
      const segments = await list('/v3/isolation_segments?per_page=5000&order_by=name', { signal });
      return Promise.all(
        segments.resources.map(async s => ({
          ...s,
          orgs: (await list(`/v3/isolation_segments/${s.guid}/organizations?per_page=5000`, { signal })).resources,
        })),
      );
    },
    [],
    ofKind('isolation_segment org'),
  );
  const remove = s => () =>
    confirm({
      title: `Delete ${s.name}?`,
      submit: 'Delete',
      text: `The isolation segment ${s.name} is deleted. One that an org is entitled to cannot be.`,
      lines: [`cf delete-isolation-segment ${quoted(s.name)} -f`],
      run: async () => {
        await call('DELETE', '/v3/isolation_segments/' + s.guid);
        await all.reload();
      },
    });
  const columns = [
    { title: 'Segment', cell: s => html`<strong>${s.name}</strong>` },
    { title: 'Orgs', cell: s => s.orgs.map(o => o.name).join(', ') || html`<span class="muted">none</span>` },
    { title: 'Created', cell: s => html`<${Time} at=${s.created_at} />` },
    isAdmin() && {
      title: 'Actions',
      quiet: true,
      cell: s => html`<button type="button" onClick=${remove(s)} aria-label=${'Delete ' + s.name}>Delete…</button>`,
    },
  ];
  const create = () =>
    open(Named, {
      title: 'Create an isolation segment',
      label: 'Name, which is a tag of cells',
      path: '/v3/isolation_segments',
      line: n => `cf create-isolation-segment ${quoted(n || 'NAME')}`,
      reload: all.reload,
    });
  return html`
    <${Section} title="Isolation segments" actions=${isAdmin() && html`<button type="button" onClick=${create}>Create a segment…</button>`}>
      <${Waiting} of=${all} />
      ${all.data && html`<${Table} caption="Isolation segments" columns=${columns} rows=${all.data} />`}
    <//>
    <${Lines} lines=${['cf isolation-segments']} />
  `;
}

function Named({ title, label, path, line, more = {}, close, reload }) {
  const [name, setName] = useState('');
  return html`
    <${Sheet}
      title=${title}
      close=${close}
      submit="Create"
      lines=${[line(name)]}
      run=${async () => {
        await call('POST', path, { json: { name, ...more } });
        announce('Created');
        await reload();
      }}
    >
      <${Field} label=${label} required value=${name} onValue=${setName} autocomplete="off" />
    <//>
  `;
}

function Domains() {
  const all = useResource(
    async signal => (await list('/v3/domains?per_page=5000&order_by=created_at', { signal })).resources,
    [],
    ofKind('domain'),
  );
  const shared = all.data?.filter(d => !d.relationships.organization.data);
  const remove = d => () =>
    confirm({
      title: `Delete ${d.name}?`,
      submit: 'Delete',
      text: `The shared domain ${d.name} and all routes of all orgs in it are deleted.`,
      lines: [`cf delete-shared-domain ${quoted(d.name)} -f`],
      run: async () => {
        await act('DELETE', '/v3/domains/' + d.guid);
        await all.reload();
      },
    });
  const columns = [
    { title: 'Domain', cell: d => html`<strong>${d.name}</strong>` },
    { title: 'Kind', cell: d => (d.internal ? 'internal' : d.router_group ? 'TCP' : 'HTTP') },
    { title: 'Protocols', cell: d => d.supported_protocols.join(', ') },
    { title: 'Created', cell: d => html`<${Time} at=${d.created_at} />` },
    isAdmin() && {
      title: 'Actions',
      quiet: true,
      cell: d => html`<button type="button" onClick=${remove(d)} aria-label=${'Delete ' + d.name}>Delete…</button>`,
    },
  ];
  const create = () =>
    open(Named, {
      title: 'Create a shared domain',
      label: 'Name',
      path: '/v3/domains',
      line: n => `cf create-shared-domain ${quoted(n || 'DOMAIN')}`,
      reload: all.reload,
    });
  return html`
    <${Section} title="Shared domains" actions=${isAdmin() && html`<button type="button" onClick=${create}>Create a domain…</button>`}>
      <${Waiting} of=${all} />
      ${shared && html`<${Table} caption="Shared domains" columns=${columns} rows=${shared} />`}
    <//>
    <${Lines} lines=${['cf domains']} />
  `;
}

function Users() {
  const all = useResource(
    async signal => {
      const [users, roles] = await Promise.all([list('/v3/users?per_page=5000', { signal }), list('/v3/roles?per_page=5000', { signal })]);
      const n = new Map();
      for (const r of roles.resources) {
        const g = r.relationships.user.data.guid;
        n.set(g, (n.get(g) ?? 0) + 1);
      }
      return users.resources
        .map(u => ({ ...u, roles: n.get(u.guid) ?? 0 }))
        .sort((a, b) => a.presentation_name.localeCompare(b.presentation_name));
    },
    [],
    ofKind('user role'),
  );
  const { found, input } = useFilter(all.data, u => `${u.presentation_name} ${u.origin ?? ''}`, 'Filter users');
  const remove = u => () =>
    confirm({
      title: `Delete ${u.presentation_name}?`,
      submit: 'Delete',
      text: `The user ${u.presentation_name} is deleted, with ${count(u.roles, 'role')}.`,
      lines: [`cf delete-user ${quoted(u.presentation_name)} -f`],
      run: async () => {
        await act('DELETE', '/v3/users/' + u.guid);
        if (u.origin)
          await call('DELETE', '/Users/' + u.guid).catch(e => {
            if (e.status !== 404) throw e;
          });
        await all.reload();
      },
    });
  const columns = [
    { title: 'User', cell: u => html`<strong>${u.presentation_name}</strong><span class="sub mono">${u.guid}</span>` },
    { title: 'Origin', cell: u => u.origin ?? html`<span class="muted">client</span>` },
    { title: 'Roles', num: true, cell: u => String(u.roles) },
    { title: 'Created', cell: u => html`<${Time} at=${u.created_at} />` },
    isAdmin() && {
      title: 'Actions',
      quiet: true,
      cell: u => html`<button type="button" onClick=${remove(u)} aria-label=${'Delete ' + u.presentation_name}>Delete…</button>`,
    },
  ];
  return html`
    <${Section}
      title="Users"
      actions=${isAdmin() &&
      html`
        <button type="button" class="primary" onClick=${() => open(CreateUser, { title: 'Create a user', reload: all.reload })}>
          Create a user…
        </button>
      `}
    >
      <${Waiting} of=${all} />
      ${all.data && html`<div class="toolbar">${input}</div><${Table} caption="Users" columns=${columns} rows=${found} />`}
    <//>
    <${Lines} lines=${['cf curl /v3/users']} />
  `;
}

function CreateUser({ close, reload }) {
  const [name, setName] = useState('');
  const [password, setPassword] = useState('');
  const run = async () => {
    const u = await call('POST', '/Users', {
      json: { userName: name, password, emails: [{ value: name, primary: true }], name: { givenName: name, familyName: name } },
    });
    await call('POST', '/v3/users', { json: { guid: u.id } });
    announce(`The user ${name} was created`);
    await reload();
  };
  return html`
    <${Sheet}
      title="Create a user"
      close=${close}
      submit="Create"
      run=${run}
      lines=${[`cf create-user ${quoted(name || 'USER')} PASSWORD`]}
    >
      <p class="muted">The user logs in with this password, and sees nothing until you give a role in an org or a space.</p>
      <div class="fields">
        <${Field} label="User name" required autocomplete="off" value=${name} onValue=${setName} />
        <${Field} label="Password" required type="password" autocomplete="new-password" value=${password} onValue=${setPassword} />
      </div>
    <//>
  `;
}
