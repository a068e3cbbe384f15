// Services: an instance of a plan through the form of its schema, bound to an app; shared, updated and deleted.
import { check, until } from './kit.mjs';

const parameter = (page, name) => page.locator(`[data-parameter="${name}"]`);

export const tests = {
  async 'an instance by the form of its schema'(kit) {
    const page = await kit.admin('/services/marketplace');
    await page.getByText('9.5 USD monthly').waitFor();
    await page.getByRole('button', { name: 'Create an instance of db, plan small' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Name', { exact: true }).fill('ledger');
    check((await parameter(dialog, 'size').inputValue()) === '4', 'the default is not there');
    await parameter(dialog, 'size').fill('100');
    await dialog.getByRole('button', { name: 'Create', exact: true }).click();
    check(await parameter(dialog, 'size').evaluate(e => !e.validity.valid), 'a size beyond the maximum is taken');
    await parameter(dialog, 'size').fill('8');
    await parameter(dialog, 'engine').selectOption({ label: 'safe' });
    await parameter(dialog, 'audited').check();
    await parameter(dialog, 'extensions').fill('["gis"]');
    await parameter(dialog, 'hour').fill('3');
    const line = await dialog.locator('code', { hasText: 'create-service' }).textContent();
    check(
      line === `cf create-service db small ledger -c '{"size":8,"engine":"safe","audited":true,"extensions":["gis"],"backup":{"hour":3}}'`,
      'the line is ' + line,
    );
    await dialog.getByRole('button', { name: 'Write JSON instead' }).click();
    check(JSON.parse(await dialog.getByLabel('As JSON').inputValue()).backup.hour === 3, 'the JSON is another one');
    await dialog.getByRole('button', { name: 'Show the form' }).click();
    await dialog.getByRole('button', { name: 'Create', exact: true }).click();
    await page.waitForURL('**/services/instances/*');
    await page.locator('.head .state', { hasText: 'create succeeded' }).waitFor();
    await page.getByRole('button', { name: 'Reveal the parameters' }).click();
    await page.getByText('"gis"').waitFor();
    await kit.ask('broker got {"size":8,"engine":"safe","audited":true,"extensions":["gis"],"backup":{"hour":3}}');
  },
  async 'bound to an app, with masked credentials'(kit) {
    const page = await kit.admin('/services');
    await page.getByRole('link', { name: 'ledger' }).click();
    await page.getByRole('button', { name: 'Bind to an app…' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.locator('select').first().selectOption({ label: 'probe' });
    await parameter(dialog, 'role').selectOption({ label: 'reader' });
    await dialog.getByRole('button', { name: 'Bind', exact: true }).click();
    const row = page.locator('tr', { hasText: 'probe' });
    await row.getByText('create succeeded').waitFor();
    const { body } = await kit.api(page, 'GET', '/v3/service_credential_bindings?type=app&app_guids=' + kit.config.apps.probe);
    const details = await kit.api(page, 'GET', `/v3/service_credential_bindings/${body.resources[0].guid}/details`);
    const secret = String(Object.values(details.body.credentials)[0]);
    check(!(await page.content()).includes(secret), 'the credentials are shown unasked');
    await row.getByRole('button', { name: 'Reveal the credentials of probe' }).click();
    await row.getByText(secret).first().waitFor();
    const env = await kit.api(page, 'GET', `/v3/apps/${kit.config.apps.probe}/env`);
    check(env.body.system_env_json.VCAP_SERVICES.db[0].name === 'ledger', 'the app is not bound');
    await page.getByRole('button', { name: 'Create a key…' }).click();
    await page.getByRole('dialog').getByLabel('Name', { exact: true }).fill('outside');
    await page.getByRole('dialog').getByRole('button', { name: 'Create', exact: true }).click();
    await page.locator('tr', { hasText: 'outside' }).getByText('create succeeded').waitFor();
    await row.getByRole('button', { name: 'Unbind probe' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Unbind', exact: true }).click();
    await page.getByText('No app is bound to it.').waitFor();
  },
  async 'shared, updated and deleted'(kit) {
    const page = await kit.admin('/services');
    await kit.api(page, 'PATCH', '/v3/feature_flags/service_instance_sharing', { enabled: true });
    const { body: other } = await kit.api(page, 'POST', '/v3/spaces', {
      name: 'other',
      relationships: { organization: { data: { guid: kit.config.org } } },
    });
    await page.getByRole('link', { name: 'ledger' }).click();
    await page.getByRole('button', { name: 'Share…' }).click();
    await page.getByRole('dialog').getByLabel('With the space').selectOption(other.guid);
    await page.getByRole('dialog').getByRole('button', { name: 'Share', exact: true }).click();
    await page.locator('section', { hasText: 'Shared with' }).getByText('cupola / other').waitFor();
    await page.getByRole('button', { name: 'Update…' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Plan').selectOption({ label: 'large' });
    await dialog.getByRole('button', { name: 'Update', exact: true }).click();
    await page.locator('.facts', { hasText: 'large' }).waitFor();
    await page.getByRole('button', { name: 'Unshare with other' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Unshare', exact: true }).click();
    await page.getByRole('heading', { name: 'Shared with' }).waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Delete the key outside' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Delete', exact: true }).click();
    await page.getByText('There are no keys').waitFor();
    await page.getByRole('button', { name: 'Delete ledger' }).click();
    await page.getByRole('dialog').getByText('ledger is deleted with its data').waitFor();
    await page.getByRole('dialog').getByRole('button', { name: 'Delete', exact: true }).click();
    await page.waitForURL('**/console/services');
    await kit.api(page, 'DELETE', '/v3/spaces/' + other.guid);
  },
  async 'a user-provided one'(kit) {
    const page = await kit.admin('/services');
    await page.getByRole('button', { name: 'User-provided…' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Name', { exact: true }).fill('mail');
    await dialog.getByLabel('Credentials, as JSON').fill('{"uri": "smtp://secret-place"}');
    await dialog.getByRole('button', { name: 'Create', exact: true }).click();
    await page.waitForURL('**/services/instances/*');
    await page.getByRole('button', { name: 'Reveal the credentials' }).click();
    await page.getByText('smtp://secret-place').waitFor();
    await page.getByRole('button', { name: 'Delete mail' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Delete', exact: true }).click();
    await page.waitForURL('**/console/services');
  },
  async 'what a broker refuses is shown'(kit) {
    const page = await kit.admin('/services/marketplace');
    await kit.ask('broker fails');
    await page.getByRole('button', { name: 'Create an instance of db, plan small' }).click();
    await page.getByRole('dialog').getByLabel('Name', { exact: true }).fill('refused');
    await page.getByRole('dialog').getByRole('button', { name: 'Create', exact: true }).click();
    await page.waitForURL('**/services/instances/*');
    await page.locator('.head .state', { hasText: 'create failed' }).waitFor();
    await page.getByRole('alert').getByText('no room on the shelf').waitFor();
    await kit.ask('broker heals');
    await page.getByRole('button', { name: 'Delete refused' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Delete', exact: true }).click();
    await page.waitForURL('**/console/services');
    await until(
      async () => (await kit.api(page, 'GET', '/v3/service_instances?names=refused')).body.resources.length === 0,
      'the deletion',
    );
  },
};
