// What users, brokers and BOSH's manifests can write is text on the screens of the platform.
import { check, until } from './kit.mjs';
import { strings, pour, unharmed, verbatim, view } from './hostility.mjs';

const toOne = guid => ({ data: { guid } });
const texts = accepted => accepted.map(a => a.s);

export const tests = {
  async 'orgs, spaces, quotas, groups, domains, users and segments'(kit) {
    const page = await kit.admin('/orgs');
    const { org } = kit.config;
    const developer = await kit.as('space_developer', '/services');
    const own = { type: 'user-provided', name: 'before-all', relationships: { space: toOne(kit.config.space) } };
    check((await kit.api(developer, 'POST', '/v3/service_instances', own)).status === 201, 'a developer creates no instance');
    const made = {};
    const names = (what, path, more = () => ({})) =>
      pour(kit, page, what, (s, n) => ['POST', path, { name: s, ...more(s, n) }]).then(all => {
        made[what] = texts(all);
        return all;
      });
    const orgs = await names('names of orgs', '/v3/organizations');
    const spaces = await names('names of spaces', '/v3/spaces', (_, n) => ({
      relationships: { organization: toOne(orgs[n % orgs.length].body.guid) },
    }));
    await names('names of quotas', '/v3/organization_quotas', (_, n) => ({
      relationships: { organizations: { data: [{ guid: orgs[n % orgs.length].body.guid }] } },
    }));
    await names('names of space quotas', '/v3/space_quotas', () => ({ relationships: { organization: toOne(org) } }));
    await names('names of groups, and descriptions of rules', '/v3/security_groups', s => ({
      rules: [{ protocol: 'tcp', destination: '192.0.2.1', ports: '25', description: s }],
    }));
    await names('names of domains', '/v3/domains');
    await names('names of segments', '/v3/isolation_segments');
    await names('names of pools', '/v3/placement_pools', () => ({ require: ['ssd'] }));
    await names('names of buildpacks', '/v3/buildpacks');
    await names('names of stacks, and descriptions', '/v3/stacks', s => ({ description: s }));
    const users = await pour(kit, page, 'names of users', s => [
      'POST',
      '/Users',
      { userName: s, password: kit.config.password, emails: [{ value: 'x@x' }] },
    ]);
    await pour(kit, page, 'users of the API', (_, n) => users[n] && ['POST', '/v3/users', { guid: users[n].body.id }]);
    await pour(
      kit,
      page,
      'members',
      (_, n) =>
        users[n] && [
          'POST',
          '/v3/roles',
          { type: 'organization_user', relationships: { user: toOne(users[n].body.id), organization: toOne(org) } },
        ],
    );
    const flags = (await kit.api(page, 'GET', '/v3/feature_flags?per_page=100')).body.resources.map(f => f.name);
    await pour(kit, page, 'messages of flags', (s, n) => [
      'PATCH',
      '/v3/feature_flags/' + flags[n % flags.length],
      { custom_error_message: s },
    ]);
    await view(kit, page, '/orgs', 'tbody tr >> nth=99', [...made['names of orgs'], ...made['names of spaces']]);
    await view(kit, page, '/orgs/' + orgs[0].body.guid, 'tbody tr', [orgs[0].s]);
    await view(kit, page, `/orgs/${orgs[0].body.guid}/quota`, '.meter', [orgs[0].s]);
    await view(kit, page, '/spaces/' + spaces[0].body.guid, 'main h1', [spaces[0].s]);
    await view(kit, page, `/orgs/${org}/members`, '.matrix tbody tr >> nth=9', texts(users));
    await view(kit, page, '/platform', 'tbody tr >> nth=99', [...made['names of quotas'], ...made['names of space quotas']]);
    await view(kit, page, '/platform/security-groups', 'tbody tr >> nth=99', made['names of groups, and descriptions of rules']);
    await view(kit, page, '/platform/flags', 'tbody tr', strings.slice(-flags.length));
    await view(kit, page, '/platform/buildpacks', 'tbody tr', made['names of buildpacks']);
    await view(kit, page, '/platform/segments', 'tbody tr', made['names of segments']);
    await view(kit, page, '/platform/domains', 'tbody tr', made['names of domains']);
    await view(kit, page, '/platform/users', 'tbody tr >> nth=9', texts(users));
    await view(kit, page, '/cells', 'tbody tr >> nth=99', made['names of pools']);
    await view(kit, page, '/stacks', 'tbody tr');
    await view(kit, page, '/audit', 'tbody tr >> nth=40');
    for (const details of (await page.getByText('Details', { exact: true }).all()).slice(0, 20)) await details.click();
    await unharmed(kit, page, 'the details of events');
  },
  async 'the texts of a broker, and what is made of its services'(kit) {
    const page = await kit.admin('/services');
    await kit.ask('hostile broker');
    await until(
      async () => (await kit.api(page, 'GET', '/v3/service_offerings?per_page=1')).body.pagination.total_results > 100,
      'the catalog',
    );
    const offerings = (await kit.api(page, 'GET', '/v3/service_offerings?per_page=1000')).body.resources
      .map(o => o.name)
      .filter(n => strings.includes(n));
    await view(kit, page, '/services/marketplace', '.offering >> nth=99', strings, offerings.length);
    check(offerings.length > 100, `only ${offerings.length} offerings`);
    await view(kit, page, '/services/brokers', 'tbody tr', [strings[0]]);
    await page.goto(kit.console + '/services/marketplace');
    await page
      .getByRole('button', { name: `Create an instance of ${offerings[0]}`, exact: false })
      .first()
      .click();
    await page.getByRole('dialog').locator('[data-parameter]').first().waitFor();
    await verbatim(page, 'the form of a plan', [offerings[0]]);
    await page.keyboard.press('Escape');
    const space = { space: toOne(kit.config.space) };
    const provided = await pour(kit, page, 'names, tags and credentials of service instances', s => [
      'POST',
      '/v3/service_instances',
      {
        type: 'user-provided',
        name: s,
        tags: [s],
        credentials: { [s]: s },
        syslog_drain_url: 'https://x.example/' + encodeURIComponent(s),
        relationships: space,
      },
    ]);
    await pour(kit, page, 'URLs of drains', s => ['PATCH', '/v3/service_instances/' + provided[0].body.guid, { syslog_drain_url: s }]);
    await pour(kit, page, 'URLs of route services', s => [
      'PATCH',
      '/v3/service_instances/' + provided[1].body.guid,
      { route_service_url: s },
    ]);
    await pour(kit, page, 'names of bindings', s => [
      'POST',
      '/v3/service_credential_bindings',
      { type: 'app', name: s, relationships: { service_instance: toOne(provided[0].body.guid), app: toOne(kit.config.apps.probe) } },
    ]);
    await view(kit, page, '/services', 'tbody tr >> nth=99', texts(provided));
    for (const { s, body } of [provided[0], provided[1], provided[5], provided.at(-1)]) {
      await view(kit, page, '/services/instances/' + body.guid, '.facts', [s]);
      await page.getByRole('button', { name: 'Reveal the credentials', exact: true }).click();
      await page.locator('.pairs').waitFor();
      await unharmed(kit, page, 'the credentials');
    }
    await managed(kit, page, space);
  },
  async 'events of an actor, far behind the newest'(kit) {
    const page = await kit.admin('/audit?actor=space_developer');
    await page.locator('tbody tr', { hasText: 'before-all' }).waitFor();
    const said = await page.getByText(/^All [\d,]+ events that the other filters leave were searched/).textContent();
    const number = Number(/[\d,]+/.exec(said)[0].replace(',', ''));
    check(number > 1000, `only ${number} events were searched`);
    await page.goto(kit.console + '/audit?actor=admin');
    await page.getByText(/^Only the newest 1,000 of [\d,]+ events were searched, back to/).waitFor();
    const first = () => page.locator('tbody tr').first().textContent();
    const before = await first();
    await page.getByRole('button', { name: 'Older' }).click();
    await page.getByText('Page 2', { exact: true }).waitFor();
    await until(async () => (await first()) !== before, 'the second page');
    check((await page.locator('tbody tr').count()) === 50, 'a page is not full');
  },
  async 'manifests of BOSH'(kit) {
    const page = await kit.admin('/bosh');
    await pour(kit, page, 'manifests with names of deployments', s => [
      'POST',
      '/v1/deployments',
      { manifest: kit.config.manifest.replace('clock', JSON.stringify(s)), dry_run: true },
    ]);
    await pour(kit, page, 'manifests with names of groups and jobs', s => [
      'POST',
      '/v1/deployments',
      { manifest: kit.config.manifest.replaceAll('ticker', JSON.stringify(s)), dry_run: true },
    ]);
    await page.getByRole('button', { name: 'Deploy…' }).click();
    await page
      .getByLabel('Manifest', { exact: true })
      .fill(
        `name: ${JSON.stringify(strings[0])}\n${JSON.stringify(strings[1])}` +
          `: {}\ninstance_groups:\n- name: ${JSON.stringify(strings[3])}\n`,
      );
    await page.getByRole('dialog').getByRole('button', { name: 'Review' }).click();
    await page.getByRole('dialog').locator('.plainlist, [role=alert]').first().waitFor();
    await verbatim(page, 'the review of a manifest', [strings[0], strings[3]]);
    await page.keyboard.press('Escape');
  },
};

// Instances and keys of a plan; and one whose broker says hostile things.
async function managed(kit, page, space) {
  const plan = (await kit.api(page, 'GET', '/v3/service_plans?names=small&service_broker_names=corner-shop')).body.resources[0].guid;
  const parameters = { size: 4 };
  const ready = { type: 'managed', relationships: { ...space, service_plan: toOne(plan) } };
  const made = await kit.api(page, 'POST', '/v3/service_instances', { ...ready, name: 'kept', parameters });
  check(made.status === 202, 'the instance is refused: ' + made.status);
  const find = async name => (await kit.api(page, 'GET', '/v3/service_instances?names=' + name)).body.resources[0];
  const settled = async name => ['succeeded', 'failed'].includes((await find(name))?.last_operation.state);
  await until(() => settled('kept'), 'the instance');
  const kept = await find('kept');
  const keys = await pour(kit, page, 'names of keys', s => [
    'POST',
    '/v3/service_credential_bindings',
    { type: 'key', name: s, relationships: { service_instance: toOne(kept.guid) } },
  ]);
  await view(kit, page, '/services/instances/' + kept.guid, '.facts', texts(keys));
  await kit.ask('broker says hostile things');
  for (const name of ['scripted', 'failed']) {
    await kit.api(page, 'POST', '/v3/service_instances', { ...ready, name, parameters });
    await until(() => settled(name), name);
    await view(kit, page, '/services/instances/' + (await find(name)).guid, '.facts');
  }
  await kit.ask('broker heals');
  check((await find('scripted')).dashboard_url === 'javascript:alert(1)', 'the dashboard is ' + (await find('scripted')).dashboard_url);
}
