// Revisions, rollback, a cancelled canary, restage.
import { check, until } from './kit.mjs';

export const tests = {
  async 'rollback in two clicks, with the difference'(kit) {
    const page = await kit.admin(kit.app('noisy', 'deployments'));
    const app = kit.config.apps.noisy;
    await kit.api(page, 'PATCH', `/v3/apps/${app}/environment_variables`, { var: { COLOUR: 'red' } });
    await kit.api(page, 'POST', '/v3/deployments', { strategy: 'rolling', relationships: { app: { data: { guid: app } } } });
    await until(async () => (await kit.request('noisy', 'GET', '/')).text.includes('red'), 'a second revision');
    await page.getByRole('button', { name: 'Roll back to revision 1' }).click();
    await page.getByRole('dialog').locator('.diff', { hasText: 'COLOUR' }).waitFor();
    await page.getByRole('dialog').getByRole('button', { name: 'Roll back' }).click();
    await until(async () => (await kit.request('noisy', 'GET', '/')).text.includes('blue'), 'the old value in the app');
    await page.getByRole('row').filter({ hasText: 'Rolled back to revision 1' }).waitFor();
  },
  async 'a canary is cancelled'(kit) {
    const page = await kit.admin(kit.app('quiet'));
    await page.getByRole('button', { name: 'Restart…' }).first().click();
    await page
      .getByRole('dialog')
      .getByLabel(/canary/)
      .check();
    await page.getByRole('dialog').getByText('cf restart quiet --strategy canary').waitFor({ state: 'attached' });
    await page.getByRole('dialog').getByRole('button', { name: 'Restart' }).click();
    await page.getByRole('button', { name: 'Continue' }).waitFor();
    await page.getByRole('button', { name: 'Cancel', exact: true }).click();
    await page.getByRole('button', { name: 'Continue' }).waitFor({ state: 'detached' });
    await page.locator('.tabs').getByRole('link', { name: 'Deployments' }).click();
    await page.locator('.timeline .deployment', { hasText: 'canceled' }).waitFor();
  },
  async 'a restage shows its log'(kit) {
    const page = await kit.admin(kit.app('quiet'));
    await page.getByRole('button', { name: 'Restage…' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Restage' }).click();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await page.locator('.tabs').getByRole('link', { name: 'Deployments' }).click();
    await page.getByRole('button', { name: 'Staging log' }).first().click();
    await page.locator('.log .STG').first().waitFor();
    check((await page.locator('.timeline .build').count()) === 2, 'there are not two builds');
  },
  async 'stop and start'(kit) {
    const page = await kit.admin(kit.app('quiet'));
    await page.getByRole('button', { name: 'Stop…' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Stop' }).click();
    await page.getByText('The app is stopped.').waitFor();
    await page.getByRole('button', { name: 'Start' }).click();
    await page.getByText('1 of 1 instance').waitFor();
  },
};
