// What the list of apps shows of those that are on the screen: processes, routes, the last deployment, what they use and why they crashed.
import { get, list, among } from './api.js';
import { usage } from './metrics.js';

const latest = (docs, app) => {
  const by = {};
  for (const d of docs) {
    const guid = app(d);
    if (!by[guid] || by[guid].created_at < d.created_at) by[guid] = d;
  }
  return by;
};

/** Why the newest crash of an app happened, in one line. @param {any} event audit.app.process.crash */
export const crashReason = event => event?.data?.exit_description || event?.data?.reason || '';

// One after the other would take long, all at once would take all the user's slots.
async function each(items, width, f) {
  let next = 0;
  const worker = async () => {
    while (next < items.length) await f(items[next++]);
  };
  await Promise.all(Array.from({ length: width }, worker));
}

/**
 * Details of apps by GUID: {processes, routes, deployed, stats, usage, crash}.
 * @param {any[]} apps documents of the list
 */
export async function details(apps, o) {
  const guids = apps.map(a => a.guid),
    of = among(guids);
  const started = apps.filter(a => a.state === 'STARTED').map(a => a.guid);
  const [processes, routes, builds, deployments, used] = await Promise.all([
    list('/v3/processes?app_guids=' + of, o),
    list('/v3/routes?app_guids=' + of, o),
    get(`/v3/builds?app_guids=${of}&order_by=-created_at&per_page=500`, o),
    get(`/v3/deployments?app_guids=${of}&order_by=-created_at&per_page=500`, o),
    started.length ? usage(started, 15, o).catch(() => ({})) : {},
  ]);
  const built = latest(builds.resources, b => b.relationships.app.data.guid),
    deployed = latest(deployments.resources, d => d.relationships.app.data.guid);
  const all = {};
  for (const guid of guids)
    all[guid] = {
      processes: [],
      routes: [],
      stats: null,
      usage: used[guid],
      deployed: [built[guid], deployed[guid]]
        .filter(Boolean)
        .map(d => d.created_at)
        .sort()
        .at(-1),
    };
  for (const p of processes.resources) all[p.relationships.app.data.guid]?.processes.push(p);
  for (const r of routes.resources)
    for (const d of r.destinations) {
      const a = all[d.app.guid];
      if (a && !a.routes.includes(r)) a.routes.push(r);
    }
  const web = processes.resources.filter(p => p.instances > 0 && started.includes(p.relationships.app.data.guid) && p.type === 'web');
  await each(web, 4, async p => {
    try {
      all[p.relationships.app.data.guid].stats = (await get(`/v3/processes/${p.guid}/stats`, o)).resources;
    } catch (e) {
      if (e.name === 'AbortError') throw e;
    }
  });
  await crashes(all, o);
  return all;
}

async function crashes(all, o) {
  const crashed = Object.keys(all).filter(guid => all[guid].stats?.some(i => i.state === 'CRASHED' || i.state === 'DOWN'));
  if (!crashed.length) return;
  const events = await get(
    `/v3/audit_events?types=audit.app.process.crash&target_guids=${among(crashed)}&order_by=-created_at&per_page=200`,
    o,
  );
  const by = latest(events.resources, e => e.target.guid);
  for (const guid of crashed) all[guid].crash = by[guid] && crashReason(by[guid]).replace(/^APP\/PROC\/\w+: /, '');
}

/** The state that the list shows: the app's, or what its instances are in. */
export function stateOf(app, detail) {
  if (app.state !== 'STARTED') return 'STOPPED';
  const stats = detail?.stats;
  if (!stats?.length) return 'STARTED';
  const states = stats.map(i => i.state);
  if (states.every(s => s === 'RUNNING')) return 'RUNNING';
  if (states.every(s => s === 'SLEEPING')) return 'SLEEPING';
  if (states.includes('CRASHED')) return states.includes('RUNNING') ? 'DEGRADED' : 'CRASHED';
  if (states.includes('RUNNING')) return states.includes('DOWN') ? 'DEGRADED' : 'STARTING';
  return states.includes('STARTING') ? 'STARTING' : 'DOWN';
}
