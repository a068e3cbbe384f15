// Orgs and their spaces.
import { html, useState } from '../lib/html.js';
import { list, call } from '../lib/api.js';
import { useResource } from '../lib/resource.js';
import { ofKind } from '../lib/operations.js';
import { Link, go } from '../lib/router.js';
import { count, quoted, megabytes } from '../lib/format.js';
import { isAdmin } from '../lib/roles.js';
import { Head, State, Empty, Lines, Field, Icon } from '../parts/basic.js';
import { Table, Waiting, useFilter } from '../parts/table.js';
import { open, Sheet } from '../parts/dialog.js';
import { announce } from '../parts/live.js';

async function load(signal) {
  const [orgs, spaces, quotas] = await Promise.all([
    list('/v3/organizations?per_page=5000&order_by=name', { signal }),
    list('/v3/spaces?per_page=5000&order_by=name', { signal }),
    list('/v3/organization_quotas?per_page=5000', { signal }),
  ]);
  const named = new Map(quotas.resources.map(q => [q.guid, q]));
  return orgs.resources.map(o => ({
    guid: o.guid,
    org: o,
    quota: named.get(o.relationships.quota?.data?.guid),
    spaces: spaces.resources.filter(s => s.relationships.organization.data.guid === o.guid),
  }));
}

/** The screen /orgs. */
export default function Orgs() {
  const all = useResource(load, [], ofKind('org space quota role'));
  const { found, input, query } = useFilter(
    all.data,
    r => `${r.org.name} ${r.spaces.map(s => s.name).join(' ')}`,
    'Filter orgs and spaces',
  );
  const columns = [
    {
      title: 'Org',
      cell: r => html`
        <${Link} to=${'/orgs/' + r.guid} class="strong">${r.org.name}<//>
        ${r.org.suspended && html` <${State} value="SUSPENDED" />`}
      `,
    },
    {
      title: 'Spaces',
      cell: r =>
        r.spaces.length
          ? html`<span class="labels">${r.spaces.map(s => html`<${Link} key=${s.guid} to=${'/spaces/' + s.guid}>${s.name}<//>`)}</span>`
          : html`<span class="muted">none</span>`,
    },
    {
      title: 'Quota',
      cell: r =>
        r.quota
          ? html`
              ${r.quota.name}
              <span class="sub">
                ${r.quota.apps.total_memory_in_mb === null ? 'unlimited memory' : megabytes(r.quota.apps.total_memory_in_mb) + ' memory'}
              </span>
            `
          : '–',
    },
  ];
  return html`
    <${Head}
      title="Orgs and spaces"
      note=${all.data &&
      html`
        <span class="muted" role="status">
          ${query ? `${found.length} of ${count(all.data.length, 'org')}` : count(all.data.length, 'org')}
        </span>
      `}
    >
      ${isAdmin() &&
      html`
        <button type="button" class="primary" onClick=${() => open(CreateOrg, { title: 'Create an org' })}>
          <${Icon} name="plus" />
          Create an org…
        </button>
      `}
    <//>
    <${Waiting} of=${all} />
    ${all.data?.length === 0 &&
    html`<${Empty} title="You are in no org yet." line="cf orgs">An org's manager or an administrator gives you a role.<//>`}
    ${all.data?.length > 0 && html`<div class="toolbar">${input}</div><${Table} caption="Orgs" columns=${columns} rows=${found} />`}
    <${Lines} lines=${['cf orgs', 'cf spaces']} />
  `;
}

function CreateOrg({ close }) {
  const [name, setName] = useState('');
  const [quota, setQuota] = useState('');
  const quotas = useResource(signal => list('/v3/organization_quotas?per_page=5000', { signal }), []);
  const run = async () => {
    const o = await call('POST', '/v3/organizations', { json: { name } });
    if (quota) await call('POST', `/v3/organization_quotas/${quota}/relationships/organizations`, { json: { data: [{ guid: o.guid }] } });
    announce(`The org ${name} was created`);
    go('/orgs/' + o.guid);
  };
  const chosen = quotas.data?.resources.find(q => q.guid === quota);
  return html`
    <${Sheet}
      title="Create an org"
      close=${close}
      submit="Create"
      run=${run}
      lines=${[`cf create-org ${quoted(name || 'ORG')}${chosen ? ' -q ' + quoted(chosen.name) : ''}`]}
    >
      <${Field} label="Name" required maxlength="255" autocomplete="off" value=${name} onValue=${setName} />
      <${Field} label="Quota" as="select" value=${quota} onValue=${setQuota}>
        <option value="">the default</option>
        ${quotas.data?.resources.map(q => html`<option key=${q.guid} value=${q.guid}>${q.name}</option>`)}
      <//>
    <//>
  `;
}
