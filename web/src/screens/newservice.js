// Dialogs that create service instances: of a plan, with a form made of its schema, or user-provided.
import { html, useState } from '../lib/html.js';
import { among, list, call } from '../lib/api.js';
import { useResource } from '../lib/resource.js';
import { go } from '../lib/router.js';
import { quoted } from '../lib/format.js';
import { mayIn } from '../lib/roles.js';
import { Field, Problem } from '../parts/basic.js';
import { Sheet } from '../parts/dialog.js';
import { Parameters, defaults, commandJSON } from '../parts/schemaform.js';
import { announce } from '../parts/live.js';
import { price } from './services.js';

const words = text =>
  text
    .split(',')
    .map(t => t.trim())
    .filter(Boolean);

/** The spaces in which the user may create things, by name. */
export async function editableSpaces(signal) {
  const { resources, included } = await list('/v3/spaces?per_page=5000&include=organization', { signal });
  const orgs = new Map((included.organizations ?? []).map(o => [o.guid, o.name]));
  return resources
    .filter(s => mayIn(s.guid).edit)
    .map(s => ({ guid: s.guid, name: s.name, org: orgs.get(s.relationships.organization.data.guid) }))
    .sort((a, b) => a.org.localeCompare(b.org) || a.name.localeCompare(b.name));
}

/** A choice of spaces. */
export function SpaceField({ spaces, value, onValue, label = 'Space' }) {
  return html`
    <${Problem} error=${spaces.error} />
    <${Field} label=${label} as="select" required value=${value} onValue=${onValue}>
      ${!spaces.data && html`<option value="">…</option>`}
      ${spaces.data?.map(s => html`<option key=${s.guid} value=${s.guid}>${s.org} / ${s.name}</option>`)}
    <//>
  `;
}

/** The GUID of an instance that was just asked for. */
async function created(name, space) {
  const { resources } = await list(`/v3/service_instances?names=${among([name])}&space_guids=${space}`);
  return resources[0]?.guid;
}

/** @param {{offering: any, plans: any[], plan: any, close: () => void}} p */
export function Create({ offering, plans, plan: first, close }) {
  const [plan, setPlan] = useState(first);
  const [name, setName] = useState('');
  const [chosen, setSpace] = useState('');
  const [tags, setTags] = useState('');
  const schema = plan.schemas.service_instance.create.parameters;
  const [parameters, setParameters] = useState({ object: defaults(schema) });
  const spaces = useResource(editableSpaces, []);
  const space = chosen || spaces.data?.[0]?.guid || '';
  const where = spaces.data?.find(s => s.guid === space);
  const choose = guid => {
    const p = plans.find(x => x.guid === guid);
    setPlan(p);
    setParameters({ object: defaults(p.schemas.service_instance.create.parameters) });
  };
  const given = Object.keys(parameters.object).length ? parameters.object : undefined;
  const run = async () => {
    await call('POST', '/v3/service_instances', {
      json: {
        type: 'managed',
        name,
        tags: words(tags),
        parameters: given,
        relationships: { space: { data: { guid: space } }, service_plan: { data: { guid: plan.guid } } },
      },
    });
    announce(`${name} is being created`);
    const guid = await created(name, space);
    if (guid) go('/services/instances/' + guid);
  };
  const line =
    `cf create-service ${quoted(offering.name)} ${quoted(plan.name)} ${quoted(name || 'NAME')}` +
    `${given ? ` -c ${quoted(commandJSON(schema, given))}` : ''}${tags ? ` -t ${quoted(tags)}` : ''}`;
  return html`
    <${Sheet}
      title=${`Create an instance of ${offering.name}`}
      close=${close}
      submit="Create"
      run=${run}
      disabled=${Boolean(parameters.error)}
      lines=${[where && `cf target -o ${quoted(where.org)} -s ${quoted(where.name)}`, line]}
    >
      <div class="fields">
        <${Field} label="Name" required maxlength="255" autocomplete="off" value=${name} onValue=${setName} />
        <${SpaceField} spaces=${spaces} value=${space} onValue=${setSpace} />
        <${Field} label="Plan" as="select" value=${plan.guid} onValue=${choose} note=${plan.description}>
          ${plans.filter(p => p.available).map(p => html`<option key=${p.guid} value=${p.guid}>${p.name} (${price(p)})</option>`)}
        <//>
        <${Field} label="Tags" value=${tags} onValue=${setTags} note="Separated by commas" />
      </div>
      <${Parameters} key=${plan.guid} schema=${schema} value=${parameters} onValue=${setParameters} />
    <//>
  `;
}

/** What a user-provided instance has: a form whose values become a request. */
function useUserProvided(of = {}) {
  const [text, setText] = useState(of.credentials ? JSON.stringify(of.credentials, null, 2) : '');
  const [drain, setDrain] = useState(of.syslog_drain_url ?? '');
  const [route, setRoute] = useState(of.route_service_url ?? '');
  const [tags, setTags] = useState((of.tags ?? []).join(', '));
  let credentials, error;
  try {
    credentials = text.trim() ? JSON.parse(text) : {};
  } catch (e) {
    error = e.message;
  }
  const form = html`
    <${Field}
      label="Credentials, as JSON"
      as="textarea"
      rows="5"
      spellcheck=${false}
      placeholder='{"uri": "…"}'
      value=${text}
      onValue=${setText}
      error=${error}
    />
    <div class="fields">
      <${Field} label="Syslog drain URL" placeholder="syslog-tls://…" value=${drain} onValue=${setDrain} />
      <${Field} label="Route service URL" placeholder="https://…" value=${route} onValue=${setRoute} />
      <${Field} label="Tags" value=${tags} onValue=${setTags} note="Separated by commas" />
    </div>
  `;
  const json = { credentials, syslog_drain_url: drain || null, route_service_url: route || null, tags: words(tags) };
  const flags =
    `${text.trim() && !error ? ` -p ${quoted(JSON.stringify(credentials))}` : ''}${drain ? ` -l ${quoted(drain)}` : ''}` +
    `${route ? ` -r ${quoted(route)}` : ''}${tags ? ` -t ${quoted(tags)}` : ''}`;
  return { form, json, flags, error };
}

/** Creates a user-provided instance. */
export function CreateUserProvided({ close }) {
  const [name, setName] = useState('');
  const [chosen, setSpace] = useState('');
  const spaces = useResource(editableSpaces, []);
  const space = chosen || spaces.data?.[0]?.guid || '';
  const u = useUserProvided();
  const run = async () => {
    const i = await call('POST', '/v3/service_instances', {
      json: { type: 'user-provided', name, ...u.json, relationships: { space: { data: { guid: space } } } },
    });
    announce(`${name} was created`);
    go('/services/instances/' + i.guid);
  };
  return html`
    <${Sheet}
      title="Create a user-provided service instance"
      close=${close}
      submit="Create"
      run=${run}
      disabled=${Boolean(u.error)}
      lines=${[`cf create-user-provided-service ${quoted(name || 'NAME')}${u.flags}`]}
    >
      <p class="muted">Apps that are bound to it get these credentials, as with a service of a broker.</p>
      <div class="fields">
        <${Field} label="Name" required maxlength="255" autocomplete="off" value=${name} onValue=${setName} />
        <${SpaceField} spaces=${spaces} value=${space} onValue=${setSpace} />
      </div>
      ${u.form}
    <//>
  `;
}

/** Changes a user-provided instance. */
export function UpdateUserProvided({ instance: i, credentials, close, reload }) {
  const u = useUserProvided({ ...i, credentials });
  const run = async () => {
    await call('PATCH', '/v3/service_instances/' + i.guid, { json: u.json });
    announce('Updated');
    await reload();
  };
  return html`
    <${Sheet}
      title=${'Update ' + i.name}
      close=${close}
      submit="Update"
      run=${run}
      disabled=${Boolean(u.error)}
      lines=${[`cf update-user-provided-service ${quoted(i.name)}${u.flags}`]}
    >
      <p class="muted">Bound apps see it after a restart.</p>
      ${u.form}
    <//>
  `;
}
