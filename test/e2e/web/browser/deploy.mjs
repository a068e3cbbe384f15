// Revisions, rollback, a cancelled canary, restage.
import { check, until } from './kit.mjs';

export const tests = {
  async 'rollback in two clicks, with the difference'(kit) {
    const page = await kit.admin(kit.app('noisy', 'deployments'));
    const app = kit.config.apps.noisy;
    await kit.api(page, 'PATCH', `/v3/apps/${app}/environment_variables`, { var: { COLOUR: 'red' } });
    await kit.api(page, 'POST', '/v3/deployments', { strategy: 'rolling', relationships: { app: { data: { guid: app } } } });
    await until(async () => (await kit.request('noisy', 'GET', '/')).text.includes('red'), 'a second revision');
    await page.getByRole('button', { name: 'Roll back to revision 1', exact: true }).click();
    await page.getByRole('dialog').locator('.diff', { hasText: 'COLOUR' }).waitFor();
    await page.getByRole('dialog').getByRole('button', { name: 'Roll back', exact: true }).click();
    await until(async () => (await kit.request('noisy', 'GET', '/')).text.includes('blue'), 'the old value in the app');
    await page.getByRole('row').filter({ hasText: 'Rolled back to revision 1' }).waitFor();
  },
  async 'a canary is cancelled'(kit) {
    const page = await kit.admin(kit.app('quiet'));
    await page.getByRole('button', { name: 'Restart…', exact: true }).first().click();
    await page
      .getByRole('dialog')
      .getByLabel(/canary/)
      .check();
    await page.getByRole('dialog').getByText('cf restart quiet --strategy canary').waitFor({ state: 'attached' });
    await page.getByRole('dialog').getByRole('button', { name: 'Restart', exact: true }).click();
    await page.getByRole('button', { name: 'Continue', exact: true }).waitFor();
    await page.getByRole('button', { name: 'Cancel', exact: true }).click();
    await page.getByRole('button', { name: 'Continue', exact: true }).waitFor({ state: 'detached' });
    await page.locator('.tabs').getByRole('link', { name: 'Deployments' }).click();
    await page.locator('.timeline .deployment', { hasText: 'canceled' }).waitFor();
  },
  async 'a restage shows its log'(kit) {
    const page = await kit.admin(kit.app('quiet'));
    await page.getByRole('button', { name: 'Restage…', exact: true }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Restage', exact: true }).click();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await page.locator('.tabs').getByRole('link', { name: 'Deployments' }).click();
    await page.getByRole('button', { name: 'Staging log', exact: true }).first().click();
    await page.locator('.log .STG').first().waitFor();
    check((await page.locator('.timeline .build').count()) === 2, 'there are not two builds');
  },
  async 'stop and start'(kit) {
    const page = await kit.admin(kit.app('quiet'));
    await page.getByRole('button', { name: 'Stop…', exact: true }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Stop', exact: true }).click();
    await page.getByText('The app is stopped.').waitFor();
    await page.getByRole('button', { name: 'Start', exact: true }).click();
    await page.getByText('1 of 1 instance').waitFor();
  },
  async 'two revisions compared'(kit) {
    const page = await kit.admin(kit.app('noisy', 'deployments')),
      app = kit.config.apps.noisy;
    await kit.api(page, 'PATCH', `/v3/apps/${app}/environment_variables`, { var: { COLOUR: 'amber', ADDED: 'so' } });
    const { body: process } = await kit.api(page, 'GET', `/v3/apps/${app}/processes/web`);
    await kit.api(page, 'PATCH', `/v3/processes/${process.guid}`, { command: 'exec ./noisy' });
    await kit.api(page, 'POST', '/v3/deployments', { strategy: 'rolling', relationships: { app: { data: { guid: app } } } });
    await until(async () => (await kit.request('noisy', 'GET', '/')).text.includes('amber'), 'the new revision');
    const { body } = await kit.api(page, 'GET', `/v3/apps/${app}/revisions?order_by=-created_at`),
      newest = body.resources[0].version;
    const compare = page.getByRole('button', { name: 'Compare…', exact: true });
    await page.getByLabel('Compare revision ' + newest).check();
    check(await compare.isDisabled(), 'one revision can be compared');
    await page.getByLabel('Compare revision 1').check();
    await compare.click();
    const dialog = page.getByRole('dialog');
    await dialog.getByRole('heading', { name: `Revision 1 → ${newest}` }).waitFor();
    const env = dialog.getByRole('group', { name: 'Environment' });
    await env.locator('.add', { hasText: 'ADDED = ••••••' }).waitFor();
    check(!(await dialog.textContent()).includes('amber'), 'the values are shown unasked');
    await dialog.getByLabel('Show the values of variables').check();
    await env.locator('.del', { hasText: 'COLOUR: blue' }).waitFor();
    await env.locator('.add', { hasText: 'COLOUR: amber' }).waitFor();
    const command = dialog.getByRole('group', { name: 'Start command' });
    await command.locator('.add', { hasText: 'web: exec ./noisy' }).waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Roll back to revision 1', exact: true }).click();
    await dialog.getByRole('button', { name: 'Roll back', exact: true }).click();
    await until(async () => (await kit.request('noisy', 'GET', '/')).text.includes('blue'), 'the first revision');
  },
  async 'a canary goes on by steps'(kit) {
    const page = await kit.admin(kit.app('quiet'));
    await kit.api(page, 'POST', `/v3/apps/${kit.config.apps.quiet}/processes/web/actions/scale`, { instances: 2 });
    await page.getByText('2 of 2 instances').waitFor();
    await page.getByRole('button', { name: 'Restart…', exact: true }).first().click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel(/canary/).check();
    await dialog.getByLabel('Steps').fill('50, 100');
    await dialog.getByText('cf restart quiet --strategy canary --instance-steps 50,100').waitFor();
    await dialog.getByRole('button', { name: 'Restart', exact: true }).click();
    await page.getByText('A canary deployment is paused, step 1 of 2.').waitFor();
    await page.getByRole('button', { name: 'Continue', exact: true }).click();
    await page.getByText('A canary deployment is paused, step 2 of 2.').waitFor();
    await page.getByRole('button', { name: 'Continue', exact: true }).click();
    await page.locator('.notice', { hasText: 'canary deployment' }).waitFor({ state: 'detached' });
    await page.locator('.tabs').getByRole('link', { name: 'Deployments' }).click();
    await page.locator('.timeline .deployment').first().getByText('deployed').waitFor();
    await kit.api(page, 'POST', `/v3/apps/${kit.config.apps.quiet}/processes/web/actions/scale`, { instances: 1 });
  },
  async 'a deployment that does not get through says why, with the lines before it'(kit) {
    const page = await kit.admin(kit.app('quiet', 'environment')),
      app = kit.config.apps.quiet;
    await page.getByRole('button', { name: 'Set a variable…', exact: true }).click();
    await page.getByRole('dialog').getByLabel('Name', { exact: true }).fill('CRASH');
    await page.getByRole('dialog').getByLabel('Value').fill('1');
    await page.getByRole('dialog').getByRole('button', { name: 'Apply', exact: true }).click();
    await page.getByRole('button', { name: 'Restart (rolling)', exact: true }).click();
    await page.locator('.tabs').getByRole('link', { name: 'Deployments' }).click();
    const entry = page.locator('.timeline .deployment').first();
    await entry.getByText(/Instance 0 crashed: .*Exited with status 3/).waitFor();
    await entry.getByRole('button', { name: 'Log lines before it', exact: true }).click();
    await entry.locator('.log .l', { hasText: 'fatal: no database' }).first().waitFor();
    check((await kit.request('quiet', 'GET', '/')).status === 200, 'the old instance does not serve');
    await page.getByRole('button', { name: 'Cancel', exact: true }).click();
    await entry.getByText('canceled').waitFor();
    await entry.getByText(/Instance 0 crashed/).waitFor();
    await kit.api(page, 'PATCH', `/v3/apps/${app}/environment_variables`, { var: { CRASH: null } });
  },
};
