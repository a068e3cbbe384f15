// Each action of each screen shows the command that does the same: in its dialog, or listed beside its button.
// The browser clicks every button. What would change something is answered by the test, not by the daemon.
import { check, until } from './kit.mjs';
import { appScreens, platformScreens, walk } from './walk.mjs';

async function walkAll(kit, page, screens, atLeast) {
  const missing = [];
  let count = 0;
  for (const [name, [where, ready]] of Object.entries(screens)) {
    const head = !/^\/apps\/[^/]+\//.test(where); // that of an app is the same on all its tabs
    const found = await walk(page, '/console' + where, ready, { head });
    count += found.actions.length;
    missing.push(...found.missing.map(m => `${name}: ${m}`));
  }
  check(!missing.length, 'actions without a command:\n' + missing.join('\n'));
  check(count >= atLeast, `only ${count} actions were found`);
}

// A page of an admin in a context of its own: the walk changes settings, such as the sources of a log that are shown.
async function walker(kit) {
  const page = await kit.page(await kit.browser.newContext());
  await kit.login(page, 'admin', kit.config.admin);
  return page;
}

// An app that never ran, a deployment that waits, a task and a variable that running instances have not: for their buttons.
async function prepare(kit, page) {
  const { noisy } = kit.config.apps;
  const toOne = guid => ({ data: { guid } });
  const idle = await kit.api(page, 'POST', '/v3/apps', { name: 'idle', relationships: { space: toOne(kit.config.space) } });
  await kit.api(page, 'PATCH', `/v3/apps/${noisy}/environment_variables`, { var: { NEWS: 'yes' } });
  await kit.api(page, 'POST', `/v3/apps/${noisy}/tasks`, { command: 'true', name: 'walked' });
  const job = await kit.api(page, 'POST', '/jobs?app_guid=' + noisy, { name: 'walked', command: 'true' });
  await kit.api(page, 'POST', `/jobs/${job.body.guid}/schedules`, { expression: '@yearly', enabled: true });
  const policy = `/v1/apps/${noisy}/policy`;
  const set = await kit.api(page, 'PUT', policy, {
    instance_min_count: 1,
    instance_max_count: 2,
    scaling_rules: [{ metric_type: 'throughput', operator: '>=', threshold: 5000, adjustment: '+1' }],
  });
  check(job.status === 201 && set.status < 300, `${job.status} ${set.status} ${JSON.stringify(set.body)}`);
  const d = await kit.api(page, 'POST', '/v3/deployments', { strategy: 'canary', relationships: { app: toOne(noisy) } });
  check(idle.status === 201 && d.status === 201, `${idle.status} ${d.status} ${JSON.stringify(d.body)}`);
  return {
    idle: idle.body.guid,
    async end() {
      await kit.api(page, 'POST', `/v3/deployments/${d.body.guid}/actions/cancel`);
      const done = async () => (await kit.api(page, 'GET', '/v3/deployments/' + d.body.guid)).body.status.value === 'FINALIZED';
      await until(done, 'the end of the deployment');
      await kit.api(page, 'PATCH', `/v3/apps/${noisy}/environment_variables`, { var: { NEWS: null } });
      await kit.api(page, 'DELETE', '/v3/apps/' + idle.body.guid);
      await kit.api(page, 'DELETE', '/jobs/' + job.body.guid);
      await kit.api(page, 'DELETE', policy);
    },
  };
}

const ofApps = {
  async 'each action of an app has its command'(kit) {
    const page = await walker(kit);
    const made = await prepare(kit, await kit.admin('/apps'));
    try {
      const screens = appScreens(kit);
      await walkAll(kit, page, { ...screens, 'an app that never ran': [`/apps/${made.idle}`, '.facts'] }, 30);
    } finally {
      await made.end();
    }
  },
  async 'the walk notices an action without one'(kit) {
    const before = page => page.evaluate(() => document.querySelectorAll('.prompt').forEach(p => p.remove()));
    const { missing } = await walk(await walker(kit), '/console' + kit.app('quiet'), 'tbody tr', { before });
    check(missing.length === 2, 'missing: ' + missing); // one instance more, one less
  },
};

// What makes the platform's other buttons appear; all goes with its end.
async function preparePlatform(kit, page) {
  const made = [];
  const make = async (path, json) => {
    const { status, body } = await kit.api(page, 'POST', path, json);
    check(status < 300, `POST ${path} is ${status}: ${JSON.stringify(body)}`);
    if (body.guid) made.unshift(`${path}/${body.guid}`);
    return body.guid;
  };
  const toOne = guid => ({ data: { guid } }),
    space = { space: toOne(kit.config.space) },
    org = { organization: toOne(kit.config.org) };
  await make('/v3/organization_quotas', { name: 'walked' });
  const quota = await make('/v3/space_quotas', { name: 'walked', relationships: org });
  await make(`/v3/space_quotas/${quota}/relationships/spaces`, { data: [{ guid: kit.config.space }] });
  await make('/v3/security_groups', { name: 'walked-free', rules: [] });
  const group = await make('/v3/security_groups', { name: 'walked', rules: [] });
  await make(`/v3/security_groups/${group}/relationships/running_spaces`, { data: [{ guid: kit.config.space }] });
  await make('/v3/isolation_segments', { name: 'walked-free' });
  await make('/v3/domains', { name: 'walked.example', relationships: org });
  await make('/v3/placement_pools', { name: 'walked', require: ['ssd'] });
  const instance = await make('/v3/service_instances', {
    type: 'user-provided',
    name: 'walked',
    credentials: { a: 'b' },
    relationships: space,
  });
  await make('/v3/service_credential_bindings', {
    type: 'app',
    relationships: { service_instance: toOne(instance), app: toOne(kit.config.apps.probe) },
  });
  return { made, instance };
}

const ofPlatform = {
  async 'each action of the platform has its command'(kit) {
    const page = await walker(kit),
      admin = await kit.admin('/orgs');
    const { made, instance } = await preparePlatform(kit, admin);
    try {
      const own = { 'a service instance': ['/services/instances/' + instance, 'main section'] };
      await walkAll(kit, page, { ...platformScreens(kit), ...own }, 60);
    } finally {
      for (const path of made) await kit.api(admin, 'DELETE', path);
    }
  },
};

export const tests = JSON.parse(process.env.CONSOLE_TEST).apps.noisy ? ofApps : ofPlatform;
