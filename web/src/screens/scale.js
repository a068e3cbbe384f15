// The dialog that scales a process, bounded by the quota, with a word on what restarts.
import { html, useState } from '../lib/html.js';
import { act, call, get } from '../lib/api.js';
import { useResource } from '../lib/resource.js';
import { megabytes, bytes, quoted, count } from '../lib/format.js';
import { Field, Check } from '../parts/basic.js';
import { Sheet } from '../parts/dialog.js';
import { announce } from '../parts/live.js';
import { deploy } from './appactions.js';

async function loadQuota(of, signal) {
  const quotas = [];
  const org = of.org?.relationships?.quota?.data?.guid,
    space = of.space?.relationships?.quota?.data?.guid;
  const usage = of.org && (await get(`/v3/organizations/${of.org.guid}/usage_summary`, { signal }));
  if (org)
    quotas.push({
      of: `org ${of.org.name}`,
      quota: (await get('/v3/organization_quotas/' + org, { signal })).apps,
      used: usage.usage_summary,
    });
  if (space) quotas.push({ of: `space ${of.space.name}`, quota: (await get('/v3/space_quotas/' + space, { signal })).apps });
  return quotas;
}

// What the org would use after the change; null where it has no bound.
function bound(q, of, p, next) {
  if (!q.used || of.app.state !== 'STARTED') return null;
  const used = q.used.memory_in_mb + next.instances * next.memory - p.instances * p.memory_in_mb;
  const limit = q.quota.total_memory_in_mb;
  return limit === null ? null : { used, limit, over: used > limit };
}

/** @param {{of: any, process: any, close: () => void}} props */
export function Scale({ of, process: p, close }) {
  const [instances, setInstances] = useState(p.instances);
  const [memory, setMemory] = useState(String(p.memory_in_mb));
  const [disk, setDisk] = useState(String(p.disk_in_mb));
  const [rate, setRate] = useState(String(p.log_rate_limit_in_bytes_per_second));
  const [rolling, setRolling] = useState(p.type === 'web');
  const quotas = useResource(signal => loadQuota(of, signal), [of.app.guid]);
  const next = { instances: Number(instances), memory: Number(memory), disk: Number(disk), rate: Number(rate) };
  const restarts = next.memory !== p.memory_in_mb || next.disk !== p.disk_in_mb || next.rate !== p.log_rate_limit_in_bytes_per_second;
  const started = of.app.state === 'STARTED';
  const name = quoted(of.app.name);
  const line =
    `cf scale ${name}${p.type === 'web' ? '' : ' --process ' + quoted(p.type)}` +
    `${next.instances !== p.instances ? ' -i ' + next.instances : ''}` +
    `${next.memory !== p.memory_in_mb ? ` -m ${next.memory}M` : ''}` +
    `${next.disk !== p.disk_in_mb ? ` -k ${next.disk}M` : ''}` +
    `${next.rate !== p.log_rate_limit_in_bytes_per_second ? ` -l ${next.rate < 0 ? -1 : next.rate + 'B'}` : ''}`;
  const run = async () => {
    const json = { instances: next.instances };
    if (next.memory !== p.memory_in_mb) json.memory_in_mb = next.memory;
    if (next.disk !== p.disk_in_mb) json.disk_in_mb = next.disk;
    if (next.rate !== p.log_rate_limit_in_bytes_per_second) json.log_rate_limit_in_bytes_per_second = next.rate;
    await call('POST', `/v3/processes/${p.guid}/actions/scale`, { json });
    if (restarts && started) await (rolling ? deploy(of.app.guid, 'rolling') : act('POST', `/v3/apps/${of.app.guid}/actions/restart`));
    announce(`${p.type}: ${count(next.instances, 'instance')}`);
    await of.reload();
  };
  return html`
    <${Sheet}
      title=${`Scale ${p.type} of ${of.app.name}`}
      close=${close}
      submit="Scale"
      run=${run}
      lines=${[line, restarts && started && `cf restart ${name}${rolling ? ' --strategy rolling' : ''}`]}
    >
      <div class="field">
        <label for="scale-instances">Instances</label>
        <div class="range">
          <input
            type="range"
            aria-label="Instances, as a slider"
            min="0"
            max=${Math.max(10, p.instances * 2)}
            value=${instances}
            onInput=${e => setInstances(e.currentTarget.value)}
          />
          <input
            id="scale-instances"
            type="number"
            min="0"
            max="10000"
            required
            value=${instances}
            onInput=${e => setInstances(e.currentTarget.value)}
          />
        </div>
      </div>
      <div class="fields">
        <${Field} label="Memory (MB)" type="number" min="1" required value=${memory} onValue=${setMemory} />
        <${Field} label="Disk (MB)" type="number" min="1" required value=${disk} onValue=${setDisk} />
        <${Field} label="Log rate (bytes/s)" type="number" min="-1" required value=${rate} onValue=${setRate} note="-1: no limit" />
      </div>
      <${Consequence} of=${of} p=${p} next=${next} restarts=${restarts} started=${started} />
      ${restarts &&
      started &&
      html`<${Check} label="Restart with a rolling deployment, so that no request fails" checked=${rolling} onValue=${setRolling} />`}
      ${quotas.data?.map(q => html`<${Quota} key=${q.of} q=${q} of=${of} p=${p} next=${next} />`)}
    <//>
  `;
}

function Consequence({ p, next, restarts, started }) {
  const more = next.instances - p.instances;
  const words = [];
  if (!started) words.push('The app is stopped: this takes effect when it starts.');
  else if (restarts)
    words.push(`All ${count(p.instances, 'instance')} restart: memory, disk and log rate are set when an instance starts.`);
  else if (more) words.push('Nothing restarts.');
  if (started && more > 0) words.push(`${count(more, 'instance')} more start.`);
  if (started && more < 0) words.push(`${count(-more, 'instance')} stop.`);
  return html`<p role="status">${words.join(' ') || 'Nothing changes.'}</p>`;
}

function Quota({ q, of, p, next }) {
  const b = bound(q, of, p, next),
    each = q.quota.per_process_memory_in_mb;
  if (!b && each === null) return null;
  const over = b?.over || (each !== null && next.memory > each);
  return html`
    <p class=${over ? 'bad' : 'muted'}>
      Quota of the ${q.of}
      : ${b && `${megabytes(b.used)} of ${megabytes(b.limit)} memory after this`}
      ${each !== null ? ` at most ${megabytes(each)} per instance` : ''}
      ${over ? '. This is too much.' : ''}
    </p>
  `;
}
