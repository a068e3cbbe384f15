// Orgs, spaces, roles, quotas, feature flags and buildpacks; what each role may see and do.
import { check, until } from './kit.mjs';

const submit = (page, name) => page.getByRole('dialog').getByRole('button', { name, exact: true }).click();

export const tests = {
  async 'an org, a space and a role, given and taken'(kit) {
    const page = await kit.admin('/orgs');
    await page.getByRole('button', { name: 'Create an org…' }).click();
    await page.getByRole('dialog').getByLabel('Name', { exact: true }).fill('acme');
    await submit(page, 'Create');
    await page.waitForURL('**/console/orgs/*');
    await page.getByRole('button', { name: 'Create a space…' }).click();
    await page.getByRole('dialog').getByLabel('Name', { exact: true }).fill('prod');
    await submit(page, 'Create');
    await page.waitForURL('**/console/spaces/*');
    const space = page.url().split('/').pop();
    await page.getByRole('button', { name: 'Add a member…' }).click();
    await page.getByRole('dialog').getByLabel('User name').fill('space_auditor');
    await page.getByRole('dialog').getByText('cf set-space-role space_auditor acme prod SpaceDeveloper').waitFor();
    await submit(page, 'Add');
    const cell = page.getByRole('button', { name: 'Developer: space_auditor' });
    await until(async () => (await cell.getAttribute('aria-pressed')) === 'true', 'the role');
    const theirs = await kit.as('space_auditor', '/orgs');
    await theirs.getByRole('link', { name: 'prod' }).waitFor();
    await cell.click();
    await page.getByRole('dialog').getByText('space_auditor is no longer developer of prod').waitFor();
    await submit(page, 'Remove');
    await page.getByText('Nobody has a role here.').waitFor();
    await theirs.getByRole('link', { name: 'prod' }).waitFor({ state: 'detached' }); // its page hears of it
    check(
      (await kit.api(page, 'GET', '/v3/roles?types=space_developer&space_guids=' + space)).body.resources.length === 0,
      'the role is still there',
    );
    await page.getByRole('link', { name: 'acme' }).click();
    await page.getByRole('button', { name: 'Delete acme' }).click();
    await submit(page, 'Delete');
    await page.waitForURL('**/console/orgs');
    await page.getByRole('link', { name: 'acme' }).waitFor({ state: 'detached' });
  },
  async 'a quota, with its use'(kit) {
    const page = await kit.admin('/platform');
    await page.getByRole('button', { name: 'Create a quota…' }).click();
    await page.getByRole('dialog').getByLabel('Name', { exact: true }).fill('tight');
    await page.getByRole('dialog').getByLabel('Memory (MB)').fill('256');
    await submit(page, 'Create');
    await page.locator('tr', { hasText: 'tight' }).getByText('256M').waitFor();
    await page.goto(`${kit.console}/orgs/${kit.config.org}/quota`);
    await page.getByRole('meter', { name: 'Memory' }).waitFor();
    await page.getByRole('button', { name: 'Set another quota…' }).click();
    await page.getByRole('dialog').getByLabel('Quota', { exact: true }).selectOption({ label: 'tight' });
    await submit(page, 'Set');
    await page.getByText('64M of 256M').waitFor();
    const { body } = await kit.api(page, 'GET', '/v3/organization_quotas?names=default');
    await kit.api(page, 'POST', `/v3/organization_quotas/${body.resources[0].guid}/relationships/organizations`, {
      data: [{ guid: kit.config.org }],
    });
    await page.getByText('64M of 100G').waitFor();
    await page.goto(kit.console + '/platform');
    await page.getByRole('button', { name: 'Delete tight' }).click();
    await submit(page, 'Delete');
    await page.locator('tr', { hasText: 'tight' }).waitFor({ state: 'detached' });
  },
  async 'a feature flag, a buildpack, a security group and a user'(kit) {
    const page = await kit.admin('/platform/flags');
    await kit.api(page, 'PATCH', '/v3/feature_flags/diego_docker', { enabled: false });
    await page.getByRole('button', { name: 'Enable diego_docker' }).click();
    await submit(page, 'Enable');
    await page.getByRole('button', { name: 'Disable diego_docker' }).waitFor();
    await page.goto(kit.console + '/platform/buildpacks');
    await page.getByRole('button', { name: 'Lock go_buildpack' }).click();
    await page.getByRole('button', { name: 'Unlock go_buildpack' }).click();
    const names = () => page.locator('tbody th strong').allTextContents();
    const second = (await names())[1];
    await page.getByRole('button', { name: 'Move up ' + second }).click();
    await until(async () => (await names())[0] === second, 'the order');
    await page.goto(kit.console + '/platform/security-groups');
    await page.getByRole('button', { name: 'Create a group…' }).click();
    await page.getByRole('dialog').getByLabel('Name', { exact: true }).fill('mail-out');
    await page.getByRole('dialog').getByLabel('Rules, as JSON').fill('[{"protocol": "tcp", "destination": "192.0.2.1", "ports": "25"}');
    check(await page.getByRole('dialog').getByRole('button', { name: 'Create', exact: true }).isDisabled(), 'broken JSON is taken');
    await page.getByRole('dialog').getByLabel('Rules, as JSON').fill('[{"protocol": "tcp", "destination": "192.0.2.1", "ports": "25"}]');
    await submit(page, 'Create');
    await page.getByText('tcp 192.0.2.1 ports 25').waitFor();
    await page.goto(kit.console + '/platform/users');
    await page.getByRole('button', { name: 'Create a user…' }).click();
    await page.getByRole('dialog').getByLabel('User name').fill('newcomer');
    await page.getByRole('dialog').getByLabel('Password', { exact: true }).fill('a-password-of-users');
    await submit(page, 'Create');
    const row = page.locator('tr', { hasText: 'newcomer' });
    await row.waitFor();
    await row.getByRole('button', { name: 'Delete newcomer' }).click();
    await submit(page, 'Delete');
    await row.waitFor({ state: 'detached' });
  },
  async 'an auditor sees no screens of administrators, and no buttons'(kit) {
    const page = await kit.as('space_auditor', '/apps');
    const titles = await page.locator('nav.side a span').allTextContents();
    check(titles.join() === 'Apps,Services,Orgs,Audit', 'the navigation is ' + titles);
    for (const where of [
      '/services',
      '/services/marketplace',
      '/orgs',
      '/orgs/' + kit.config.org,
      '/orgs/' + kit.config.org + '/members',
      '/spaces/' + kit.config.space,
      '/spaces/' + kit.config.space + '/security-groups',
      '/audit',
    ]) {
      await page.goto(kit.console + where);
      await page.locator('main h1').waitFor();
      await page.waitForFunction(() => !document.querySelector('main .skeleton'));
      const buttons = await page
        .locator('main button')
        .evaluateAll(all => all.map(b => b.textContent).filter(t => /…|Create|Delete|Rename|Add/.test(t)));
      check(buttons.length === 0, `${where} shows ${buttons}`);
    }
    for (const where of ['/machine', '/stacks', '/cells', '/bosh', '/platform']) {
      await page.goto(kit.console + where);
      await page.getByRole('alert').first().waitFor();
    }
    const forbidden = [
      ['GET', '/v1/machine'],
      ['GET', '/v1/machine/checks'],
      ['POST', '/v1/admin/stack/list', {}],
      ['POST', '/v1/admin/stack/gc', { All: true }],
      ['POST', '/v1/admin/doctor', {}],
      ['GET', '/v1/cells'],
      ['GET', '/v1/deployments'],
      ['POST', '/v3/organizations', { name: 'x' }],
      ['PATCH', '/v3/feature_flags/user_org_creation', { enabled: true }],
    ];
    for (const [method, path, json] of forbidden) {
      const { status, body } = await kit.api(page, method, path, json);
      check(status === 403 && body.errors[0].code === 10003, `${method} ${path} is ${status} ${JSON.stringify(body)}`);
    }
  },
  async 'a developer sees what developers may do'(kit) {
    const page = await kit.as('space_developer', '/services/marketplace');
    await page.getByRole('button', { name: 'Create an instance of db, plan small' }).waitFor();
    check((await page.getByRole('link', { name: 'Brokers' }).count()) === 0, 'a developer sees the brokers');
    check((await page.getByRole('button', { name: /Visible to/ }).count()) === 0, 'a developer may change who sees a plan');
    await page.goto(kit.console + '/spaces/' + kit.config.space);
    await page.locator('table.matrix').waitFor();
    check((await page.locator('table.matrix button').count()) === 0, 'a developer may change roles');
  },
};
