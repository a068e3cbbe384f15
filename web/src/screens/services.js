// Services: the instances that the user sees, the marketplace, and for administrators the brokers.
import { html } from '../lib/html.js';
import { list, act, call } from '../lib/api.js';
import { useResource } from '../lib/resource.js';
import { ofKind } from '../lib/operations.js';
import { count, quoted } from '../lib/format.js';
import { isAdmin, readsAll, mayPush } from '../lib/roles.js';
import { Link } from '../lib/router.js';
import { Head, State, Time, Empty, Lines, Problem, Icon } from '../parts/basic.js';
import { Table, useFilter, Waiting } from '../parts/table.js';
import { Tabs } from '../parts/tabs.js';
import { open, confirm } from '../parts/dialog.js';
import { announce } from '../parts/live.js';
import { Create, CreateUserProvided } from './newservice.js';
import { RegisterBroker, Visibility } from './brokers.js';

/** An operation's state in one text, like "create in progress". */
export const operation = i => (i.last_operation ? `${i.last_operation.type} ${i.last_operation.state}` : 'create succeeded');

const instanceFields =
  'fields[space]=guid,name,relationships.organization&fields[space.organization]=guid,name' +
  '&fields[service_plan]=guid,name,relationships.service_offering&fields[service_plan.service_offering]=guid,name';

async function loadInstances(signal) {
  const [{ resources, included }, bindings] = await Promise.all([
    list('/v3/service_instances?per_page=5000&' + instanceFields, { signal }),
    list('/v3/service_credential_bindings?per_page=5000&type=app', { signal }),
  ]);
  const by = docs => new Map((docs ?? []).map(d => [d.guid, d]));
  const plans = by(included.service_plans),
    offerings = by(included.service_offerings),
    spaces = by(included.spaces),
    orgs = by(included.organizations);
  const bound = new Map();
  for (const b of bindings.resources) {
    const g = b.relationships.service_instance.data.guid;
    bound.set(g, (bound.get(g) ?? 0) + 1);
  }
  return resources
    .map(i => {
      const plan = plans.get(i.relationships.service_plan?.data.guid),
        space = spaces.get(i.relationships.space.data.guid);
      return {
        guid: i.guid,
        instance: i,
        plan,
        offering: offerings.get(plan?.relationships.service_offering.data.guid),
        space,
        org: orgs.get(space?.relationships.organization.data.guid),
        bound: bound.get(i.guid) ?? 0,
      };
    })
    .sort((a, b) => a.instance.name.localeCompare(b.instance.name));
}

const titles = { '': 'Instances', marketplace: 'Marketplace', brokers: 'Brokers' };

/** The screen /services/TAB. */
export default function Services({ params: { tab = '' } }) {
  const tabs = Object.keys(titles).filter(t => t !== 'brokers' || readsAll());
  return html`
    <${Head} title="Services">
      ${mayPush() &&
      html`
        <button type="button" onClick=${() => open(CreateUserProvided, { title: 'Create a user-provided service instance' })}>
          User-provided…
        </button>
        <${Link} class="button primary" to="/services/marketplace">New instance<//>
      `}
    <//>
    <${Tabs} label="Services" tabs=${tabs.map(t => ({ to: '/services' + (t && '/' + t), title: titles[t], on: t === tab }))} />
    ${tab === ''
      ? html`<${Instances} />`
      : tab === 'marketplace'
        ? html`<${Marketplace} />`
        : tab === 'brokers' && readsAll()
          ? html`<${Brokers} />`
          : html`<${Problem} error=${new Error('There is no such page.')} />`}
  `;
}

function Instances() {
  const all = useResource(loadInstances, [], ofKind('service_instance service_binding service_plan service_offering space role'));
  const { found, input, query } = useFilter(
    all.data,
    r => `${r.instance.name} ${r.space?.name} ${r.org?.name} ${r.offering?.name ?? 'user-provided'} ${r.plan?.name ?? ''}`,
    'Filter instances',
  );
  const columns = [
    {
      title: 'Instance',
      cell: r => html`
        <${Link} to=${'/services/instances/' + r.guid} class="strong">${r.instance.name}<//>
        <span class="sub">${r.org?.name} / ${r.space?.name}</span>
      `,
    },
    { title: 'Offering', cell: r => (r.offering ? r.offering.name : html`<span class="muted">user-provided</span>`) },
    { title: 'Plan', cell: r => r.plan?.name ?? '–' },
    { title: 'Bound apps', num: true, cell: r => String(r.bound) },
    {
      title: 'Last operation',
      cell: r => html`
        <${State} value=${operation(r.instance)} title=${r.instance.last_operation?.description} />
        ${r.instance.upgrade_available && html` <span class="muted">upgrade available</span>`}
      `,
    },
    { title: 'Changed', cell: r => html`<${Time} at=${r.instance.last_operation?.updated_at ?? r.instance.updated_at} />` },
  ];
  return html`
    <${Waiting} of=${all} />
    ${all.data?.length === 0 &&
    html`
      <${Empty} title="You see no service instances yet." line="cf create-service SERVICE PLAN NAME">
        Choose a service in the <${Link} to="/services/marketplace">marketplace<//>.
      <//>
    `}
    ${all.data?.length > 0 &&
    html`
      <div class="toolbar">
        ${input}
        <span class="muted" role="status">
          ${query ? `${found.length} of ${count(all.data.length, 'instance')}` : count(all.data.length, 'instance')}
        </span>
      </div>
      <${Table} caption="Service instances" columns=${columns} rows=${found} />
    `}
    <${Lines} lines=${['cf services', 'cf curl /v3/service_instances']} />
  `;
}

/** What a plan costs, in words. */
export function price(plan) {
  if (plan.costs.length) return plan.costs.map(c => `${c.amount} ${c.currency} ${c.unit.toLowerCase()}`).join(', ');
  return plan.free ? 'free' : 'paid';
}

async function loadMarketplace(signal) {
  const [offerings, plans] = await Promise.all([
    list('/v3/service_offerings?per_page=5000&fields[service_broker]=guid,name', { signal }),
    list('/v3/service_plans?per_page=5000', { signal }),
  ]);
  const brokers = new Map((offerings.included.service_brokers ?? []).map(b => [b.guid, b.name]));
  return offerings.resources
    .map(o => ({
      offering: o,
      broker: brokers.get(o.relationships.service_broker.data.guid),
      plans: plans.resources
        .filter(p => p.relationships.service_offering.data.guid === o.guid)
        .sort((a, b) => b.free - a.free || a.name.localeCompare(b.name)),
    }))
    .sort((a, b) => a.offering.name.localeCompare(b.offering.name));
}

function Marketplace() {
  const all = useResource(loadMarketplace, [], ofKind('service_offering service_plan service_broker'));
  const { found, input } = useFilter(
    all.data,
    r => `${r.offering.name} ${r.offering.description} ${r.offering.tags.join(' ')} ${r.plans.map(p => p.name).join(' ')}`,
    'Filter offerings',
  );
  return html`
    <${Waiting} of=${all} />
    ${all.data?.length === 0 &&
    html`
      <${Empty} title="The marketplace is empty." line=${isAdmin() ? 'cf create-service-broker NAME USER PASSWORD URL' : 'cf marketplace'}>
        ${isAdmin()
          ? 'Register a broker, or start the daemon with --data-services postgres,redis,files.'
          : 'An administrator registers brokers and lets your org see their plans.'}
      <//>
    `}
    ${all.data?.length > 0 &&
    html`
      <div class="toolbar">${input}</div>
      ${found.length === 0 && html`<${Empty} title="No offering has these words.">Change the filter.<//>`}
      <ul class="offerings">${found.map(r => html`<${Offering} key=${r.offering.guid} row=${r} reload=${all.reload} />`)}</ul>
    `}
    <${Lines} lines=${['cf marketplace', found?.length === 1 && `cf marketplace -e ${quoted(found[0].offering.name)}`]} />
  `;
}

function Offering({ row, reload }) {
  const { offering: o, plans, broker } = row;
  const create = plan => () => open(Create, { title: `Create an instance of ${o.name}`, offering: o, plans, plan, wide: true });
  const columns = [
    { title: 'Plan', cell: p => html`<strong>${p.name}</strong><span class="sub">${p.description}</span>` },
    { title: 'Price', cell: p => html`<span class=${p.costs.length || !p.free ? '' : 'muted'}>${price(p)}</span>` },
    readsAll() && {
      title: 'Visible to',
      cell: p =>
        !isAdmin()
          ? p.visibility_type
          : html`
              <button
                type="button"
                class="quiet"
                onClick=${() => open(Visibility, { title: `Who may use ${p.name}`, plan: p, offering: o, reload })}
                aria-label=${`Visible to ${p.visibility_type}: change for ${p.name}`}
              >
                ${p.visibility_type}
              </button>
            `,
    },
    mayPush() && {
      title: 'Actions',
      quiet: true,
      cell: p =>
        p.available
          ? html`
              <button type="button" onClick=${create(p)} aria-label=${`Create an instance of ${o.name}, plan ${p.name}`}>Create…</button>
            `
          : html`<span class="muted">no longer offered</span>`,
    },
  ];
  return html`
    <li class="panel offering">
      <div class="offering-head">
        <div><h2>${o.name}</h2><p class="muted">${o.description}</p></div>
        ${o.documentation_url?.startsWith('http') &&
        html`<a href=${o.documentation_url} target="_blank" rel="noreferrer">Documentation</a>`}
      </div>
      <p class="labels">
        ${o.tags.map(t => html`<span key=${t} class="label">${t}</span>`)}
        <span class="muted">${broker && `broker ${broker}`}${o.shareable ? ' · can be shared' : ''}</span>
      </p>
      ${plans.length
        ? html`<${Table} caption=${'Plans of ' + o.name} columns=${columns} rows=${plans} />`
        : html`<p class="muted">You see none of its plans.</p>`}
    </li>
  `;
}

function Brokers() {
  const all = useResource(signal => list('/v3/service_brokers?per_page=5000', { signal }), [], ofKind('service_broker job'));
  const refresh = b => () =>
    confirm({
      title: `Fetch the catalog of ${b.name}?`,
      text: `The broker ${b.name} is asked for its catalog: offerings and plans that it no longer has disappear from the marketplace.`,
      submit: 'Fetch the catalog',
      danger: false,
      lines: [`cf curl /v3/service_brokers/${b.guid} -X PATCH -d ${quoted(JSON.stringify({ url: b.url }))}`],
      run: async () => {
        await act('PATCH', '/v3/service_brokers/' + b.guid, { url: b.url }); // a change of its URL or password reads the catalog
        announce('The catalog is up to date');
      },
    });
  const remove = b => () =>
    confirm({
      title: `Delete ${b.name}?`,
      text: `The broker ${b.name} goes, with its offerings and plans. It must have no service instances.`,
      submit: 'Delete',
      lines: [`cf delete-service-broker ${quoted(b.name)} -f`],
      run: () => act('DELETE', '/v3/service_brokers/' + b.guid),
    });
  const columns = [
    { title: 'Broker', cell: b => html`<strong>${b.name}</strong>` },
    { title: 'URL', cell: b => html`<span class="mono">${b.url}</span>` },
    { title: 'Scope', cell: b => (b.relationships.space?.data ? 'one space' : 'all') },
    { title: 'Changed', cell: b => html`<${Time} at=${b.updated_at} />` },
    isAdmin() && {
      title: 'Actions',
      quiet: true,
      cell: b => html`
        <span class="actions">
          <button type="button" onClick=${refresh(b)} aria-label=${'Fetch the catalog of ' + b.name}>Catalog…</button>
          <button type="button" onClick=${remove(b)} aria-label=${'Delete ' + b.name}>Delete…</button>
        </span>
      `,
    },
  ];
  return html`
    ${isAdmin() &&
    html`
      <div class="toolbar">
        <button type="button" class="primary" onClick=${() => open(RegisterBroker, { title: 'Register a broker' })}>
          <${Icon} name="plus" />
          Register a broker…
        </button>
      </div>
    `}
    <${Waiting} of=${all} />
    ${all.data?.resources.length === 0 &&
    html`
      <${Empty} title="There are no brokers." line="cf create-service-broker NAME USER PASSWORD URL">
        A broker of the Open Service Broker API offers services to all.
      <//>
    `}
    ${all.data?.resources.length > 0 && html`<${Table} caption="Service brokers" columns=${columns} rows=${all.data.resources} />`}
    <${Lines} lines=${['cf service-brokers']} />
  `;
}

/** Calls, and answers the answer's document without waiting for a job. */
export const begin = async (method, path, json) => {
  const text = await (await call(method, path, { json, whole: true })).text();
  return text ? JSON.parse(text) : null;
};
