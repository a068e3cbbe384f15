// The form of a quota, of orgs or of spaces. An empty limit is none.
import { html, useState } from '../lib/html.js';
import { call } from '../lib/api.js';
import { quoted } from '../lib/format.js';
import { Field, Check } from '../parts/basic.js';
import { Sheet } from '../parts/dialog.js';
import { announce } from '../parts/live.js';

// The limits: where the API has them, what they are called, and the CLI's flag.
const limits = [
  ['apps', 'total_memory_in_mb', 'Memory (MB)', n => `-m ${n}M`],
  ['apps', 'per_process_memory_in_mb', 'Memory of a process (MB)', n => `-i ${n}M`],
  ['apps', 'total_instances', 'App instances', n => `-a ${n}`],
  ['apps', 'log_rate_limit_in_bytes_per_second', 'Log rate (bytes/s)', n => `-l ${n}B`],
  ['apps', 'per_app_tasks', 'Tasks of an app'],
  ['services', 'total_service_instances', 'Service instances', n => `-s ${n}`],
  ['services', 'total_service_keys', 'Service keys'],
  ['routes', 'total_routes', 'Routes', n => `-r ${n}`],
  ['routes', 'total_reserved_ports', 'Reserved ports', n => `--reserved-route-ports ${n}`],
  ['domains', 'total_domains', 'Domains'],
];

/** @param {{quota: any, kind: 'org'|'space', orgs: any[]}} p quota null makes one */
export function EditQuota({ quota: q, kind, orgs, close, reload }) {
  const [name, setName] = useState(q?.name ?? '');
  const [org, setOrg] = useState(orgs[0]?.guid ?? '');
  const [paid, setPaid] = useState(q?.services.paid_services_allowed ?? true);
  const [values, setValues] = useState(Object.fromEntries(limits.map(([group, key]) => [key, String(q?.[group]?.[key] ?? '')])));
  const shown = limits.filter(([group]) => kind === 'org' || group !== 'domains');
  const run = async () => {
    const json = { name };
    for (const [group, key] of shown) (json[group] ??= {})[key] = values[key] === '' ? null : Number(values[key]);
    json.services.paid_services_allowed = paid;
    const path = `/v3/${kind === 'org' ? 'organization' : 'space'}_quotas`;
    if (q) await call('PATCH', `${path}/${q.guid}`, { json });
    else await call('POST', path, { json: kind === 'org' ? json : { ...json, relationships: { organization: { data: { guid: org } } } } });
    announce('Saved');
    await reload();
  };
  const flags = shown
    .map(([, key, , flag]) => flag && values[key] !== '' && flag(values[key]))
    .filter(Boolean)
    .join(' ');
  return html`
    <${Sheet}
      title=${q ? 'Change ' + q.name : `Create a quota of ${kind}s`}
      close=${close}
      submit=${q ? 'Save' : 'Create'}
      run=${run}
      lines=${[
        `cf ${q ? 'update' : 'create'}-${kind}-quota ${quoted(q?.name ?? (name || 'QUOTA'))} ${flags}` +
          `${paid ? ' --allow-paid-service-plans' : ''}`,
      ]}
    >
      <div class="fields">
        <${Field} label="Name" required maxlength="250" autocomplete="off" value=${name} onValue=${setName} />
        ${kind === 'space' &&
        !q &&
        html`
          <${Field} label="Org" as="select" value=${org} onValue=${setOrg}>
            ${orgs.map(o => html`<option key=${o.guid} value=${o.guid}>${o.name}</option>`)}
          <//>
        `}
      </div>
      <p class="muted">An empty limit is none.</p>
      <div class="fields">
        ${shown.map(
          ([, key, label]) => html`
            <${Field}
              key=${key}
              label=${label}
              type="number"
              min="0"
              value=${values[key]}
              onValue=${v => setValues({ ...values, [key]: v })}
            />
          `,
        )}
      </div>
      <${Check} label="Paid service plans are allowed" checked=${paid} onValue=${setPaid} />
    <//>
  `;
}
