// One service instance: its last operation, bindings, keys, credentials, and what can be done with it.
import { html, useState, useEffect } from '../lib/html.js';
import { get, list, act } from '../lib/api.js';
import { useResource } from '../lib/resource.js';
import { Link, go } from '../lib/router.js';
import { operate } from '../lib/operations.js';
import { quoted, bytes } from '../lib/format.js';
import { mayIn, readsMachine } from '../lib/roles.js';
import { Head, State, Time, Problem, Skeleton, Section, Lines, Icon, Button } from '../parts/basic.js';
import { Table } from '../parts/table.js';
import { Tabs } from '../parts/tabs.js';
import { Secrets } from '../parts/secret.js';
import { open, confirm } from '../parts/dialog.js';
import { announce } from '../parts/live.js';
import { operation, price } from './services.js';
import { UpdateUserProvided } from './newservice.js';
import { Bind, Key, Share, Update } from './serviceactions.js';
import { Backups, useBackups, builtIn } from './servicebackups.js';
import { Mails, takesMails } from './servicemails.js';
import { Server, Usage, hasServer } from './servicedashboard.js';

async function load(guid, signal) {
  const instance = await get(`/v3/service_instances/${guid}?fields[space]=guid,name&fields[space.organization]=guid,name`, { signal });
  const [space] = instance.included?.spaces ?? [],
    [org] = instance.included?.organizations ?? [];
  const planGUID = instance.relationships.service_plan?.data.guid;
  const none = e => {
    if (e.status === 404) return null;
    throw e;
  };
  const [plan, bindings, shared] = await Promise.all([
    planGUID ? get(`/v3/service_plans/${planGUID}?include=service_offering`, { signal }).catch(none) : null,
    list(`/v3/service_credential_bindings?service_instance_guids=${guid}&include=app&per_page=1000`, { signal }),
    planGUID
      ? get(
          `/v3/service_instances/${guid}/relationships/shared_spaces` +
            `?fields[space]=guid,name,relationships.organization&fields[space.organization]=guid,name`,
          { signal },
        ).catch(none)
      : null,
  ]);
  const apps = new Map((bindings.included.apps ?? []).map(a => [a.guid, a]));
  return {
    instance,
    space,
    org,
    plan,
    offering: plan?.included?.service_offerings?.[0],
    shared: sharedSpaces(shared),
    may: mayIn(instance.relationships.space.data.guid),
    bindings: bindings.resources.filter(b => b.type === 'app').map(b => ({ ...b, app: apps.get(b.relationships.app?.data.guid) })),
    keys: bindings.resources.filter(b => b.type === 'key'),
  };
}

function sharedSpaces(doc) {
  const spaces = new Map((doc?.included?.spaces ?? []).map(s => [s.guid, s])),
    orgs = new Map((doc?.included?.organizations ?? []).map(o => [o.guid, o.name]));
  return (doc?.data ?? []).map(({ guid }) => ({
    guid,
    name: spaces.get(guid)?.name ?? guid,
    org: orgs.get(spaces.get(guid)?.relationships?.organization.data.guid),
  }));
}

const concerns = guid => c =>
  (c.kind === 'service_instance' && (c.guid === guid || c.guid === '*')) ||
  c.kind === 'service_binding' ||
  c.kind === 'service_plan' ||
  c.kind === 'role';

/** The screen /services/instances/GUID/TAB. */
export default function Service({ params: { guid, tab = '' } }) {
  const of = useResource(signal => load(guid, signal), [guid], concerns(guid));
  const i = of.data?.instance;
  useEffect(() => {
    document.title = i ? `${i.name} · cupola` : 'cupola';
  }, [i?.name]);
  useEffect(() => {
    if (of.error?.status === 404 && i) go('/services', { replace: true });
  }, [of.error]); // it was deleted meanwhile
  if (!of.data)
    return of.error ? html`<${Head} title="Service instance" /><${Problem} error=${of.error} />` : html`<${Skeleton} rows=${6} />`;
  const { space, org, plan, offering } = of.data;
  const logged = builtIn(offering) && hasServer(offering);
  const to = (slug, title) => ({ to: `/services/instances/${guid}${slug && '/' + slug}`, title, on: tab === slug });
  const failed = i.last_operation?.state === 'failed';
  return html`
    <div class="crumbs"><${Link} to="/services">Services<//> / ${org?.name} / ${space?.name}</div>
    <${Head} title=${i.name} note=${html`<${State} value=${operation(i)} />`}><${Actions} of=${of.data} reload=${of.reload} /><//>
    <${Problem} error=${of.error} />
    ${i.last_operation?.description &&
    i.last_operation.state !== 'succeeded' &&
    html`
      <div class=${failed ? 'problem' : 'notice'} role=${failed ? 'alert' : 'status'}>
        <${Icon} name=${failed ? 'bad' : 'wait'} />
        <span class="pre">${i.last_operation.description}</span>
      </div>
    `}
    ${i.upgrade_available &&
    html`
      <div class="notice">
        <${Icon} name="wait" />
        <span>
          The broker offers an upgrade
          ${plan?.maintenance_info?.version
            ? ` from ${i.maintenance_info?.version ?? 'an unknown version'} to ${plan.maintenance_info.version}`
            : ''}
          . ${plan?.maintenance_info?.description ?? ''}
        </span>
      </div>
    `}
    ${logged && html`<${Tabs} label="Service instance" tabs=${[to('', 'Overview'), to('log', 'Log')]} />`}
    ${tab === ''
      ? html`<${Overview} of=${of.data} reload=${of.reload} />`
      : logged && tab === 'log'
        ? html`<${ServiceLog} key=${i.guid} instance=${i} />`
        : html`<${Problem} error=${new Error('There is no such tab.')} />`}
  `;
}

function Overview({ of, reload }) {
  const { instance: i, plan, offering } = of;
  const backups = useBackups(i.guid, offering);
  return html`
    <${Facts} of=${of} offering=${offering} plan=${plan} backups=${backups.data} />
    ${builtIn(offering) && html`<${Usage} of=${of} />`}
    <${Bindings} of=${of} reload=${reload} />
    ${i.type === 'managed' && html`<${Keys} of=${of} reload=${reload} /><${Shared} of=${of} reload=${reload} />`}
    ${takesMails(offering) && of.may.credentials && html`<${Mails} of=${of} />`}
    ${builtIn(offering) && html`<${Backups} of=${of} all=${backups} reload=${reload} />`}
    <${Lines} lines=${[`cf service ${quoted(i.name)}`, `cf curl /v3/service_instances/${i.guid}`]} />
  `;
}

// The log of the server. What shows it is loaded when it is asked for.
function ServiceLog({ instance: i }) {
  const [part, setPart] = useState({});
  useEffect(() => {
    import('./logs.js').then(
      m => setPart({ Log: m.Log }),
      error => setPart({ error }),
    );
  }, []);
  if (!part.Log) return html`<${Problem} error=${part.error} />`;
  const name = quoted(i.name);
  return html`
    <${part.Log}
      of=${i}
      lines=${{ follow: `cupola services logs ${name} --follow`, recent: `cupola services logs ${name}` }}
      silent="The server has said nothing yet."
    />
  `;
}

// How large the data of an instance of the built-in broker is, which administrators may ask.
function DataSize({ guid }) {
  const all = useResource(signal => operate('broker/status', {}, undefined, signal), [guid]);
  const found = all.data?.Instances.find(i => i.GUID === guid);
  return found && html`<div><dt>Data on disk</dt><dd>${bytes(found.UsedBytes)}</dd></div>`;
}

function Facts({ of, offering, plan, backups }) {
  const { instance: i, may } = of;
  return html`
    <dl class="facts">
      <div><dt>Offering</dt><dd>${offering ? offering.name : i.type === 'user-provided' ? 'user-provided' : '–'}</dd></div>
      ${plan && html`<div><dt>Plan</dt><dd>${plan.name} <span class="muted">${price(plan)}</span></dd></div>`}
      ${i.tags?.length > 0 && html`<div><dt>Tags</dt><dd>${i.tags.join(', ')}</dd></div>`}
      ${builtIn(offering) && html`<${Server} of=${of} backups=${backups} />`}
      ${i.dashboard_url?.startsWith('http') &&
      !builtIn(offering) &&
      html`<div><dt>Dashboard</dt><dd><a href=${i.dashboard_url} target="_blank" rel="noreferrer">Open</a></dd></div>`}
      ${i.syslog_drain_url && html`<div><dt>Syslog drain</dt><dd class="mono">${i.syslog_drain_url}</dd></div>`}
      ${i.route_service_url && html`<div><dt>Route service</dt><dd class="mono">${i.route_service_url}</dd></div>`}
      ${i.type === 'managed' && readsMachine() && html`<${DataSize} guid=${i.guid} />`}
      <div><dt>Created</dt><dd><${Time} at=${i.created_at} /></dd></div>
      ${i.type === 'user-provided' &&
      may.credentials &&
      html`
        <div>
          <dt>Credentials</dt>
          <dd><${Ask} what="the credentials" path=${`/v3/service_instances/${i.guid}/credentials`} /></dd>
        </div>
      `}
      ${i.type === 'managed' &&
      offering?.broker_catalog.features.instances_retrievable &&
      html`
        <div>
          <dt>Parameters</dt>
          <dd><${Ask} what="the parameters" path=${`/v3/service_instances/${i.guid}/parameters`} /></dd>
        </div>
      `}
    </dl>
  `;
}

function Actions({ of, reload }) {
  const { instance: i, plan, offering, may, bindings, keys } = of,
    name = quoted(i.name);
  if (!may.edit) return null;
  const path = '/v3/service_instances/' + i.guid;
  const remove = () =>
    confirm({
      title: `Delete ${i.name}?`,
      submit: 'Delete',
      lines: [`cf delete-service ${name} -f`],
      text:
        `The service instance ${i.name} is deleted${i.type === 'managed' ? ' with its data' : ''}` +
        `${builtIn(offering) ? ' and its backups' : ''}.` +
        `${bindings.length + keys.length ? ` Its ${bindings.length} bindings and ${keys.length} keys are deleted first.` : ''}` +
        ` This cannot be undone.`,
      run: async () => {
        await act('DELETE', path);
        announce(`${i.name} was deleted`);
        go('/services');
      },
    });
  const upgrade = () =>
    confirm({
      title: `Upgrade ${i.name}?`,
      danger: false,
      submit: 'Upgrade',
      lines: [`cf upgrade-service ${name} -f`],
      text: `The broker upgrades ${i.name} to version ${plan.maintenance_info.version}. It may not be available meanwhile.`,
      run: async () => {
        await act('PATCH', path, { maintenance_info: { version: plan.maintenance_info.version } });
        await reload();
      },
    });
  const edit = async () => {
    if (i.type === 'user-provided')
      open(UpdateUserProvided, { title: 'Update ' + i.name, instance: i, credentials: await get(path + '/credentials'), reload });
    else open(Update, { title: 'Update ' + i.name, of, reload, wide: true });
  };
  return html`
    <button type="button" class="primary" onClick=${() => open(Bind, { title: 'Bind an app', of, reload })}>Bind to an app…</button>
    <${Button} run=${edit}>Update…<//>
    ${i.upgrade_available && html`<button type="button" onClick=${upgrade}>Upgrade…</button>`}
    ${offering?.shareable &&
    html`<button type="button" onClick=${() => open(Share, { title: 'Share ' + i.name, of, reload })}>Share…</button>`}
    <button type="button" onClick=${remove} aria-label=${'Delete ' + i.name}>Delete…</button>
  `;
}

function Ask({ what, path }) {
  return html`<${Secrets} what=${what} line=${'cf curl ' + path} load=${() => get(path)} />`;
}

function Credentials({ what, of }) {
  const path = `/v3/service_credential_bindings/${of.guid}/details`;
  const load = async () => {
    const d = await get(path);
    return { ...d.credentials, ...(d.syslog_drain_url && { syslog_drain_url: d.syslog_drain_url }) };
  };
  return html`<${Secrets} what=${what} line=${'cf curl ' + path} load=${load} />`;
}

const bindingOperation = b => html`
  <${State} value=${operation(b)} />
  ${b.last_operation?.description && html`<span class="sub">${b.last_operation.description}</span>`}
`;

function Bindings({ of, reload }) {
  const { instance: i, bindings, may } = of;
  const unbind = b => () =>
    confirm({
      title: `Unbind ${b.app?.name ?? 'the app'}?`,
      submit: 'Unbind',
      text: `${b.app?.name ?? 'The app'} loses its credentials of ${i.name} at its next start; the broker may revoke them at once.`,
      lines: [`cf unbind-service ${quoted(b.app?.name ?? 'APP')} ${quoted(i.name)}`],
      run: async () => {
        await act('DELETE', '/v3/service_credential_bindings/' + b.guid);
        announce('Unbound');
        await reload();
      },
    });
  const columns = [
    {
      title: 'App',
      cell: b =>
        b.app
          ? html`<${Link} to=${'/apps/' + b.app.guid} class="strong">${b.app.name}<//>`
          : html`<span class="muted">an app of another space</span>`,
    },
    { title: 'Binding', cell: b => b.name ?? '–' },
    { title: 'State', cell: bindingOperation },
    { title: 'Created', cell: b => html`<${Time} at=${b.created_at} />` },
    may.credentials && {
      title: 'Credentials',
      cell: b => html`<${Credentials} what=${'the credentials of ' + (b.app?.name ?? 'the binding')} of=${b} />`,
    },
    may.operate && {
      title: 'Actions',
      quiet: true,
      cell: b => html`<button type="button" onClick=${unbind(b)} aria-label=${'Unbind ' + (b.app?.name ?? 'the app')}>Unbind…</button>`,
    },
  ];
  return html`
    <${Section} title="Bound apps">
      ${bindings.length
        ? html`<${Table} caption="Bound apps" columns=${columns} rows=${bindings} />`
        : html`<p class="muted">No app is bound to it.</p>`}
    <//>
  `;
}

function Keys({ of, reload }) {
  const { instance: i, keys, may } = of;
  const remove = k => () =>
    confirm({
      title: `Delete the key ${k.name}?`,
      submit: 'Delete',
      text: `Who uses the credentials of ${k.name} loses access.`,
      lines: [`cf delete-service-key ${quoted(i.name)} ${quoted(k.name)} -f`],
      run: async () => {
        await act('DELETE', '/v3/service_credential_bindings/' + k.guid);
        announce('Deleted');
        await reload();
      },
    });
  const columns = [
    { title: 'Key', cell: k => html`<strong>${k.name}</strong>` },
    { title: 'State', cell: bindingOperation },
    { title: 'Created', cell: k => html`<${Time} at=${k.created_at} />` },
    may.credentials && { title: 'Credentials', cell: k => html`<${Credentials} what=${'the credentials of ' + k.name} of=${k} />` },
    may.edit && {
      title: 'Actions',
      quiet: true,
      cell: k => html`<button type="button" onClick=${remove(k)} aria-label=${'Delete the key ' + k.name}>Delete…</button>`,
    },
  ];
  return html`
    <${Section}
      title="Keys"
      actions=${may.edit &&
      html`<button type="button" onClick=${() => open(Key, { title: 'Create a key', of, reload })}>Create a key…</button>`}
    >
      ${keys.length
        ? html`<${Table} caption="Service keys" columns=${columns} rows=${keys} />`
        : html`<p class="muted">There are no keys: credentials for people and programs outside.</p>`}
    <//>
  `;
}

function Shared({ of, reload }) {
  const { instance: i, shared, may } = of;
  if (!shared.length) return null;
  const unshare = s => () =>
    confirm({
      title: `Stop sharing with ${s.name}?`,
      submit: 'Unshare',
      text: `The bindings of apps in ${s.org ?? ''} / ${s.name} to ${i.name} are deleted.`,
      lines: [`cf unshare-service ${quoted(i.name)} -s ${quoted(s.name)}${s.org ? ' -o ' + quoted(s.org) : ''} -f`],
      run: async () => {
        await act('DELETE', `/v3/service_instances/${i.guid}/relationships/shared_spaces/${s.guid}`);
        await reload();
      },
    });
  const columns = [
    { title: 'Space', cell: s => html`${s.org ? s.org + ' / ' : ''}${s.name}` },
    may.edit && {
      title: 'Actions',
      quiet: true,
      cell: s => html`<button type="button" onClick=${unshare(s)} aria-label=${'Unshare with ' + s.name}>Unshare…</button>`,
    },
  ];
  return html`<${Section} title="Shared with"><${Table} caption="Spaces that it is shared with" columns=${columns} rows=${shared} /><//>`;
}
