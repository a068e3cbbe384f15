// Read-only admins and global auditors: each sees the screens that it may read, whose buttons change nothing;
// calls behind the buttons of admins are refused.
import { check } from './kit.mjs';
import { appScreens, platformScreens, walk } from './walk.mjs';

const sections = {
  admin_read_only: 'Apps,Services,Orgs,Audit,Machine,Stacks,Cells,Deployments,Platform',
  global_auditor: 'Apps,Services,Orgs,Audit,Cells,Deployments,Platform',
};

// What they see nothing of, beyond the table of screens.
const hidden = { admin_read_only: ['terminal', 'new app'], global_auditor: ['environment', 'terminal', 'new app', 'machine', 'stacks'] };

// What each may do: all of it reads.
const may = {
  admin_read_only: /^(Reveal|Download|List its files|Check again|Look for leaks|Export as CSV|Compare|Older|minifs|host|docker:)/,
  global_auditor: /^(Download|List its files|Export as CSV|Compare|Older)/,
};

// The calls behind the buttons that they do not see.
const calls = kit => {
  const { apps, space, org } = kit.config,
    app = '/v3/apps/' + (apps.quiet ?? apps.probe);
  const broker = { name: 'no', url: 'http://no.example', authentication: { type: 'basic', credentials: { username: 'u', password: 'p' } } };
  return [
    ['POST', app + '/actions/stop'],
    ['DELETE', app],
    ['POST', app + '/tasks', { command: 'true' }],
    ['PATCH', app + '/environment_variables', { var: { A: 'b' } }],
    ['POST', '/v3/apps', { name: 'no', relationships: { space: { data: { guid: space } } } }],
    ['POST', '/v3/organizations', { name: 'no' }],
    ['PATCH', '/v3/organizations/' + (org ?? 'none'), { name: 'no' }],
    ['PATCH', '/v3/spaces/' + space, { name: 'no' }],
    ['POST', '/v3/organization_quotas', { name: 'no' }],
    ['POST', '/v3/security_groups', { name: 'no' }],
    ['PATCH', '/v3/feature_flags/diego_docker', { enabled: false }],
    ['POST', '/v3/isolation_segments', { name: 'no' }],
    ['POST', '/v3/domains', { name: 'no.example' }],
    ['POST', '/v3/users', { guid: 'no' }],
    ['POST', '/v3/placement_pools', { name: 'no' }],
    ['POST', '/v3/service_brokers', broker],
    ['POST', '/v1/deployments', { manifest: 'name: no' }],
    ['DELETE', '/v1/deployment_tasks/1'],
    ['POST', '/v1/admin/stack/pull', { Reference: 'docker://no.example/no' }],
    ['POST', '/v1/admin/stack/gc', { All: true }],
    ['POST', '/v1/admin/stack/rm', { Name: 'no' }],
  ];
};

const denied = {
  global_auditor: kit => [
    ['GET', `/v3/apps/${kit.config.apps.quiet ?? kit.config.apps.probe}/env`],
    ['GET', '/v1/machine'],
    ['GET', '/v1/machine/checks'],
    ['POST', '/v1/admin/stack/list', {}],
    ['POST', '/v1/admin/token-keys/list', {}],
    ['POST', '/v1/admin/doctor', {}],
    ['GET', '/v1/deployments/clock'],
  ],
  admin_read_only: () => [],
};

// What a screen shows at first, before buttons are clicked, whose calls the walk refuses.
const noProblem = (role, name) => async page => {
  const problems = await page.locator('main [role=alert]').allTextContents();
  check(!problems.length, `${role} sees on ${name}: ${problems}`);
};

async function reads(kit, role) {
  const page = await kit.page(await kit.browser.newContext());
  await kit.login(page, role, kit.config.password);
  await page.locator('nav.side .version', { hasText: 'live' }).waitFor(); // then it knows what the user is
  const titles = await page.locator('nav.side a span').allTextContents();
  check(titles.join() === sections[role], `${role} sees ${titles}`);
  const screens = kit.config.apps.noisy ? appScreens(kit) : platformScreens(kit);
  let count = 0;
  for (const [name, [where, ready]] of Object.entries(screens)) {
    if (hidden[role].includes(name)) continue;
    const { actions } = await walk(page, '/console' + where, ready, { head: true, before: noProblem(role, name) });
    const wrong = actions.filter(a => !may[role].test(a));
    check(!wrong.length, `${role} sees on the screen ${name} the buttons ${wrong}`);
    count += actions.length;
  }
  check(count > 0, 'not one button was found');
  const asker = await kit.as(role, '/apps');
  for (const [method, path, json] of [...calls(kit), ...denied[role](kit)]) {
    const { status } = await kit.api(asker, method, path, json);
    check(status === 403 || status === 404, `${method} ${path} as ${role} is ${status}`);
  }
}

export const tests = {
  'a read-only admin sees everything, and changes nothing': kit => reads(kit, 'admin_read_only'),
  'a global auditor sees everything but secrets and the machine': kit => reads(kit, 'global_auditor'),
};
