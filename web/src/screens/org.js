// One org: its spaces, members, quota with its use, domains and isolation segments.
import { html, useState, useEffect } from '../lib/html.js';
import { get, list, act, call } from '../lib/api.js';
import { useResource } from '../lib/resource.js';
import { ofKind } from '../lib/operations.js';
import { Link, go } from '../lib/router.js';
import { quoted } from '../lib/format.js';
import { isAdmin, mayManageOrg } from '../lib/roles.js';
import { Head, State, Time, Problem, Skeleton, Section, Empty, Lines, Field } from '../parts/basic.js';
import { Table, Waiting } from '../parts/table.js';
import { Tabs } from '../parts/tabs.js';
import { Members } from '../parts/members.js';
import { QuotaUse } from '../parts/quotause.js';
import { open, confirm, Sheet } from '../parts/dialog.js';
import { announce } from '../parts/live.js';

const titles = { '': 'Spaces', members: 'Members', quota: 'Quota', domains: 'Domains', segments: 'Isolation segments' };

/** The screen /orgs/GUID/TAB. */
export default function Org({ params: { guid, tab = '' } }) {
  const of = useResource(signal => get('/v3/organizations/' + guid, { signal }), [guid], ofKind('org role'));
  const org = of.data,
    may = mayManageOrg(guid);
  useEffect(() => {
    document.title = org ? `${org.name} · cupola` : 'cupola';
  }, [org?.name]);
  if (!org) return of.error ? html`<${Head} title="Org" /><${Problem} error=${of.error} />` : html`<${Skeleton} rows=${5} />`;
  const Content = { '': Spaces, members: MembersTab, quota: Quota, domains: Domains, segments: Segments }[tab];
  return html`
    <div class="crumbs"><${Link} to="/orgs">Orgs<//></div>
    <${Head} title=${org.name} note=${org.suspended && html`<${State} value="SUSPENDED" />`}>
      ${isAdmin() && html`<${Actions} org=${org} reload=${of.reload} />`}
    <//>
    <${Problem} error=${of.error} />
    <${Tabs} label="Org" tabs=${Object.keys(titles).map(t => ({ to: `/orgs/${guid}${t && '/' + t}`, title: titles[t], on: t === tab }))} />
    ${Content ? html`<${Content} org=${org} may=${may} />` : html`<${Problem} error=${new Error('There is no such page.')} />`}
    <${Lines} lines=${[`cf org ${quoted(org.name)}`, `cf org-users ${quoted(org.name)}`]} />
  `;
}

function Actions({ org, reload }) {
  const suspend = () =>
    confirm({
      title: `${org.suspended ? 'Activate' : 'Suspend'} ${org.name}?`,
      danger: !org.suspended,
      submit: org.suspended ? 'Activate' : 'Suspend',
      text: org.suspended ? 'Its members may change things again.' : 'Its members may only look at things. Apps run on.',
      lines: [`cf curl /v3/organizations/${org.guid} -X PATCH -d '{"suspended": ${!org.suspended}}'`],
      run: async () => {
        await call('PATCH', '/v3/organizations/' + org.guid, { json: { suspended: !org.suspended } });
        await reload();
      },
    });
  const remove = () =>
    confirm({
      title: `Delete ${org.name}?`,
      submit: 'Delete',
      text: `The org ${org.name} is deleted with its spaces, and with their apps, service instances and routes. This cannot be undone.`,
      lines: [`cf delete-org ${quoted(org.name)} -f`],
      run: async () => {
        await act('DELETE', '/v3/organizations/' + org.guid);
        announce('Deleted');
        go('/orgs');
      },
    });
  return html`
    <button type="button" onClick=${() => open(Rename, { title: 'Rename', org, reload })}>Rename…</button>
    <button type="button" onClick=${suspend}>${org.suspended ? 'Activate…' : 'Suspend…'}</button>
    <button type="button" onClick=${remove} aria-label=${'Delete ' + org.name}>Delete…</button>
  `;
}

function Rename({ org, close, reload }) {
  const [name, setName] = useState(org.name);
  return html`
    <${Sheet}
      title=${'Rename ' + org.name}
      close=${close}
      submit="Rename"
      disabled=${name === org.name}
      lines=${[`cf rename-org ${quoted(org.name)} ${quoted(name)}`]}
      run=${async () => {
        await call('PATCH', '/v3/organizations/' + org.guid, { json: { name } });
        await reload();
      }}
    >
      <${Field} label="Name" required maxlength="255" value=${name} onValue=${setName} />
    <//>
  `;
}

function Spaces({ org, may }) {
  const all = useResource(
    async signal => {
      const [spaces, apps] = await Promise.all([
        list('/v3/spaces?per_page=5000&order_by=name&organization_guids=' + org.guid, { signal }),
        list('/v3/apps?per_page=5000&organization_guids=' + org.guid, { signal }),
      ]);
      return spaces.resources.map(s => ({ ...s, apps: apps.resources.filter(a => a.relationships.space.data.guid === s.guid) }));
    },
    [org.guid],
    ofKind('space app role'),
  );
  const columns = [
    { title: 'Space', cell: s => html`<${Link} to=${'/spaces/' + s.guid} class="strong">${s.name}<//>` },
    {
      title: 'Apps',
      num: true,
      cell: s => html`
        <${Link} to=${'/apps?q=' + encodeURIComponent('space:' + s.name)} aria-label=${`Apps of ${s.name}: ${s.apps.length}`}>
          ${s.apps.length}
        <//>
      `,
    },
    { title: 'Started', num: true, cell: s => String(s.apps.filter(a => a.state === 'STARTED').length) },
    { title: 'Created', cell: s => html`<${Time} at=${s.created_at} />` },
  ];
  return html`
    <${Section}
      title="Spaces"
      actions=${may &&
      html`
        <button type="button" class="primary" onClick=${() => open(CreateSpace, { title: 'Create a space', org })}>Create a space…</button>
      `}
    >
      <${Waiting} of=${all} rows=${3} />
      ${all.data &&
      (all.data.length
        ? html`<${Table} caption="Spaces" columns=${columns} rows=${all.data} />`
        : html`
            <${Empty} title="The org has no spaces." line=${`cf create-space NAME -o ${quoted(org.name)}`}>
              Apps and services are in spaces.
            <//>
          `)}
    <//>
  `;
}

function CreateSpace({ org, close }) {
  const [name, setName] = useState('');
  const run = async () => {
    const s = await call('POST', '/v3/spaces', { json: { name, relationships: { organization: { data: { guid: org.guid } } } } });
    announce(`The space ${name} was created`);
    go('/spaces/' + s.guid);
  };
  return html`
    <${Sheet}
      title=${'Create a space in ' + org.name}
      close=${close}
      submit="Create"
      run=${run}
      lines=${[`cf create-space ${quoted(name || 'SPACE')} -o ${quoted(org.name)}`]}
    >
      <${Field} label="Name" required maxlength="255" autocomplete="off" value=${name} onValue=${setName} />
    <//>
  `;
}

function MembersTab({ org, may }) {
  return html`<${Members} of=${{ org }} may=${may} />`;
}

function Quota({ org }) {
  const all = useResource(
    async signal => {
      const quota = org.relationships.quota?.data?.guid;
      const [usage, all] = await Promise.all([
        get(`/v3/organizations/${org.guid}/usage_summary`, { signal }),
        list('/v3/organization_quotas?per_page=5000', { signal }),
      ]);
      return { usage: usage.usage_summary, quota: all.resources.find(q => q.guid === quota), all: all.resources };
    },
    [org.guid, org.relationships.quota?.data?.guid],
    ofKind('quota org app process route service_instance'),
  );
  const d = all.data;
  return html`
    <${Section}
      title=${d?.quota ? 'Quota ' + d.quota.name : 'Quota'}
      actions=${isAdmin() &&
      d &&
      html`
        <button type="button" onClick=${() => open(SetQuota, { title: 'Set the quota', org, all: d.all, reload: all.reload })}>
          Set another quota…
        </button>
      `}
    >
      <${Waiting} of=${all} rows=${3} />
      ${d && html`<div class="panel"><${QuotaUse} quota=${d.quota} usage=${d.usage} /></div>`}
    <//>
  `;
}

function SetQuota({ org, all, close, reload }) {
  const [quota, setQuota] = useState(org.relationships.quota?.data?.guid ?? '');
  const chosen = all.find(q => q.guid === quota);
  return html`
    <${Sheet}
      title=${'Quota of ' + org.name}
      close=${close}
      submit="Set"
      lines=${[`cf set-org-quota ${quoted(org.name)} ${quoted(chosen?.name ?? '')}`]}
      run=${async () => {
        await call('POST', `/v3/organization_quotas/${quota}/relationships/organizations`, { json: { data: [{ guid: org.guid }] } });
        announce('Set');
        await reload();
      }}
    >
      <${Field} label="Quota" as="select" value=${quota} onValue=${setQuota}>
        ${all.map(q => html`<option key=${q.guid} value=${q.guid}>${q.name}</option>`)}
      <//>
    <//>
  `;
}

function Domains({ org, may }) {
  const all = useResource(signal => list(`/v3/organizations/${org.guid}/domains?per_page=5000`, { signal }), [org.guid], ofKind('domain'));
  const own = d => d.relationships.organization.data?.guid === org.guid;
  const remove = d => () =>
    confirm({
      title: `Delete ${d.name}?`,
      submit: 'Delete',
      text: `The domain ${d.name} and all its routes are deleted.`,
      lines: [`cf delete-private-domain ${quoted(d.name)} -f`],
      run: async () => {
        await act('DELETE', '/v3/domains/' + d.guid);
        await all.reload();
      },
    });
  const columns = [
    { title: 'Domain', cell: d => html`<strong>${d.name}</strong>` },
    {
      title: 'Kind',
      cell: d => (own(d) ? 'private' : d.relationships.organization.data ? 'shared with this org' : d.internal ? 'internal' : 'shared'),
    },
    { title: 'Protocols', cell: d => d.supported_protocols.join(', ') },
    may && {
      title: 'Actions',
      quiet: true,
      cell: d => own(d) && html`<button type="button" onClick=${remove(d)} aria-label=${'Delete ' + d.name}>Delete…</button>`,
    },
  ];
  return html`
    <${Section}
      title="Domains"
      actions=${may &&
      html`
        <button type="button" onClick=${() => open(CreateDomain, { title: 'Create a private domain', org, reload: all.reload })}>
          Create a private domain…
        </button>
      `}
    >
      <${Waiting} of=${all} rows=${3} />
      ${all.data && html`<${Table} caption="Domains" columns=${columns} rows=${all.data.resources} />`}
    <//>
  `;
}

function CreateDomain({ org, close, reload }) {
  const [name, setName] = useState('');
  return html`
    <${Sheet}
      title=${'Create a private domain of ' + org.name}
      close=${close}
      submit="Create"
      lines=${[`cf create-private-domain ${quoted(org.name)} ${quoted(name || 'DOMAIN')}`]}
      run=${async () => {
        await call('POST', '/v3/domains', { json: { name, relationships: { organization: { data: { guid: org.guid } } } } });
        await reload();
      }}
    >
      <${Field} label="Name" required placeholder="apps.example.com" autocomplete="off" value=${name} onValue=${setName} />
    <//>
  `;
}

async function loadSegments(org, signal) {
  const [entitled, everything, standard] = await Promise.all([
    list('/v3/isolation_segments?per_page=5000&organization_guids=' + org.guid, { signal }),
    list('/v3/isolation_segments?per_page=5000', { signal }),
    get(`/v3/organizations/${org.guid}/relationships/default_isolation_segment`, { signal }),
  ]);
  return {
    entitled: entitled.resources,
    others: everything.resources.filter(s => !entitled.resources.some(e => e.guid === s.guid)),
    standard: standard.data?.guid,
  };
}

function segmentActions(org, reload) {
  const setDefault = s => async () => {
    await call('PATCH', `/v3/organizations/${org.guid}/relationships/default_isolation_segment`, { json: { data: s && { guid: s.guid } } });
    announce('Set');
    await reload();
  };
  const choose = s => () =>
    confirm({
      title: s ? `Make ${s.name} the default?` : 'Have no default?',
      danger: false,
      submit: 'Set',
      text: 'Apps of spaces without a segment run there from their next restart.',
      lines: [
        s
          ? `cf set-org-default-isolation-segment ${quoted(org.name)} ${quoted(s.name)}`
          : `cf reset-org-default-isolation-segment ${quoted(org.name)}`,
      ],
      run: setDefault(s),
    });
  const entitle = s => () =>
    confirm({
      title: `Entitle ${org.name} to ${s.name}?`,
      danger: false,
      submit: 'Entitle',
      text: 'Its spaces may then be assigned to the segment.',
      lines: [`cf enable-org-isolation ${quoted(org.name)} ${quoted(s.name)}`],
      run: async () => {
        await call('POST', `/v3/isolation_segments/${s.guid}/relationships/organizations`, { json: { data: [{ guid: org.guid }] } });
        await reload();
      },
    });
  const revoke = s => () =>
    confirm({
      title: `Revoke ${s.name}?`,
      submit: 'Revoke',
      text: `${org.name} is no longer entitled to ${s.name}.`,
      lines: [`cf disable-org-isolation ${quoted(org.name)} ${quoted(s.name)}`],
      run: async () => {
        await call('DELETE', `/v3/isolation_segments/${s.guid}/relationships/organizations/${org.guid}`);
        await reload();
      },
    });
  return { choose, entitle, revoke };
}

function Segments({ org, may }) {
  const all = useResource(signal => loadSegments(org, signal), [org.guid], ofKind('isolation_segment org'));
  const { choose, entitle, revoke } = segmentActions(org, all.reload);
  const d = all.data;
  const columns = [
    { title: 'Segment', cell: s => html`<strong>${s.name}</strong>` },
    { title: 'Default', cell: s => (s.guid === d.standard ? 'yes' : 'no') },
    {
      title: 'Actions',
      quiet: true,
      cell: s => html`
        <span class="actions">
          ${may &&
          html`
            <button
              type="button"
              onClick=${choose(s.guid === d.standard ? null : s)}
              aria-label=${(s.guid === d.standard ? 'Reset the default ' : 'Make the default: ') + s.name}
            >
              ${s.guid === d.standard ? 'Reset…' : 'Make default…'}
            </button>
          `}
          ${isAdmin() && html`<button type="button" onClick=${revoke(s)} aria-label=${'Revoke ' + s.name}>Revoke…</button>`}
        </span>
      `,
    },
  ];
  return html`
    <${Section} title="Isolation segments">
      <${Waiting} of=${all} rows=${2} />
      ${d &&
      (d.entitled.length
        ? html`<${Table} caption="Isolation segments" columns=${columns} rows=${d.entitled} />`
        : html`<p class="muted">The org is entitled to no isolation segment: its apps run on cells of none.</p>`)}
      ${isAdmin() &&
      d?.others.length > 0 &&
      html`
        <p class="labels">
          Entitle it to ${d.others.map(s => html`<button key=${s.guid} type="button" onClick=${entitle(s)}>${s.name}…</button>`)}
        </p>
      `}
    <//>
  `;
}
