// One space: its members, quota, security groups, and where its apps run.
import { html, useState, useEffect } from '../lib/html.js';
import { get, list, act, call } from '../lib/api.js';
import { useResource } from '../lib/resource.js';
import { ofKind } from '../lib/operations.js';
import { Link, go } from '../lib/router.js';
import { quoted } from '../lib/format.js';
import { mayManageOrg, mayManageSpace } from '../lib/roles.js';
import { Head, Problem, Skeleton, Section, Lines, Field } from '../parts/basic.js';
import { Table, Waiting } from '../parts/table.js';
import { Tabs } from '../parts/tabs.js';
import { Members } from '../parts/members.js';
import { QuotaUse } from '../parts/quotause.js';
import { open, confirm, Sheet } from '../parts/dialog.js';
import { announce } from '../parts/live.js';

const titles = { '': 'Members', quota: 'Quota', 'security-groups': 'Security groups', placement: 'Placement' };

async function load(guid, signal) {
  const space = await get(`/v3/spaces/${guid}?include=organization`, { signal });
  return { space, org: space.included.organizations[0] };
}

/** The screen /spaces/GUID/TAB. */
export default function Space({ params: { guid, tab = '' } }) {
  const of = useResource(signal => load(guid, signal), [guid], ofKind('space org role'));
  const { space, org } = of.data ?? {};
  useEffect(() => {
    document.title = space ? `${space.name} · cupola` : 'cupola';
  }, [space?.name]);
  if (!space) return of.error ? html`<${Head} title="Space" /><${Problem} error=${of.error} />` : html`<${Skeleton} rows=${5} />`;
  const manages = mayManageSpace(guid, org.guid),
    Content = { '': MembersTab, quota: Quota, 'security-groups': Groups, placement: Placement }[tab];
  return html`
    <div class="crumbs"><${Link} to="/orgs">Orgs<//> / <${Link} to=${'/orgs/' + org.guid}>${org.name}<//></div>
    <${Head} title=${space.name}>
      <${Link} class="button" to=${'/apps?q=' + encodeURIComponent(`org:${org.name} space:${space.name}`)}>Apps<//>
      ${mayManageOrg(org.guid) && html`<${Actions} space=${space} org=${org} reload=${of.reload} />`}
    <//>
    <${Problem} error=${of.error} />
    <${Tabs}
      label="Space"
      tabs=${Object.keys(titles).map(t => ({ to: `/spaces/${guid}${t && '/' + t}`, title: titles[t], on: t === tab }))}
    />
    ${Content
      ? html`<${Content} space=${space} org=${org} may=${manages} />`
      : html`<${Problem} error=${new Error('There is no such page.')} />`}
    <${Lines} lines=${[`cf space ${quoted(space.name)}`, `cf space-users ${quoted(org.name)} ${quoted(space.name)}`]} />
  `;
}

function Actions({ space, org, reload }) {
  const remove = () =>
    confirm({
      title: `Delete ${space.name}?`,
      submit: 'Delete',
      text: `The space ${space.name} of ${org.name} is deleted with its apps, service instances and routes. This cannot be undone.`,
      lines: [`cf delete-space ${quoted(space.name)} -o ${quoted(org.name)} -f`],
      run: async () => {
        await act('DELETE', '/v3/spaces/' + space.guid);
        announce('Deleted');
        go('/orgs/' + org.guid);
      },
    });
  return html`
    <button type="button" onClick=${() => open(Rename, { title: 'Rename', space, reload })}>Rename…</button>
    <button type="button" onClick=${remove} aria-label=${'Delete ' + space.name}>Delete…</button>
  `;
}

function Rename({ space, close, reload }) {
  const [name, setName] = useState(space.name);
  return html`
    <${Sheet}
      title=${'Rename ' + space.name}
      close=${close}
      submit="Rename"
      disabled=${name === space.name}
      lines=${[`cf rename-space ${quoted(space.name)} ${quoted(name)}`]}
      run=${async () => {
        await call('PATCH', '/v3/spaces/' + space.guid, { json: { name } });
        await reload();
      }}
    >
      <${Field} label="Name" required maxlength="255" value=${name} onValue=${setName} />
    <//>
  `;
}

function MembersTab({ space, org, may }) {
  return html`<${Members} of=${{ org, space }} may=${may} />`;
}

function Quota({ space, org }) {
  const all = useResource(
    async signal => {
      const [usage, quotas, own] = await Promise.all([
        get(`/v3/spaces/${space.guid}/usage_summary`, { signal }),
        list('/v3/space_quotas?per_page=5000&organization_guids=' + org.guid, { signal }),
        get('/v3/spaces/' + space.guid, { signal }),
      ]);
      return {
        usage: usage.usage_summary,
        all: quotas.resources,
        quota: quotas.resources.find(q => q.guid === own.relationships.quota?.data?.guid) ?? null,
      };
    },
    [space.guid],
    ofKind('quota space app process route service_instance'),
  );
  const d = all.data;
  const set = () => open(SetQuota, { title: 'Set the quota', space, d, reload: all.reload });
  return html`
    <${Section}
      title=${d?.quota ? 'Quota ' + d.quota.name : 'Quota'}
      actions=${mayManageOrg(org.guid) &&
      d &&
      (d.all.length > 0 || d.quota) &&
      html`<button type="button" onClick=${set}>Set the quota…</button>`}
    >
      <${Waiting} of=${all} rows=${3} />
      ${d &&
      html`
        ${!d.quota && html`<p class="muted">The space has no quota of its own: that of the org limits it.</p>`}
        <div class="panel"><${QuotaUse} quota=${d.quota} usage=${d.usage} /></div>
      `}
    <//>
  `;
}

function SetQuota({ space, d, close, reload }) {
  const [quota, setQuota] = useState(d.quota?.guid ?? '');
  const chosen = d.all.find(q => q.guid === quota);
  const run = async () => {
    if (quota) await call('POST', `/v3/space_quotas/${quota}/relationships/spaces`, { json: { data: [{ guid: space.guid }] } });
    else if (d.quota) await call('DELETE', `/v3/space_quotas/${d.quota.guid}/relationships/spaces/${space.guid}`);
    await reload();
  };
  return html`
    <${Sheet}
      title=${'Quota of ' + space.name}
      close=${close}
      submit="Set"
      run=${run}
      lines=${[
        chosen
          ? `cf set-space-quota ${quoted(space.name)} ${quoted(chosen.name)}`
          : d.quota && `cf unset-space-quota ${quoted(space.name)} ${quoted(d.quota.name)}`,
      ]}
    >
      <${Field} label="Quota" as="select" value=${quota} onValue=${setQuota}>
        <option value="">none</option>
        ${d.all.map(q => html`<option key=${q.guid} value=${q.guid}>${q.name}</option>`)}
      <//>
    <//>
  `;
}

/** A rule of a security group, in one line. */
export const rule = r =>
  `${r.protocol} ${r.destination}${r.ports ? ' ports ' + r.ports : ''}` +
  `${r.protocol.startsWith('icmp') ? ` type ${r.type ?? -1} code ${r.code ?? -1}` : ''}${r.log ? ' (logged)' : ''}`;

function Groups({ space, org, may }) {
  const all = useResource(
    async signal => {
      const [running, staging, every] = await Promise.all([
        list(`/v3/spaces/${space.guid}/running_security_groups?per_page=5000`, { signal }),
        list(`/v3/spaces/${space.guid}/staging_security_groups?per_page=5000`, { signal }),
        list('/v3/security_groups?per_page=5000', { signal }).catch(() => ({ resources: [] })),
      ]);
      const named = new Map();
      for (const [kind, groups] of [
        ['running', running],
        ['staging', staging],
      ])
        for (const g of groups.resources) named.set(g.guid, { ...named.get(g.guid), ...g, [kind]: true });
      return {
        groups: [...named.values()].sort((a, b) => a.name.localeCompare(b.name)),
        others: every.resources.filter(g => !named.has(g.guid)),
      };
    },
    [space.guid],
    ofKind('security_group space'),
  );
  const bound = (g, kind) => g.relationships?.[kind + '_spaces']?.data.some(s => s.guid === space.guid);
  const unbind = (g, kind) => () =>
    confirm({
      title: `Unbind ${g.name}?`,
      submit: 'Unbind',
      text: `The rules of ${g.name} no longer apply to ${kind} apps in ${space.name}.`,
      lines: [`cf unbind-security-group ${quoted(g.name)} ${quoted(org.name)} ${quoted(space.name)} --lifecycle ${kind}`],
      run: async () => {
        await call('DELETE', `/v3/security_groups/${g.guid}/relationships/${kind}_spaces/${space.guid}`);
        await all.reload();
      },
    });
  const applies = (g, kind) =>
    g[kind]
      ? html`
          ${g.globally_enabled[kind] ? 'everywhere' : 'here'}
          ${may &&
          bound(g, kind) &&
          html` <button type="button" class="quiet" onClick=${unbind(g, kind)} aria-label=${`Unbind ${g.name} from ${kind} apps`}>
              Unbind…
            </button>`}
        `
      : html`<span class="muted">no</span>`;
  const columns = [
    { title: 'Group', cell: g => html`<strong>${g.name}</strong>` },
    { title: 'Running apps', cell: g => applies(g, 'running') },
    { title: 'Staging', cell: g => applies(g, 'staging') },
    { title: 'May connect to', cell: g => html`<ul>${g.rules.map((r, n) => html`<li key=${n} class="mono">${rule(r)}</li>`)}</ul>` },
  ];
  return html`
    <${Section}
      title="Security groups"
      actions=${may &&
      all.data?.others.length > 0 &&
      html`
        <button
          type="button"
          onClick=${() => open(BindGroup, { title: 'Bind a security group', space, org, groups: all.data.others, reload: all.reload })}
        >
          Bind a group…
        </button>
      `}
    >
      <${Waiting} of=${all} rows=${3} />
      ${all.data &&
      (all.data.groups.length
        ? html`<${Table} caption="Security groups" columns=${columns} rows=${all.data.groups} />`
        : html`<p class="muted">No group applies: apps reach nothing outside.</p>`)}
    <//>
  `;
}

function BindGroup({ space, org, groups, close, reload }) {
  const [guid, setGUID] = useState(groups[0].guid);
  const [kind, setKind] = useState('running');
  const g = groups.find(x => x.guid === guid);
  return html`
    <${Sheet}
      title=${'Bind a security group to ' + space.name}
      close=${close}
      submit="Bind"
      lines=${[`cf bind-security-group ${quoted(g.name)} ${quoted(org.name)} --space ${quoted(space.name)} --lifecycle ${kind}`]}
      run=${async () => {
        await call('POST', `/v3/security_groups/${guid}/relationships/${kind}_spaces`, { json: { data: [{ guid: space.guid }] } });
        await reload();
      }}
    >
      <div class="fields">
        <${Field} label="Group" as="select" value=${guid} onValue=${setGUID}>
          ${groups.map(x => html`<option key=${x.guid} value=${x.guid}>${x.name}</option>`)}
        <//>
        <${Field} label="For" as="select" value=${kind} onValue=${setKind}>
          <option value="running">running apps</option>
          <option value="staging">staging</option>
        <//>
      </div>
      <ul>${g.rules.map((r, n) => html`<li key=${n} class="mono">${rule(r)}</li>`)}</ul>
    <//>
  `;
}

function Placement({ space, org }) {
  const all = useResource(
    async signal => {
      const [segment, segments, pools] = await Promise.all([
        get(`/v3/spaces/${space.guid}/relationships/isolation_segment`, { signal }),
        list('/v3/isolation_segments?per_page=5000&organization_guids=' + org.guid, { signal }),
        list('/v3/placement_pools?per_page=5000', { signal }),
      ]);
      return {
        segment: segment.data?.guid ?? null,
        segments: segments.resources,
        pool: pools.resources.find(p => p.relationships.spaces.data.some(s => s.guid === space.guid)) ?? null,
        standard: pools.resources.find(p => p.default) ?? null,
      };
    },
    [space.guid],
    ofKind('isolation_segment placement_pool space'),
  );
  const d = all.data,
    segment = d?.segments.find(s => s.guid === d.segment),
    pool = d?.pool ?? d?.standard;
  const set = () => open(SetSegment, { title: 'Isolation segment', space, d, reload: all.reload });
  return html`
    <${Section}
      title="Where its apps run"
      actions=${mayManageOrg(org.guid) &&
      d?.segments.length > 0 &&
      html`<button type="button" onClick=${set}>Set the isolation segment…</button>`}
    >
      <${Waiting} of=${all} rows=${2} />
      ${d &&
      html`
        <dl class="facts">
          <div><dt>Isolation segment</dt><dd>${segment?.name ?? html`<span class="muted">none</span>`}</dd></div>
          <div>
            <dt>Placement pool</dt>
            <dd>
              ${pool
                ? html`
                    ${pool.name}
                    ${!d.pool && html` <span class="muted">the default</span>`}
                    <span class="sub">
                      requires ${pool.require.join(', ') || 'no tag'}
                      ${pool.disallow.length ? ', not ' + pool.disallow.join(', ') : ''}
                    </span>
                  `
                : html`<span class="muted">none</span>`}
            </dd>
          </div>
        </dl>
        <p class="muted">A change takes effect when an app restarts.</p>
      `}
    <//>
  `;
}

function SetSegment({ space, d, close, reload }) {
  const [guid, setGUID] = useState(d.segment ?? '');
  const s = d.segments.find(x => x.guid === guid);
  return html`
    <${Sheet}
      title=${'Isolation segment of ' + space.name}
      close=${close}
      submit="Set"
      lines=${[
        s
          ? `cf set-space-isolation-segment ${quoted(space.name)} ${quoted(s.name)}`
          : `cf reset-space-isolation-segment ${quoted(space.name)}`,
      ]}
      run=${async () => {
        await call('PATCH', `/v3/spaces/${space.guid}/relationships/isolation_segment`, { json: { data: guid ? { guid } : null } });
        announce('Set');
        await reload();
      }}
    >
      <${Field} label="Segment" as="select" value=${guid} onValue=${setGUID}>
        <option value="">none</option>
        ${d.segments.map(x => html`<option key=${x.guid} value=${x.guid}>${x.name}</option>`)}
      <//>
    <//>
  `;
}
