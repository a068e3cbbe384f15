// The page of a service instance of the built-in broker: its server, charts and log, as its dashboard_url leads there.
import { check, until } from './kit.mjs';

const screen = (kit, tab = '') => `/services/instances/${kit.config.instance}${tab}`;
const fact = (page, name) => page.locator('.facts > div', { has: page.locator('dt', { hasText: new RegExp(`^${name}$`) }) }).locator('dd');
const chart = (page, name) => page.locator('figure.chart', { has: page.locator('figcaption', { hasText: name }) });

export const tests = {
  async 'what the server is, and what can be restored'(kit) {
    const page = await kit.admin('/apps');
    const { body } = await kit.api(page, 'GET', '/v3/service_instances/' + kit.config.instance);
    check(body.dashboard_url.endsWith('/console' + screen(kit)), 'the dashboard is ' + body.dashboard_url);
    await page.goto(body.dashboard_url);
    await page.getByRole('heading', { name: 'cache', exact: true }).waitFor();
    await fact(page, 'Version').getByText('Redis').waitFor();
    await fact(page, 'TLS').getByText('optional').waitFor();
    await fact(page, 'Last backup').getByText('none').waitFor();
    await fact(page, 'Restorable').getByText('to each second since').waitFor();
    await page.getByRole('button', { name: 'Back up now' }).click();
    await fact(page, 'Last backup').locator('time').waitFor();
  },
  async 'charts, with limits'(kit) {
    const page = await kit.admin(screen(kit));
    for (const name of ['CPU', 'Memory', 'Disk', 'Connections']) await chart(page, name).locator('canvas').waitFor();
    await until(
      async () => (await chart(page, 'Connections').locator('figcaption .hidden').textContent()) === 'open 1',
      async () => 'the connection: ' + (await chart(page, 'Connections').locator('figcaption').textContent()),
    );
    const disk = await chart(page, 'Disk').locator('figcaption .hidden').textContent();
    check(/^used [\d.]+[KM], limit 1G$/.test(disk), 'the disk has ' + disk);
    await kit.everywhere(page, 'a service instance');
    await page.setViewportSize({ width: 1440, height: 900 });
    await page.getByRole('button', { name: '7d' }).click();
    await page.waitForURL('**?span=7d');
    await chart(page, 'Memory').locator('canvas').waitFor();
  },
  async 'the log, filtered'(kit) {
    const page = await kit.admin(screen(kit));
    await page.getByRole('navigation', { name: 'Service instance' }).getByRole('link', { name: 'Log' }).click();
    await page.waitForURL('**/log');
    const log = page.locator('.log');
    await log.getByText('Ready to accept connections').first().waitFor();
    await log.getByText('Container became healthy').first().waitFor();
    await page.getByRole('group', { name: 'Sources' }).getByRole('button', { name: /^CELL/ }).click();
    await until(async () => (await log.getByText('Container became healthy').count()) === 0, 'the lines of the cell to go');
    await page.getByRole('group', { name: 'Sources' }).getByRole('button', { name: /^CELL/ }).click();
    await kit.everywhere(page, 'the log of a service instance');
    await page.locator('code', { hasText: 'cupola services logs cache --follow' }).first().waitFor({ state: 'attached' });
  },
  async 'an auditor sees charts and log, and no points in time'(kit) {
    const page = await kit.as('space_auditor', screen(kit));
    await chart(page, 'Memory').locator('canvas').waitFor();
    await fact(page, 'Version').getByText('Redis').waitFor();
    check((await fact(page, 'Restorable').count()) === 0, 'the points in time are offered');
    await page.goto(kit.console + screen(kit, '/log'));
    await page.locator('.log').getByText('Ready to accept connections').first().waitFor();
  },
  async 'a directory has a disk and no server'(kit) {
    const page = await kit.admin('/services/instances/' + kit.config.directory);
    await chart(page, 'Disk').locator('canvas').waitFor();
    check((await page.locator('figure.chart').count()) === 1, 'there are other charts');
    check((await page.getByRole('navigation', { name: 'Service instance' }).count()) === 0, 'a log is offered');
    check((await fact(page, 'Version').count()) === 0, 'a version is shown');
  },
};
