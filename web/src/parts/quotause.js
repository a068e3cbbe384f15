// How much of a quota is used.
import { html } from '../lib/html.js';
import { megabytes } from '../lib/format.js';
import { Meter } from './meter.js';

const rows = [
  ['Memory', 'memory_in_mb', q => q.apps.total_memory_in_mb, megabytes],
  ['App instances', 'started_instances', q => q.apps.total_instances],
  ['Routes', 'routes', q => q.routes.total_routes],
  ['Reserved ports', 'reserved_ports', q => q.routes.total_reserved_ports],
  ['Service instances', 'service_instances', q => q.services.total_service_instances],
  ['Domains', 'domains', q => q.domains?.total_domains],
];

/** @param {{quota: any, usage: any}} p quota may be null: there are no limits */
export function QuotaUse({ quota, usage }) {
  return html`
    <div class="quota">
      ${rows
        .filter(([, name]) => usage[name] !== undefined)
        .map(([label, name, limit, format = String]) => {
          const total = (quota && limit(quota)) ?? null;
          return html`
            <${Meter}
              key=${name}
              label=${label}
              used=${usage[name]}
              total=${total}
              text=${total === null ? `${format(usage[name])}, no limit` : `${format(usage[name])} of ${format(total)}`}
            />
          `;
        })}
    </div>
  `;
}
