// Dialogs of one service instance: bind an app, create a key, share, update.
import { html, useState } from '../lib/html.js';
import { list, act, call } from '../lib/api.js';
import { useResource } from '../lib/resource.js';
import { quoted } from '../lib/format.js';
import { Field, Problem } from '../parts/basic.js';
import { Sheet } from '../parts/dialog.js';
import { Parameters, defaults, commandJSON } from '../parts/schemaform.js';
import { announce } from '../parts/live.js';
import { editableSpaces, SpaceField } from './newservice.js';

const flag = (schema, parameters) => (parameters ? ` -c ${quoted(commandJSON(schema, parameters))}` : '');
const given = parameters => (Object.keys(parameters.object ?? {}).length ? parameters.object : undefined);

/** Binds an app of the instance's space, or of one that it is shared with. */
export function Bind({ of, close, reload }) {
  const { instance: i, plan, bindings, shared } = of;
  const schema = plan?.schemas.service_binding.create.parameters;
  const [parameters, setParameters] = useState({ object: defaults(schema) });
  const [app, setApp] = useState('');
  const [name, setName] = useState('');
  const spaces = [i.relationships.space.data.guid, ...shared.map(s => s.guid)];
  const apps = useResource(signal => list(`/v3/apps?per_page=5000&order_by=name&space_guids=${spaces.join()}`, { signal }), []);
  const chosen =
    apps.data?.resources.find(a => a.guid === app) ??
    apps.data?.resources.find(a => !bindings.some(b => b.app?.guid === a.guid)) ??
    apps.data?.resources[0];
  const run = async () => {
    await act('POST', '/v3/service_credential_bindings', {
      type: 'app',
      name: name || undefined,
      parameters: given(parameters),
      relationships: { service_instance: { data: { guid: i.guid } }, app: { data: { guid: chosen.guid } } },
    });
    announce(`${chosen.name} is bound to ${i.name}`);
    await reload();
  };
  const line =
    `cf bind-service ${quoted(chosen?.name ?? 'APP')} ${quoted(i.name)}${name ? ` --binding-name ${quoted(name)}` : ''}` +
    `${flag(schema, given(parameters))}`;
  return html`
    <${Sheet}
      title=${`Bind an app to ${i.name}`}
      close=${close}
      submit="Bind"
      run=${run}
      disabled=${!chosen || Boolean(parameters.error)}
      lines=${[line, chosen && `cf restart ${quoted(chosen.name)}`]}
    >
      <p class="muted">The app gets the credentials at its next start.</p>
      <${Problem} error=${apps.error} />
      ${apps.data?.resources.length === 0
        ? html`<p>There is no app in this space: push one first.</p>`
        : html`
            <div class="fields">
              <${Field} label="App" as="select" required value=${chosen?.guid ?? ''} onValue=${setApp}>
                ${apps.data?.resources.map(a => html`<option key=${a.guid} value=${a.guid}>${a.name}</option>`)}
              <//>
              <${Field} label="Binding name" value=${name} onValue=${setName} note="Optional" />
            </div>
          `}
      ${plan && html`<${Parameters} schema=${schema} value=${parameters} onValue=${setParameters} />`}
    <//>
  `;
}

/** Creates a key. */
export function Key({ of, close, reload }) {
  const { instance: i, plan } = of;
  const schema = plan?.schemas.service_binding.create.parameters;
  const [parameters, setParameters] = useState({ object: defaults(schema) });
  const [name, setName] = useState('');
  const run = async () => {
    await act('POST', '/v3/service_credential_bindings', {
      type: 'key',
      name,
      parameters: given(parameters),
      relationships: { service_instance: { data: { guid: i.guid } } },
    });
    announce(`The key ${name} was created`);
    await reload();
  };
  return html`
    <${Sheet}
      title=${`Create a key of ${i.name}`}
      close=${close}
      submit="Create"
      run=${run}
      disabled=${Boolean(parameters.error)}
      lines=${[`cf create-service-key ${quoted(i.name)} ${quoted(name || 'KEY')}${flag(schema, given(parameters))}`]}
    >
      <${Field} label="Name" required maxlength="255" autocomplete="off" value=${name} onValue=${setName} />
      <${Parameters} schema=${schema} value=${parameters} onValue=${setParameters} />
    <//>
  `;
}

/** Shares the instance with another space. */
export function Share({ of, close, reload }) {
  const { instance: i, shared } = of;
  const [chosen, setSpace] = useState('');
  const taken = new Set([i.relationships.space.data.guid, ...shared.map(s => s.guid)]);
  const spaces = useResource(async signal => (await editableSpaces(signal)).filter(s => !taken.has(s.guid)), []);
  const space = spaces.data?.find(s => s.guid === chosen) ?? spaces.data?.[0];
  const run = async () => {
    await call('POST', `/v3/service_instances/${i.guid}/relationships/shared_spaces`, { json: { data: [{ guid: space.guid }] } });
    announce('Shared');
    await reload();
  };
  return html`
    <${Sheet}
      title=${'Share ' + i.name}
      close=${close}
      submit="Share"
      run=${run}
      disabled=${!space}
      lines=${[space && `cf share-service ${quoted(i.name)} -s ${quoted(space.name)} -o ${quoted(space.org)}`]}
    >
      <p class="muted">Apps of the other space can then be bound to it. Who develops there sees it, and cannot change it.</p>
      ${spaces.data?.length === 0
        ? html`<p>There is no other space in which you may develop.</p>`
        : html`<${SpaceField} spaces=${spaces} value=${space?.guid ?? ''} onValue=${setSpace} label="With the space" />`}
    <//>
  `;
}

/** Changes name, plan, tags and parameters of a managed instance. */
export function Update({ of, close, reload }) {
  const { instance: i, plan, offering } = of;
  const [name, setName] = useState(i.name);
  const [tags, setTags] = useState((i.tags ?? []).join(', '));
  const [target, setTarget] = useState(plan?.guid);
  const plans = useResource(signal => list(`/v3/service_plans?per_page=5000&service_offering_guids=${offering.guid}`, { signal }), []);
  const chosen = plans.data?.resources.find(p => p.guid === target) ?? plan;
  const schema = chosen?.schemas.service_instance.update.parameters;
  const [parameters, setParameters] = useState({ object: {} });
  const newTags = tags
    .split(',')
    .map(t => t.trim())
    .filter(Boolean);
  const json = {};
  if (name !== i.name) json.name = name;
  if (newTags.join() !== (i.tags ?? []).join()) json.tags = newTags;
  if (target !== plan?.guid) json.relationships = { service_plan: { data: { guid: target } } };
  if (given(parameters)) json.parameters = given(parameters);
  const run = async () => {
    await act('PATCH', '/v3/service_instances/' + i.guid, json);
    announce('Updated');
    await reload();
  };
  const lines = [
    (json.tags || json.relationships || json.parameters) &&
      `cf update-service ${quoted(i.name)}${json.relationships ? ' -p ' + quoted(chosen.name) : ''}` +
        `${json.tags ? ` -t ${quoted(newTags.join(','))}` : ''}${flag(schema, json.parameters)}`,
    json.name && `cf rename-service ${quoted(i.name)} ${quoted(name)}`,
  ];
  return html`
    <${Sheet}
      title=${'Update ' + i.name}
      close=${close}
      submit="Update"
      run=${run}
      disabled=${Boolean(parameters.error) || !Object.keys(json).length}
      lines=${lines}
    >
      <div class="fields">
        <${Field} label="Name" required maxlength="255" value=${name} onValue=${setName} />
        <${Field}
          label="Plan"
          as="select"
          value=${target}
          onValue=${setTarget}
          disabled=${plan && !plan.broker_catalog.features.plan_updateable}
          note=${plan && !plan.broker_catalog.features.plan_updateable
            ? 'The broker does not let instances of this plan change to another.'
            : chosen?.description}
        >
          ${(plans.data?.resources ?? [plan]).map(p => html`<option key=${p.guid} value=${p.guid}>${p.name}</option>`)}
        <//>
        <${Field} label="Tags" value=${tags} onValue=${setTags} note="Separated by commas" />
      </div>
      <${Parameters}
        key=${target}
        schema=${schema}
        value=${parameters}
        onValue=${setParameters}
        label="Parameters to change"
      />
    <//>
  `;
}
