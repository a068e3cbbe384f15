// Who has which role in an org or a space: a matrix, whose cells add and remove roles.
import { html, useState } from '../lib/html.js';
import { list, act, call } from '../lib/api.js';
import { useResource } from '../lib/resource.js';
import { ofKind } from '../lib/operations.js';
import { quoted } from '../lib/format.js';
import { Field, Icon, Section } from './basic.js';
import { Waiting } from './table.js';
import { open, confirm, Sheet } from './dialog.js';
import { announce } from './live.js';

// The roles by the CLI's names (CLI: cf set-org-role --help, cf set-space-role --help).
const kinds = {
  org: {
    organization_manager: ['Manager', 'OrgManager'],
    organization_billing_manager: ['Billing manager', 'BillingManager'],
    organization_auditor: ['Auditor', 'OrgAuditor'],
    organization_user: ['User', null],
  },
  space: {
    space_manager: ['Manager', 'SpaceManager'],
    space_developer: ['Developer', 'SpaceDeveloper'],
    space_supporter: ['Supporter', 'SpaceSupporter'],
    space_auditor: ['Auditor', 'SpaceAuditor'],
  },
};

async function load(of, signal) {
  const { resources, included } = await list(
    `/v3/roles?per_page=5000&include=user&${of.space ? 'space_guids=' + of.space.guid : 'organization_guids=' + of.org.guid}`,
    { signal },
  );
  const users = new Map((included.users ?? []).map(u => [u.guid, u]));
  const rows = new Map();
  for (const r of resources) {
    const guid = r.relationships.user.data.guid;
    if (!rows.has(guid)) rows.set(guid, { guid, user: users.get(guid), roles: {} });
    rows.get(guid).roles[r.type] = r;
  }
  return [...rows.values()].sort((a, b) => nameOf(a).localeCompare(nameOf(b)));
}

const nameOf = r => r.user?.username ?? r.user?.presentation_name ?? r.guid;

const line = (verb, of, user, type) => {
  const cli = kinds[of.space ? 'space' : 'org'][type][1];
  if (!cli) return `cf curl /v3/roles -X POST -d '{"type": "${type}", …}'`;
  return of.space
    ? `cf ${verb}-space-role ${quoted(user)} ${quoted(of.org.name)} ${quoted(of.space.name)} ${cli}`
    : `cf ${verb}-org-role ${quoted(user)} ${quoted(of.org.name)} ${cli}`;
};

/** Adds a role. Who gets one in a space becomes a user of the org first, as with cf set-space-role. */
async function add(of, user, type) {
  const give = (kind, place) => call('POST', '/v3/roles', { json: { type: kind, relationships: { user: { data: user }, ...place } } });
  const org = { organization: { data: { guid: of.org.guid } } };
  if (!of.space) return give(type, org);
  await give('organization_user', org).catch(e => {
    if (e.status !== 422 || !/already has/.test(e.message)) throw e;
  });
  return give(type, { space: { data: { guid: of.space.guid } } });
}

/** @param {{of: {org: any, space?: any}, may: boolean}} p may: whether the user may change roles */
export function Members({ of, may }) {
  const types = kinds[of.space ? 'space' : 'org'],
    place = of.space?.name ?? of.org.name;
  const all = useResource(signal => load(of, signal), [of.org.guid, of.space?.guid], ofKind('role user'));
  const toggle = (r, type) => async () => {
    const role = r.roles[type],
      [title] = types[type];
    if (role)
      return confirm({
        title: `Remove a role of ${nameOf(r)}?`,
        submit: 'Remove',
        text: `${nameOf(r)} is no longer ${title.toLowerCase()} of ${place}.`,
        lines: [line('unset', of, nameOf(r), type)],
        run: async () => {
          await act('DELETE', '/v3/roles/' + role.guid);
          announce('The role was removed');
          await all.reload();
        },
      });
    open(Add, { title: 'Add a role', of, user: r, type, reload: all.reload });
  };
  return html`
    <${Section}
      title="Members"
      actions=${may &&
      html`<button type="button" onClick=${() => open(Add, { title: 'Add a member', of, reload: all.reload })}>Add a member…</button>`}
    >
      <${Waiting} of=${all} rows=${3} />
      ${all.data?.length === 0 && html`<p class="muted">Nobody has a role here.</p>`}
      ${all.data?.length > 0 &&
      html`
        <div class="scroll" role="region" tabindex="0" aria-label="Members and roles">
          <table class="matrix">
            <caption class="hidden">Members and roles</caption>
            <thead><tr><th scope="col">User</th>${Object.values(types).map(([t]) => html`<th key=${t} scope="col">${t}</th>`)}</tr></thead>
            <tbody>
              ${all.data.map(
                r => html`
                  <tr key=${r.guid} data-row>
                    <th scope="row">${nameOf(r)}<span class="sub">${r.user?.origin ?? ''}</span></th>
                    ${Object.entries(types).map(
                      ([type, [title]]) => html`
                        <td key=${type}>
                          <${Has} on=${Boolean(r.roles[type])} may=${may} label=${`${title}: ${nameOf(r)}`} run=${toggle(r, type)} />
                        </td>
                      `,
                    )}
                  </tr>
                `,
              )}
            </tbody>
          </table>
        </div>
      `}
    <//>
  `;
}

function Has({ on, may, label, run }) {
  const sign = on ? html`<${Icon} name="ok" />` : html`<span aria-hidden="true">·</span>`;
  if (!may) return html`<span class=${on ? 'has' : 'muted'}>${sign}<span class="hidden">${on ? 'yes' : 'no'}</span></span>`;
  return html`<button type="button" class="has" aria-pressed=${on} aria-label=${label} onClick=${run}>${sign}</button>`;
}

function Add({ of, user: known, type: first, close, reload }) {
  const types = kinds[of.space ? 'space' : 'org'];
  const [name, setName] = useState(known ? nameOf(known) : '');
  const [origin, setOrigin] = useState('');
  const [type, setType] = useState(first ?? Object.keys(types)[of.space ? 1 : 0]);
  const run = async () => {
    await add(of, known ? { guid: known.guid } : { username: name, ...(origin && { origin }) }, type);
    announce(`${name} is ${types[type][0].toLowerCase()} now`);
    await reload();
  };
  return html`
    <${Sheet}
      title=${known ? `Add a role of ${name}` : `Add a member of ${of.space?.name ?? of.org.name}`}
      close=${close}
      submit="Add"
      run=${run}
      lines=${[line('set', of, name || 'USER', type) + (origin ? ' --origin ' + quoted(origin) : '')]}
    >
      ${!known &&
      html`
        <div class="fields">
          <${Field} label="User name" required autocomplete="off" value=${name} onValue=${setName} />
          <${Field} label="Origin" value=${origin} onValue=${setOrigin} note="Only if the name is in several" />
        </div>
      `}
      <${Field} label="Role" as="select" value=${type} onValue=${setType}>
        ${Object.entries(types).map(([t, [title]]) => html`<option key=${t} value=${t}>${title}</option>`)}
      <//>
    <//>
  `;
}
