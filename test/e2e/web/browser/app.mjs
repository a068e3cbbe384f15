// An app: scale, environment, tasks, terminal, routes, metrics, events.
import { check, until } from './kit.mjs';

export const tests = {
  async 'scale: one more, and what a change of memory restarts'(kit) {
    const page = await kit.admin(kit.app('quiet'));
    await page.getByRole('button', { name: 'One more instance of web' }).click();
    await page.getByText('2 of 2 instances').waitFor();
    await page.getByRole('button', { name: 'Scale web' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText('Nothing changes.').waitFor();
    await dialog.getByLabel('Memory (MB)').fill('80');
    await dialog.getByText('All 2 instances restart').waitFor();
    await dialog.getByText(/Quota of the org cupola: \d+/).waitFor();
    await dialog.getByLabel('Memory (MB)').fill('64');
    await dialog.getByLabel('Instances', { exact: true }).fill('1');
    await dialog.getByRole('button', { name: 'Scale' }).click();
    await page.getByText('1 of 1 instance').waitFor();
  },
  async 'environment: masked, revealed as an audit event, and changed after a look at the difference'(kit) {
    const page = await kit.admin(kit.app('noisy', 'environment'));
    await page.getByRole('rowheader', { name: 'COLOUR' }).waitFor();
    check(!(await page.content()).includes('blue'), 'the value is in the page before it is revealed');
    await page.getByRole('button', { name: 'Reveal values' }).click();
    await page.getByRole('cell', { name: 'blue' }).waitFor();
    const events = await kit.api(page, 'GET', `/v3/audit_events?types=audit.app.environment.show&target_guids=${kit.config.apps.noisy}`);
    check(events.body.resources.length > 0, 'the reveal is no audit event');
    await page.getByRole('button', { name: 'Change COLOUR' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Value').fill('green');
    await dialog.locator('.diff .del', { hasText: 'blue' }).waitFor();
    await dialog.locator('.diff .add', { hasText: 'green' }).waitFor();
    await dialog.getByRole('button', { name: 'Apply' }).click();
    await page.getByText('Restart needed.').waitFor();
    await page.getByRole('button', { name: 'Restart (rolling)' }).click();
    await until(async () => (await kit.request('noisy', 'GET', '/')).text.includes('green'), 'the new value in the app');
  },
  async 'tasks: run, log, again, cancel'(kit) {
    const page = await kit.admin(kit.app('quiet', 'tasks'));
    const run = async command => {
      await page.getByRole('button', { name: 'Run a task…' }).first().click();
      await page.getByRole('dialog').getByRole('textbox', { name: 'Command' }).fill(command);
      await page.getByRole('dialog').getByRole('button', { name: 'Run' }).click();
    };
    await run('./noisy 0');
    await page.getByText('task ends').waitFor();
    await page.getByRole('row').filter({ hasText: 'succeeded' }).first().waitFor();
    await run('./noisy 600');
    await page.getByRole('button', { name: 'Cancel task 2' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel the task' }).click();
    await page.getByRole('row').filter({ hasText: 'failed' }).first().waitFor();
    await page
      .getByRole('button', { name: /Run again/ })
      .last()
      .click();
    await page.getByRole('rowheader').nth(2).waitFor();
  },
  async 'terminal: a command'(kit) {
    const page = await kit.admin(kit.app('quiet', 'terminal'));
    await page.locator('.xterm-rows').waitFor();
    await page.locator('.xterm-rows', { hasText: '$' }).waitFor();
    await page.keyboard.type('echo it-$((20+3))\n');
    await page.locator('.xterm-rows', { hasText: 'it-23' }).waitFor();
    const size = await page.evaluate(() =>
      Math.max(
        ...performance
          .getEntriesByType('resource')
          .filter(e => e.name.endsWith('.js'))
          .map(e => e.encodedBodySize),
      ),
    );
    check(size > 50000 && size <= 100000, 'the terminal has ' + size + ' bytes');
  },
  async 'routes: the last requests, map and unmap'(kit) {
    const page = await kit.admin(kit.app('quiet', 'routes'));
    await kit.request('quiet', 'GET', '/some/where?x=1');
    await page.getByText('GET /some/where?x=1').first().waitFor();
    await page.getByRole('button', { name: 'Map a route…' }).click();
    await page.getByRole('dialog').getByRole('textbox', { name: 'Host' }).fill('second');
    await page.getByRole('dialog').getByRole('button', { name: 'Map', exact: true }).click();
    await page.getByRole('link', { name: 'second.localhost' }).waitFor();
    await until(async () => (await kit.request('second', 'GET', '/')).status === 200, 'the route');
    await page.getByRole('button', { name: 'Unmap second.localhost' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Unmap' }).click();
    await page.getByRole('link', { name: 'second.localhost' }).waitFor({ state: 'detached' });
  },
  async 'metrics: requests and what instances use'(kit) {
    const page = await kit.admin(kit.app('quiet', 'metrics'));
    await page.getByText(/\d+ requests?: p50 [\d.]+ ms/).waitFor();
    await page.locator('.chart canvas').nth(4).waitFor();
  },
  async 'files: the droplet, unpacked in the browser'(kit) {
    const page = await kit.admin(kit.app('noisy', 'files'));
    await page.getByRole('button', { name: 'List its files' }).click();
    await page.getByRole('button', { name: 'app/' }).click();
    await page.getByRole('row', { name: /noisy .*rwxr-xr-x/ }).waitFor();
    await page.getByRole('navigation', { name: 'Folder' }).getByRole('button', { name: 'droplet' }).click();
    await page.getByRole('button', { name: 'staging_info.yml' }).click();
    await page.getByRole('region', { name: 'staging_info.yml' }).getByText('start_command').waitFor();
  },
  async 'events: who did what'(kit) {
    const page = await kit.admin(kit.app('noisy', 'events'));
    await page.getByRole('rowheader', { name: 'app.environment.show' }).first().waitFor();
  },
};
