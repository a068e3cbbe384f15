// An app's environment variables and service bindings: masked until they are revealed, and changed after a look at the difference.
import { html, useState } from '../lib/html.js';
import { get, call, act, list } from '../lib/api.js';
import { useResource, ofApp } from '../lib/resource.js';
import { changed, parseEnv } from '../lib/diff.js';
import { quoted, count } from '../lib/format.js';
import { Problem, Skeleton, Section, Lines, Button, Field, State, Time, Icon } from '../parts/basic.js';
import { open, confirm, Sheet } from '../parts/dialog.js';
import { Diff } from '../parts/diff.js';
import { announce } from '../parts/live.js';
import { deploy } from './appactions.js';

// Reading the variables is an audit event: they are loaded when the tab opens and after an own change, never by the stream.
async function loadVars(app, may, signal) {
  const { var: vars } = await get(`/v3/apps/${app.guid}/environment_variables`, { signal });
  if (!may.edit) return { vars, pending: [] }; // a supporter reads no revision's environment
  const { resources } = await get(`/v3/apps/${app.guid}/revisions/deployed`, { signal });
  const running = resources[0] && app.state === 'STARTED' ? (await get(`/v3/revisions/${resources[0].guid}/environment_variables`, { signal })).var : null;
  return { vars, pending: running ? changed(running, vars) : [] };
}

/** The tab Environment. */
export default function Environment(of) {
  const { app, may } = of;
  const env = useResource(signal => loadVars(app, may, signal), [app.guid, app.state]);
  const [shown, setShown] = useState(null);
  const reveal = async () => setShown(shown ? null : await get(`/v3/apps/${app.guid}/env`));
  const save = async change => {
    await call('PATCH', `/v3/apps/${app.guid}/environment_variables`, { json: { var: change } });
    announce('Environment changed');
    if (shown) setShown(await get(`/v3/apps/${app.guid}/env`));
    await env.reload();
  };
  const edit = name => open(Edit, { title: 'Variable', vars: env.data.vars, name, save, app });
  const unset = name => confirm({ title: `Remove ${name}?`, text: `The variable ${name} of ${app.name} is removed. Running instances keep it until they restart.`, submit: 'Remove', lines: [`cf unset-env ${quoted(app.name)} ${quoted(name)}`], run: () => save({ [name]: null }) });
  const names = Object.keys(env.data?.vars ?? {}).sort();
  const actions = html`<button type="button" aria-pressed=${Boolean(shown)} onClick=${reveal}>${shown ? 'Hide values' : 'Reveal values'}</button>
    ${may.operate && env.data && html`<button type="button" onClick=${() => open(Import, { title: 'Import', wide: true, vars: env.data.vars, save, app })}>Import .env…</button><button type="button" class="primary" onClick=${() => edit('')}>Set a variable…</button>`}`;
  return html`<${Pending} of=${of} changes=${env.data?.pending ?? []} />
    <${Section} title="Variables" actions=${actions}><${Problem} error=${env.error} />${!env.data && !env.error && html`<${Skeleton} rows=${3} />`}
      <p class="note">Reading the environment, and revealing it, is recorded as an audit event of the app.</p>
      ${env.data && names.length === 0 && html`<p class="muted">No variable is set.</p>`}
      ${names.length > 0 && html`<div class="scroll"><table class="cards"><caption class="hidden">Environment variables</caption><thead><tr><th scope="col">Name</th><th scope="col">Value</th><th scope="col"><span class="hidden">Actions</span></th></tr></thead>
        <tbody>${names.map(n => html`<tr key=${n} data-row><th scope="row" class="mono">${n}</th><td data-label="Value" class="mono">${shown ? html`<span class="pre">${shown.environment_variables[n] ?? ''}</span>` : html`<span aria-label="hidden" role="img">••••••</span>`}</td>
          <td>${may.operate && html`<div class="actions"><button type="button" aria-label=${'Change ' + n} onClick=${() => edit(n)}>Change…</button><button type="button" aria-label=${'Remove ' + n} onClick=${() => unset(n)}>Remove…</button></div>`}</td></tr>`)}</tbody></table></div>`}<//>
    ${shown && html`<${Provided} env=${shown} />`}
    <${Bindings} of=${of} />
    <${Lines} lines=${[`cf env ${quoted(app.name)}`, may.operate && `cf set-env ${quoted(app.name)} NAME VALUE`]} />`;
}

function Pending({ of, changes }) {
  if (!changes.length) return null;
  const restart = async () => { await deploy(of.app.guid, 'rolling'); announce('A rolling deployment started'); await of.reload(); };
  return html`<div class="notice"><${Icon} name="wait" /><span><strong>Restart needed.</strong> The running instances have other values of ${changes.map(c => c.key).join(', ')}.</span>${of.may.operate && html`<${Button} run=${restart} title=${`cf restart ${quoted(of.app.name)} --strategy rolling`}>Restart (rolling)<//>`}</div>`;
}

// What the platform adds: VCAP_APPLICATION, VCAP_SERVICES and the groups for staging and running.
function Provided({ env }) {
  const parts = [['VCAP_SERVICES', env.system_env_json?.VCAP_SERVICES], ['VCAP_APPLICATION', env.application_env_json?.VCAP_APPLICATION], ['Running environment group', env.running_env_json], ['Staging environment group', env.staging_env_json]];
  return html`<${Section} title="Provided by the platform">${parts.filter(p => p[1] && Object.keys(p[1]).length).map(([name, value]) => html`<details key=${name} class="panel provided"><summary class="mono">${name}</summary><pre tabindex="0" role="region" aria-label=${name}>${JSON.stringify(value, null, 2)}</pre></details>`)}<//>`;
}

function Edit({ vars, name: initial, save, app, close }) {
  const [name, setName] = useState(initial);
  const [value, setValue] = useState(initial ? vars[initial] : '');
  return html`<${Sheet} title=${initial ? `Change ${initial}` : 'Set a variable'} close=${close} submit="Apply" run=${() => save({ [name]: value })} disabled=${!name} lines=${[`cf set-env ${quoted(app.name)} ${quoted(name)} ${quoted(value)}`]}>
    ${!initial && html`<${Field} label="Name" required autofocus value=${name} onValue=${setName} spellcheck=${false} autocomplete="off" />`}
    <${Field} as="textarea" label="Value" rows="3" value=${value} onValue=${setValue} spellcheck=${false} />
    <${Diff} title="What changes" changes=${changed({ [name]: vars[name] }, { [name]: value })} />
    <p class="note">Running instances keep the old value until they restart.</p><//>`;
}

function Import({ vars, save, app, close }) {
  const [text, setText] = useState('');
  const { vars: wanted, error } = parseEnv(text);
  const changes = changed(Object.fromEntries(Object.keys(wanted).map(k => [k, vars[k]])), wanted);
  return html`<${Sheet} title="Import a .env file" close=${close} submit=${changes.length ? `Apply ${count(changes.length, 'change')}` : 'Apply'} run=${() => save(wanted)} disabled=${!changes.length || Boolean(error)} lines=${Object.entries(wanted).slice(0, 8).map(([k, v]) => `cf set-env ${quoted(app.name)} ${k} ${quoted(v)}`)}>
    <${Field} as="textarea" label="NAME=VALUE lines" rows="8" autofocus value=${text} onValue=${setText} error=${error} spellcheck=${false} />
    <${Diff} title="What changes" changes=${changes} /><//>`;
}

async function loadBindings(of, signal) {
  const { resources, included } = await list(`/v3/service_credential_bindings?app_guids=${of.app.guid}&include=service_instance`, { signal });
  const by = Object.fromEntries((included.service_instances ?? []).map(i => [i.guid, i]));
  return resources.map(b => ({ b, instance: by[b.relationships.service_instance.data.guid] }));
}

function Bindings({ of }) {
  const { app, may } = of;
  const bindings = useResource(signal => loadBindings(of, signal), [app.guid], ofApp(app.guid, 'service_binding service_instance'));
  const bind = () => open(Bind, { title: 'Bind', of, reload: bindings.reload });
  return html`<${Section} title="Service bindings" actions=${may.operate && html`<button type="button" onClick=${bind}>Bind a service…</button>`}><${Problem} error=${bindings.error} />
    ${bindings.data?.length === 0 && html`<p class="muted">No service is bound.</p>`}
    ${bindings.data?.length > 0 && html`<div class="scroll"><table class="cards"><caption class="hidden">Service bindings</caption><thead><tr><th scope="col">Service instance</th><th scope="col">Binding</th><th scope="col">State</th><th scope="col">Credentials</th><th scope="col"><span class="hidden">Actions</span></th></tr></thead>
      <tbody>${bindings.data.map(({ b, instance }) => html`<${Binding} key=${b.guid} of=${of} b=${b} instance=${instance} reload=${bindings.reload} />`)}</tbody></table></div>`}<//>`;
}

function Binding({ of, b, instance, reload }) {
  const [shown, setShown] = useState(null);
  const name = instance?.name ?? '', line = `cf unbind-service ${quoted(of.app.name)} ${quoted(name)}`;
  const reveal = async () => setShown(shown ? null : await get(`/v3/service_credential_bindings/${b.guid}/details`));
  const remove = () => confirm({ title: `Unbind ${name}?`, text: `${of.app.name} no longer gets the credentials of ${name}, and the broker revokes them.`, submit: 'Unbind', lines: [line], run: async () => { await act('DELETE', `/v3/service_credential_bindings/${b.guid}`); await reload(); } });
  return html`<tr data-row><th scope="row">${name}<span class="sub">${instance?.type}</span></th><td data-label="Binding">${b.name ?? html`<span class="muted">unnamed</span>`}<span class="sub"><${Time} at=${b.created_at} /></span></td>
    <td data-label="State"><span><${State} value=${b.last_operation?.state ?? 'succeeded'} />${b.last_operation?.description && html`<span class="sub">${b.last_operation.description}</span>`}</span></td>
    <td data-label="Credentials">${shown ? html`<pre>${JSON.stringify(shown.credentials, null, 2)}</pre>` : '••••••'} ${of.may.edit && html`<${Button} run=${reveal} aria-label=${(shown ? 'Hide' : 'Reveal') + ' the credentials of ' + name}>${shown ? 'Hide' : 'Reveal'}<//>`}</td>
    <td>${of.may.operate && html`<button type="button" aria-label=${'Unbind ' + name} onClick=${remove}>Unbind…</button>`}</td></tr>`;
}

function Bind({ of, reload, close }) {
  const instances = useResource(signal => list(`/v3/service_instances?space_guids=${of.space.guid}&order_by=name`, { signal }), [of.space.guid]);
  const [guid, setGuid] = useState('');
  const [name, setName] = useState('');
  const chosen = instances.data?.resources.find(i => i.guid === guid) ?? instances.data?.resources[0];
  const run = async () => {
    await act('POST', '/v3/service_credential_bindings', { type: 'app', ...(name && { name }), relationships: { app: { data: { guid: of.app.guid } }, service_instance: { data: { guid: chosen.guid } } } });
    announce(`${chosen.name} is bound; restart the app to use it`);
    await reload();
  };
  return html`<${Sheet} title=${`Bind a service to ${of.app.name}`} close=${close} submit="Bind" run=${run} disabled=${!chosen} lines=${chosen && [`cf bind-service ${quoted(of.app.name)} ${quoted(chosen.name)}${name && ' --binding-name ' + quoted(name)}`]}>
    <${Problem} error=${instances.error} />
    ${instances.data?.resources.length === 0 ? html`<p>The space ${of.space.name} has no service instance yet.</p>` : html`<${Field} as="select" label="Service instance" value=${chosen?.guid} onValue=${setGuid}>${instances.data?.resources.map(i => html`<option key=${i.guid} value=${i.guid}>${i.name}</option>`)}<//><${Field} label="Binding name" value=${name} onValue=${setName} note="Optional; apps find the credentials by it" />`}<//>`;
}
