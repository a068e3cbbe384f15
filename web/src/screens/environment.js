// An app's environment variables and service bindings: masked until they are revealed, and changed after a look at the difference.
import { html, useState } from '../lib/html.js';
import { get, call, act, list } from '../lib/api.js';
import { useResource, ofApp } from '../lib/resource.js';
import { changed, parseEnv } from '../lib/diff.js';
import { quoted, count } from '../lib/format.js';
import { Problem, Skeleton, Section, Lines, Button, Field, State, Time, Icon } from '../parts/basic.js';
import { open, confirm, Sheet } from '../parts/dialog.js';
import { Commands } from '../parts/commands.js';
import { Diff } from '../parts/diff.js';
import { announce } from '../parts/live.js';
import { Link } from '../lib/router.js';
import { Parameters, defaults, commandJSON } from '../parts/schemaform.js';
import { deploy } from './appactions.js';

// Reading variables is an audit event: the app's are loaded when the tab opens and after an own change, never by the stream;
// those of the revision that runs, when another one does. A supporter reads no revision's environment.
const loadVars = async (app, signal) => (await get(`/v3/apps/${app.guid}/environment_variables`, { signal })).var;

// The oldest revision that has instances: null where nothing runs.
async function oldestRevision(app, may, signal) {
  if (!may.edit || app.state !== 'STARTED') return null;
  const { resources } = await get(`/v3/apps/${app.guid}/revisions/deployed`, { signal });
  return resources.sort((a, b) => a.version - b.version)[0]?.guid ?? null;
}

// What the variables differ in from those that the running instances have.
function usePending(app, may, vars) {
  const kinds = ofApp(app.guid, 'revision deployment process app');
  const revision = useResource(signal => oldestRevision(app, may, signal), [app.guid, app.state, may.edit], kinds).data ?? null;
  const running = useResource(
    async signal => (revision ? (await get(`/v3/revisions/${revision}/environment_variables`, { signal })).var : null),
    [revision],
  );
  return running.data && vars ? changed(running.data, vars) : [];
}

// When the oldest running instance started, in ms of the server's clock; Infinity where none runs.
async function oldestStart(processes, signal) {
  const starts = await Promise.all(
    processes.map(async p => {
      const answer = await call('GET', `/v3/processes/${p.guid}/stats`, { signal, whole: true });
      const now = new Date(answer.headers.get('Date')).getTime();
      const running = (await answer.json()).resources.filter(i => i.state === 'RUNNING');
      return Math.min(...running.map(i => now - i.uptime * 1000));
    }),
  );
  return Math.min(...starts);
}

// Both times are whole seconds: a binding that is hardly younger may be in the instance.
const margin = 2000;

async function loadBindings(of, signal) {
  const [{ resources, included }, start] = await Promise.all([
    list(`/v3/service_credential_bindings?app_guids=${of.app.guid}&include=service_instance`, { signal }),
    of.app.state === 'STARTED' ? oldestStart(of.processes, signal) : Infinity,
  ]);
  const by = Object.fromEntries((included.service_instances ?? []).map(i => [i.guid, i]));
  return resources.map(b => ({
    b,
    instance: by[b.relationships.service_instance.data.guid],
    unseen: b.last_operation?.state !== 'failed' && new Date(b.created_at).getTime() > start + margin,
  }));
}

/** The tab Environment. */
export default function Environment(of) {
  const { app, may } = of;
  const env = useResource(signal => loadVars(app, signal), [app.guid]);
  const pending = usePending(app, may, env.data);
  const bindings = useResource(
    signal => loadBindings(of, signal),
    [app.guid, app.state],
    ofApp(app.guid, 'service_binding service_instance instance'),
  );
  const [shown, setShown] = useState(null);
  const reveal = async () => setShown(shown ? null : await get(`/v3/apps/${app.guid}/env`));
  const save = async change => {
    await call('PATCH', `/v3/apps/${app.guid}/environment_variables`, { json: { var: change } });
    announce('Environment changed');
    if (shown) setShown(await get(`/v3/apps/${app.guid}/env`));
    await env.reload();
  };
  const edit = name => open(Edit, { title: 'Variable', vars: env.data, name, save, app });
  const unset = name =>
    confirm({
      title: `Remove ${name}?`,
      text: `The variable ${name} of ${app.name} is removed. Running instances keep it until they restart.`,
      submit: 'Remove',
      lines: [`cf unset-env ${quoted(app.name)} ${quoted(name)}`],
      run: () => save({ [name]: null }),
    });
  const names = Object.keys(env.data ?? {}).sort();
  const actions = html`
    <button type="button" aria-pressed=${Boolean(shown)} onClick=${reveal}>${shown ? 'Hide values' : 'Reveal values'}</button>
    ${may.operate &&
    env.data &&
    html`
      <button type="button" onClick=${() => open(Import, { title: 'Import', wide: true, vars: env.data, save, app })}>
        Import .env…
      </button>
      <button type="button" class="primary" onClick=${() => edit('')}>Set a variable…</button>
    `}
    <${Commands}
      of=${'the environment of ' + app.name}
      lines=${[
        [shown ? 'Hide values' : 'Reveal values', `cf env ${quoted(app.name)}`],
        may.operate && ['Import .env…', `cf set-env ${quoted(app.name)} NAME VALUE`],
        may.operate && ['Set a variable…', `cf set-env ${quoted(app.name)} NAME VALUE`],
      ]}
    />
  `;
  return html`
    <${Pending} of=${of} changes=${pending} bound=${bindings.data?.filter(b => b.unseen) ?? []} />
    <${Section} title="Variables" actions=${actions}>
      <${Problem} error=${env.error} />
      ${!env.data && !env.error && html`<${Skeleton} rows=${3} />`}
      <p class="note">Reading the environment, and revealing it, is recorded as an audit event of the app.</p>
      ${env.data && names.length === 0 && html`<p class="muted">No variable is set.</p>`}
      ${names.length > 0 &&
      html`
        <div class="scroll">
          <table class="cards">
            <caption class="hidden">Environment variables</caption>
            <thead>
              <tr><th scope="col">Name</th><th scope="col">Value</th><th scope="col"><span class="hidden">Actions</span></th></tr>
            </thead>
            <tbody>
              ${names.map(
                n => html`
                  <tr key=${n} data-row>
                    <th scope="row" class="mono">${n}</th>
                    <td data-label="Value" class="mono">
                      ${shown
                        ? html`<span class="pre">${shown.environment_variables[n] ?? ''}</span>`
                        : html`<span aria-label="hidden" role="img">••••••</span>`}
                    </td>
                    <td>
                      ${may.operate &&
                      html`
                        <div class="actions">
                          <button type="button" aria-label=${'Change ' + n} onClick=${() => edit(n)}>Change…</button>
                          <button type="button" aria-label=${'Remove ' + n} onClick=${() => unset(n)}>Remove…</button>
                        </div>
                      `}
                    </td>
                  </tr>
                `,
              )}
            </tbody>
          </table>
        </div>
      `}
    <//>
    ${shown && html`<${Provided} env=${shown} />`}
    <${Bindings} of=${of} bindings=${bindings} />
    <${Lines} lines=${[`cf env ${quoted(app.name)}`, may.operate && `cf set-env ${quoted(app.name)} NAME VALUE`]} />
  `;
}

function Pending({ of, changes, bound }) {
  if (!changes.length && !bound.length) return null;
  const restart = async () => {
    await deploy(of.app.guid, 'rolling');
    announce('A rolling deployment started');
    await of.reload();
  };
  return html`
    <div class="notice">
      <${Icon} name="wait" />
      <span>
        <strong>Restart needed.</strong>
        ${changes.length > 0 && ` The running instances have other values of ${changes.map(c => c.key).join(', ')}.`}
        ${bound.length > 0 && ` They started before ${bound.map(b => b.instance?.name).join(', ')} was bound.`}
      </span>
      ${of.may.operate &&
      html`
        <${Button} run=${restart}>Restart (rolling)<//>
        <${Commands} of=${of.app.name} lines=${[['Restart (rolling)', `cf restart ${quoted(of.app.name)} --strategy rolling`]]} />
      `}
    </div>
  `;
}

// What the platform adds: VCAP_APPLICATION, VCAP_SERVICES and the groups for staging and running.
function Provided({ env }) {
  const parts = [
    ['VCAP_SERVICES', env.system_env_json?.VCAP_SERVICES],
    ['VCAP_APPLICATION', env.application_env_json?.VCAP_APPLICATION],
    ['Running environment group', env.running_env_json],
    ['Staging environment group', env.staging_env_json],
  ];
  return html`
    <${Section} title="Provided by the platform">
      ${parts
        .filter(p => p[1] && Object.keys(p[1]).length)
        .map(
          ([name, value]) => html`
            <details key=${name} class="panel provided">
              <summary class="mono">${name}</summary>
              <pre tabindex="0" role="region" aria-label=${name}>${JSON.stringify(value, null, 2)}</pre>
            </details>
          `,
        )}
    <//>
  `;
}

function Edit({ vars, name: initial, save, app, close }) {
  const [name, setName] = useState(initial);
  const [value, setValue] = useState(initial ? vars[initial] : '');
  return html`
    <${Sheet}
      title=${initial ? `Change ${initial}` : 'Set a variable'}
      close=${close}
      submit="Apply"
      run=${() => save({ [name]: value })}
      disabled=${!name}
      lines=${[`cf set-env ${quoted(app.name)} ${quoted(name)} ${quoted(value)}`]}
    >
      ${!initial &&
      html`<${Field} label="Name" required autofocus value=${name} onValue=${setName} spellcheck=${false} autocomplete="off" />`}
      <${Field} as="textarea" label="Value" rows="3" value=${value} onValue=${setValue} spellcheck=${false} />
      <${Diff} title="What changes" changes=${changed({ [name]: vars[name] }, { [name]: value })} />
      <p class="note">Running instances keep the old value until they restart.</p>
    <//>
  `;
}

function Import({ vars, save, app, close }) {
  const [text, setText] = useState('');
  const { vars: wanted, error } = parseEnv(text);
  const changes = changed(Object.fromEntries(Object.keys(wanted).map(k => [k, vars[k]])), wanted);
  const file = async e => {
    const [chosen] = e.currentTarget.files;
    if (chosen) setText(await chosen.text());
  };
  return html`
    <${Sheet}
      title="Import a .env file"
      close=${close}
      submit=${changes.length ? `Apply ${count(changes.length, 'change')}` : 'Apply'}
      run=${() => save(wanted)}
      disabled=${!changes.length || Boolean(error)}
      lines=${(changes.length ? Object.entries(wanted).slice(0, 8) : [['NAME', 'VALUE']]).map(
        ([k, v]) => `cf set-env ${quoted(app.name)} ${k} ${quoted(v)}`,
      )}
    >
      <div class="field"><label for="env-file">From a file</label><input id="env-file" type="file" onChange=${file} /></div>
      <${Field}
        as="textarea"
        label="NAME=VALUE lines"
        rows="8"
        autofocus
        value=${text}
        onValue=${setText}
        error=${error}
        spellcheck=${false}
      />
      <${Diff} title="What changes" changes=${changes} />
    <//>
  `;
}

function Bindings({ of, bindings }) {
  const { may } = of;
  const bind = () => open(Bind, { title: 'Bind', of, reload: bindings.reload });
  return html`
    <${Section} title="Service bindings" actions=${may.operate && html`<button type="button" onClick=${bind}>Bind a service…</button>`}>
      <${Problem} error=${bindings.error} />
      ${bindings.data?.length === 0 && html`<p class="muted">No service is bound.</p>`}
      ${bindings.data?.length > 0 &&
      html`
        <div class="scroll">
          <table class="cards">
            <caption class="hidden">Service bindings</caption>
            <thead>
              <tr>
                <th scope="col">Service instance</th>
                <th scope="col">Binding</th>
                <th scope="col">State</th>
                <th scope="col">Credentials</th>
                <th scope="col"><span class="hidden">Actions</span></th>
              </tr>
            </thead>
            <tbody>
              ${bindings.data.map(
                ({ b, instance }) => html`<${Binding} key=${b.guid} of=${of} b=${b} instance=${instance} reload=${bindings.reload} />`,
              )}
            </tbody>
          </table>
        </div>
      `}
    <//>
  `;
}

function Binding({ of, b, instance, reload }) {
  const [shown, setShown] = useState(null);
  const name = instance?.name ?? '',
    line = `cf unbind-service ${quoted(of.app.name)} ${quoted(name)}`;
  const reveal = async () => setShown(shown ? null : await get(`/v3/service_credential_bindings/${b.guid}/details`));
  const remove = () =>
    confirm({
      title: `Unbind ${name}?`,
      text: `${of.app.name} no longer gets the credentials of ${name}, and the broker revokes them.`,
      submit: 'Unbind',
      lines: [line],
      run: async () => {
        await act('DELETE', `/v3/service_credential_bindings/${b.guid}`);
        await reload();
      },
    });
  return html`
    <tr data-row>
      <th scope="row">${name}<span class="sub">${instance?.type}</span></th>
      <td data-label="Binding">
        ${b.name ?? html`<span class="muted">unnamed</span>`}
        <span class="sub"><${Time} at=${b.created_at} /></span>
      </td>
      <td data-label="State">
        <span>
          <${State} value=${b.last_operation?.state ?? 'succeeded'} />
          ${b.last_operation?.description && html`<span class="sub">${b.last_operation.description}</span>`}
        </span>
      </td>
      <td data-label="Credentials">
        ${shown ? html`<pre>${JSON.stringify(shown.credentials, null, 2)}</pre>` : '••••••'} ${of.may.credentials &&
        html`
          <${Button} run=${reveal} aria-label=${(shown ? 'Hide' : 'Reveal') + ' the credentials of ' + name}>
            ${shown ? 'Hide' : 'Reveal'}
          <//>
          <${Commands}
            of=${'the binding to ' + name}
            lines=${[[shown ? 'Hide' : 'Reveal', `cf curl /v3/service_credential_bindings/${b.guid}/details`]]}
          />
        `}
      </td>
      <td>${of.may.operate && html`<button type="button" aria-label=${'Unbind ' + name} onClick=${remove}>Unbind…</button>`}</td>
    </tr>
  `;
}

function Bind({ of, reload, close }) {
  const instances = useResource(
    signal => list(`/v3/service_instances?space_guids=${of.space.guid}&order_by=name`, { signal }),
    [of.space.guid],
  );
  const [guid, setGuid] = useState('');
  const [name, setName] = useState('');
  const [parameters, setParameters] = useState(null);
  const chosen = instances.data?.resources.find(i => i.guid === guid) ?? instances.data?.resources[0];
  const plan = chosen?.relationships.service_plan?.data.guid;
  const schema = useResource(
    async signal => (plan ? (await get('/v3/service_plans/' + plan, { signal })).schemas.service_binding.create.parameters : null),
    [plan],
  );
  const value = parameters ?? { object: defaults(schema.data) };
  const given = plan && Object.keys(value.object ?? {}).length ? value.object : undefined;
  const choose = g => {
    setGuid(g);
    setParameters(null);
  };
  const run = async () => {
    await act('POST', '/v3/service_credential_bindings', {
      type: 'app',
      ...(name && { name }),
      ...(given && { parameters: given }),
      relationships: { app: { data: { guid: of.app.guid } }, service_instance: { data: { guid: chosen.guid } } },
    });
    announce(`${chosen.name} is bound; restart the app to use it`);
    await reload();
  };
  const line =
    `cf bind-service ${quoted(of.app.name)} ${quoted(chosen?.name ?? 'SERVICE')}` +
    `${name && ' --binding-name ' + quoted(name)}${given ? ` -c ${quoted(commandJSON(schema.data, given))}` : ''}`;
  return html`
    <${Sheet}
      title=${`Bind a service to ${of.app.name}`}
      close=${close}
      submit="Bind"
      run=${run}
      disabled=${!chosen || Boolean(value.error)}
      lines=${[line, `cf restart ${quoted(of.app.name)} --strategy rolling`]}
    >
      <${Problem} error=${instances.error} />
      ${instances.data?.resources.length === 0
        ? html`<p>The space ${of.space.name} has no service instance yet: <${Link} to="/services/marketplace">create one<//>.</p>`
        : html`
            <${Field} as="select" label="Service instance" value=${chosen?.guid} onValue=${choose}>
              ${instances.data?.resources.map(i => html`<option key=${i.guid} value=${i.guid}>${i.name}</option>`)}
            <//>
            <${Field} label="Binding name" value=${name} onValue=${setName} note="Optional; apps find the credentials by it" />
            ${plan &&
            schema.data !== undefined &&
            html`<${Parameters} key=${plan} schema=${schema.data} value=${value} onValue=${setParameters} />`}
          `}
    <//>
  `;
}
