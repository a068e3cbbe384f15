// Dialogs of administrators about brokers: registration, and who may use a plan.
import { html, useState } from '../lib/html.js';
import { act, call, get, list } from '../lib/api.js';
import { useResource } from '../lib/resource.js';
import { quoted } from '../lib/format.js';
import { Field, Check, Problem, Skeleton } from '../parts/basic.js';
import { Sheet } from '../parts/dialog.js';
import { announce } from '../parts/live.js';

/** Registers a broker: its catalog is fetched, and its plans are visible to administrators at first. */
export function RegisterBroker({ close }) {
  const [name, setName] = useState('');
  const [url, setURL] = useState('');
  const [username, setUser] = useState('');
  const [password, setPassword] = useState('');
  const run = async () => {
    await act('POST', '/v3/service_brokers', { name, url, authentication: { type: 'basic', credentials: { username, password } } });
    announce(`The broker ${name} was registered`);
  };
  return html`
    <${Sheet}
      title="Register a broker"
      close=${close}
      submit="Register"
      run=${run}
      lines=${[`cf create-service-broker ${quoted(name || 'NAME')} ${quoted(username || 'USER')} PASSWORD ${quoted(url || 'URL')}`]}
    >
      <p class="muted">Its catalog is fetched now. Only administrators see its plans until you make them visible to others.</p>
      <div class="fields">
        <${Field} label="Name" required value=${name} onValue=${setName} autocomplete="off" />
        <${Field} label="URL" required type="url" placeholder="https://…" value=${url} onValue=${setURL} />
      </div>
      <div class="fields">
        <${Field} label="User" required autocomplete="off" value=${username} onValue=${setUser} />
        <${Field} label="Password" required type="password" autocomplete="new-password" value=${password} onValue=${setPassword} />
      </div>
    <//>
  `;
}

/** Changes who may use a plan: administrators, all, or some orgs. */
export function Visibility({ plan, offering, close, reload }) {
  const now = useResource(
    async signal => {
      const [visibility, orgs] = await Promise.all([
        get(`/v3/service_plans/${plan.guid}/visibility`, { signal }),
        list('/v3/organizations?per_page=5000', { signal }),
      ]);
      return { ...visibility, orgs: orgs.resources };
    },
    [plan.guid],
  );
  const [type, setType] = useState(null);
  const [orgs, setOrgs] = useState(null);
  const kind = type ?? now.data?.type,
    chosen = orgs ?? new Set((now.data?.organizations ?? []).map(o => o.guid));
  const toggle = guid => on => {
    const next = new Set(chosen);
    if (on) next.add(guid);
    else next.delete(guid);
    setOrgs(next);
  };
  const run = async () => {
    await call('PATCH', `/v3/service_plans/${plan.guid}/visibility`, {
      json: kind === 'organization' ? { type: kind, organizations: [...chosen].map(guid => ({ guid })) } : { type: kind },
    });
    announce('Saved');
    await reload();
  };
  const flag = ` -p ${quoted(plan.name)}`;
  const lines =
    kind === 'admin'
      ? [`cf disable-service-access ${quoted(offering.name)}${flag}`]
      : kind === 'organization'
        ? (now.data?.orgs ?? [])
            .filter(o => chosen.has(o.guid))
            .map(o => `cf enable-service-access ${quoted(offering.name)}${flag} -o ${quoted(o.name)}`)
        : [`cf enable-service-access ${quoted(offering.name)}${flag}`];
  return html`
    <${Sheet}
      title=${`Who may use ${offering.name} ${plan.name}`}
      close=${close}
      submit=${kind !== 'space' && now.data && 'Save'}
      run=${run}
      disabled=${kind === 'organization' && !chosen.size}
      lines=${lines}
    >
      <${Problem} error=${now.error} />
      ${!now.data && !now.error && html`<${Skeleton} rows=${2} />`}
      ${now.data &&
      (kind === 'space'
        ? html`<p>The broker belongs to one space: who may develop there sees its plans.</p>`
        : html`
            <${Field} label="Visible to" as="select" value=${kind} onValue=${setType}>
              <option value="admin">administrators</option>
              <option value="public">all</option>
              <option value="organization">some orgs</option>
            <//>
            ${kind === 'organization' &&
            html`
              <fieldset class="schema">
                <legend class="legend">Orgs</legend>
                ${now.data.orgs.map(
                  o => html`<${Check} key=${o.guid} label=${o.name} checked=${chosen.has(o.guid)} onValue=${toggle(o.guid)} />`,
                )}
              </fieldset>
            `}
          `)}
    <//>
  `;
}
