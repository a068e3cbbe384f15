// The machine, stacks and images, cells, audit events and BOSH deployments.
import { check, until } from './kit.mjs';
import fs from 'node:fs';

export const tests = {
  async 'the checks of the machine, and what it uses'(kit) {
    const page = await kit.admin('/machine');
    await page.getByRole('meter', { name: 'CPU' }).waitFor();
    await page.getByRole('button', { name: 'All checks' }).click();
    for (const name of ['kernel', 'disk', 'overlayfs', 'nftables']) await page.getByRole('rowheader', { name, exact: true }).waitFor();
    const { body } = await kit.api(page, 'GET', '/v1/machine/checks');
    for (const r of body.results.filter(x => x.fix && x.level !== 'ok'))
      await page
        .locator('code', { hasText: r.fix.slice(0, 60) })
        .first()
        .waitFor();
    await page.getByRole('button', { name: 'Look for leaks' }).click();
    await page.getByText('Nothing leaked.').waitFor();
    const machine = (await kit.api(page, 'GET', '/v1/machine')).body;
    check(machine.version && machine.cpus > 0 && machine.disk.total_bytes > 0 && machine.containers >= 3, JSON.stringify(machine));
    await page.locator('.spark path').first().waitFor(); // a second sample came
  },
  async 'an image is pulled with bars, and collected after a dry run'(kit) {
    const page = await kit.admin('/stacks'),
      image = kit.config.registry + '/stacks/small:unused';
    await page.getByRole('button', { name: 'Pull an image…' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Image', { exact: true }).fill('oci:/etc');
    await dialog.getByRole('button', { name: 'Pull', exact: true }).click();
    await dialog.getByRole('alert').getByText('give an image in a registry').waitFor();
    await dialog.getByLabel('Image', { exact: true }).fill(image);
    await dialog.getByRole('button', { name: 'Try again' }).click();
    await dialog.getByRole('alert').waitFor(); // it wants a password
    await dialog.getByLabel('Registry user').fill(kit.config.registryUser);
    await dialog.getByLabel('Registry password').fill(kit.config.registryPassword);
    await dialog.getByRole('button', { name: 'Try again' }).click();
    await dialog.getByText(/^Pulled /).waitFor();
    check((await dialog.getByRole('meter', { name: /Layer 1 of 1/ }).count()) === 1, 'there is no bar of the layer');
    await dialog.getByRole('button', { name: 'Close', exact: true }).last().click();
    const row = page.locator('main tr', { hasText: image });
    await row.waitFor();
    await row
      .getByRole('button', { name: new RegExp(image) })
      .first()
      .click();
    await dialog.getByText('Used by').waitFor();
    await page.keyboard.press('Escape');
    await kit.ask('age images');
    await page.getByRole('button', { name: 'Remove unused…' }).click();
    await dialog.getByRole('button', { name: 'Show what would go' }).click();
    await dialog.getByText(/^Would remove \d+ image/).waitFor();
    await dialog.getByText(image).waitFor();
    check((await page.locator('main tr', { hasText: image }).count()) === 1, 'the dry run removed it');
    await dialog.getByRole('button', { name: /^Remove \d+ image/ }).click();
    await dialog.getByText(/^Removed \d+ image/).waitFor();
    await page.keyboard.press('Escape');
    await row.waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Remove unused…' }).click();
    await dialog.getByRole('button', { name: 'Show what would go' }).click();
    await dialog.getByText('Nothing would go.').waitFor();
    await page.keyboard.press('Escape');
    const lines = await page.evaluate(
      async body => (await fetch('/console/api/v1/admin/stack/pull', { method: 'POST', body })).text(),
      JSON.stringify({ Reference: image, Name: 'pulled', Username: kit.config.registryUser, Password: kit.config.registryPassword }),
    );
    check(lines.includes('{"Step":') && lines.trim().split('\n').at(-1).includes('"Done":true'), 'the pull answers ' + lines);
    await page.reload();
    for (const button of ['Remove the stack pulled', `Remove the image docker://${image}`]) {
      await page.getByRole('button', { name: button }).click();
      await dialog.getByRole('button', { name: 'Remove', exact: true }).click();
      await page.getByRole('button', { name: button }).waitFor({ state: 'detached' });
    }
    await page.locator('tr', { hasText: 'test-1-1' }).waitFor(); // the deployment runs on it
  },
  async 'cells, who runs where, and a placement pool'(kit) {
    const page = await kit.admin('/cells');
    for (const name of ['one', 'two']) await page.getByRole('heading', { name, exact: true }).waitFor();
    check((await page.getByRole('meter', { name: 'Memory' }).count()) === 2, 'there are not two cells');
    await page.getByRole('link', { name: 'probe' }).waitFor();
    await page.locator('tr', { hasText: 'clock.ticker' }).first().waitFor();
    await page.getByRole('button', { name: 'Create a pool…' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Name', { exact: true }).fill('fast');
    await dialog.getByLabel('Required tags').fill('ssd');
    await dialog.getByLabel('cupola / dev').check();
    await dialog.getByRole('button', { name: 'Create', exact: true }).click();
    const row = page.locator('tr', { hasText: 'fast' });
    await row.getByText('cupola / dev').waitFor();
    await page.goto(`${kit.console}/spaces/${kit.config.space}/placement`);
    await page.getByText('requires ssd').waitFor();
    await page.goto(kit.console + '/cells');
    await row.getByRole('button', { name: 'Delete fast' }).click();
    await dialog.getByRole('button', { name: 'Delete', exact: true }).click();
    await row.waitFor({ state: 'detached' });
  },
  async 'audit events, filtered and as CSV'(kit) {
    const page = await kit.admin('/audit');
    const hostile = '=HYPERLINK("x"),"y"';
    const { body } = await kit.api(page, 'POST', '/v3/apps', {
      name: hostile,
      relationships: { space: { data: { guid: kit.config.space } } },
    });
    await page.getByRole('link', { name: hostile }).first().waitFor(); // it came by itself
    await page.getByLabel('Type').fill('audit.app.create');
    await until(
      async () => (await page.locator('tbody td:nth-child(2)').allTextContents()).every(t => t === 'audit.app.create'),
      'the filter by type',
    );
    await page.getByLabel("Target's GUID").fill(body.guid);
    await until(async () => (await page.locator('tbody tr').count()) === 1, 'the filter by target');
    check(new URL(page.url()).searchParams.get('type') === 'audit.app.create', 'the filter is not in the address');
    const coming = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Export as CSV' }).click();
    const text = fs.readFileSync(await (await coming).path(), 'utf8'),
      lines = text.trim().split('\r\n');
    check(lines.length === 2 && lines[0].startsWith('created_at,type,'), text);
    check(lines[1].includes(`"'=HYPERLINK(""x""),""y"""`) && lines[1].includes('"admin"'), 'the line is ' + lines[1]);
    await page.getByLabel('Actor').fill('nobody-like-that');
    await page.getByText('No event is like that.').waitFor();
    await page.getByRole('button', { name: 'Clear' }).click();
    await page.getByLabel('Until').fill('2020-01-01T00:00');
    await page.getByText('No event is like that.').waitFor();
    await kit.api(page, 'DELETE', '/v3/apps/' + body.guid);
  },
  async 'a BOSH deployment with its task, an errand, and a diff before a deploy'(kit) {
    const page = await kit.admin('/bosh');
    await page
      .getByRole('link', { name: /^\d+ deploy$/ })
      .first()
      .waitFor();
    await page.getByRole('link', { name: 'clock', exact: true }).click();
    for (const name of ['ticker/0', 'ticker/1']) await page.locator('tr', { hasText: name }).getByText('running').first().waitFor();
    await page.getByText('clock_password').waitFor();
    await page.getByRole('button', { name: 'Run the errand…' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Run', exact: true }).click();
    await page.waitForURL('**/bosh/tasks/*');
    await page.locator('.head .state', { hasText: 'done' }).waitFor();
    await page.locator('tr', { hasText: 'smoke' }).first().waitFor();
    const output = page.getByRole('log', { name: 'What the instances print' });
    await output.locator('.l', { hasText: 'once' }).waitFor();
    check(!(await output.getByText('ticker').count()), 'the output of the errand has lines of others');
    await page.goto(kit.console + '/bosh/deployments/clock');
    await page.getByRole('button', { name: 'Change and deploy…' }).click();
    const dialog = page.getByRole('dialog'),
      manifest = dialog.getByLabel('Manifest', { exact: true });
    await manifest.fill((await manifest.inputValue()).replace('instances: 2', 'instances: 1'));
    await dialog.getByRole('button', { name: 'Review' }).click();
    await dialog.locator('.del', { hasText: 'instances: 2' }).waitFor();
    await dialog.locator('.add', { hasText: 'instances: 1' }).waitFor();
    await dialog.getByRole('button', { name: 'Deploy', exact: true }).click();
    await page.waitForURL('**/bosh/tasks/*');
    await page.locator('.head .state', { hasText: 'done' }).waitFor();
    await page.goto(kit.console + '/bosh/deployments/clock');
    await page.locator('tr', { hasText: 'ticker/0' }).waitFor();
    await until(async () => (await page.locator('tr', { hasText: 'ticker/1' }).count()) === 0, 'the second instance to go');
    await page.goto(kit.console + '/bosh');
    await page.locator('tr', { hasText: 'clock ticker/1' }).getByText('orphaned').waitFor();
    await page.getByRole('button', { name: 'Delete the disk of clock ticker/1' }).click();
    await dialog.getByRole('button', { name: 'Delete', exact: true }).click();
    await page.locator('tr', { hasText: 'clock ticker/1' }).waitFor({ state: 'detached' });
  },
};
