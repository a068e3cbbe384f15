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
  async 'a directory that is backed up and restored'(kit) {
    const page = await kit.admin('/services/marketplace'),
      dialog = page.getByRole('dialog');
    await page.getByRole('button', { name: 'Create an instance of files, plan small' }).click();
    await dialog.getByLabel('Name', { exact: true }).fill('shelf');
    await dialog.getByRole('button', { name: 'Create', exact: true }).click();
    await page.waitForURL('**/services/instances/*');
    await page.locator('.head .state', { hasText: 'create succeeded' }).waitFor();
    const backups = page.locator('section', { has: page.getByRole('heading', { name: 'Backups' }) }),
      rows = backups.locator('tbody tr');
    await backups.getByText('There are no backups.').waitFor();
    await backups.getByText('cupola services backup shelf', { exact: true }).waitFor({ state: 'attached' });
    await backups.getByRole('button', { name: 'Back up now' }).click();
    await rows.getByText('requested').waitFor();
    await kit.everywhere(page, 'backups of a service instance');
    await page.setViewportSize({ width: 1280, height: 800 });
    const [download] = await Promise.all([page.waitForEvent('download'), rows.getByRole('link', { name: /Download the backup/ }).click()]);
    check(/^backup_.*\.tar$/.test(download.suggestedFilename()), 'the file is ' + download.suggestedFilename());
    await rows.getByRole('button', { name: /Restore the backup/ }).click();
    await dialog.getByText(/cupola services restore shelf \S+ --force/).waitFor();
    await dialog.getByRole('button', { name: 'Restore', exact: true }).click();
    await dialog.waitFor({ state: 'detached' });
    await rows.getByText('before a restore').waitFor();
    await page.locator('.head .state', { hasText: 'update succeeded' }).waitFor();
    await rows
      .last()
      .getByRole('button', { name: /Restore the backup/ })
      .click();
    await dialog.getByLabel('New service instance').fill('copy');
    await dialog.getByText(/--new copy/).waitFor();
    await dialog.getByRole('button', { name: 'Restore', exact: true }).click();
    await page.getByRole('heading', { name: 'copy', exact: true }).waitFor();
    for (const name of ['copy', 'shelf']) {
      await page.goto(kit.console + '/services');
      await page.getByRole('link', { name, exact: true }).click();
      await page.getByRole('button', { name: 'Delete ' + name }).click();
      await dialog.getByText(`${name} is deleted with its data and its backups`).waitFor();
      await dialog.getByRole('button', { name: 'Delete', exact: true }).click();
      await page.waitForURL('**/console/services');
    }
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
  async 'an upgrade that the broker offers'(kit) {
    const page = await kit.admin('/services/brokers'),
      dialog = page.getByRole('dialog');
    const plan = (await kit.api(page, 'GET', '/v3/service_plans?names=small&service_broker_names=corner-shop')).body.resources[0].guid;
    const relationships = { space: { data: { guid: kit.config.space } }, service_plan: { data: { guid: plan } } };
    await kit.api(page, 'POST', '/v3/service_instances', { type: 'managed', name: 'aging', parameters: { size: 1 }, relationships });
    await kit.ask('broker upgrades');
    await page.getByRole('button', { name: 'Fetch the catalog of corner-shop' }).click();
    await dialog.getByRole('button', { name: 'Fetch the catalog', exact: true }).click();
    await dialog.waitFor({ state: 'detached' });
    await page.goto(kit.console + '/services');
    await page.getByRole('row', { name: /aging/ }).getByText('upgrade available').waitFor();
    await page.getByRole('link', { name: 'aging' }).click();
    await page.getByText('The broker offers an upgrade from 1.0.0 to 1.1.0. mends a leak').waitFor();
    await page.getByRole('button', { name: 'Upgrade…' }).click();
    await dialog.getByText('cf upgrade-service aging -f').waitFor();
    await dialog.getByRole('button', { name: 'Upgrade', exact: true }).click();
    await page.locator('.head .state', { hasText: 'update succeeded' }).waitFor();
    await page.getByText('The broker offers an upgrade').waitFor({ state: 'detached' });
    check((await page.getByRole('button', { name: 'Upgrade…' }).count()) === 0, 'it goes on to offer the upgrade');
    const { body } = await kit.api(page, 'GET', '/v3/service_instances?names=aging');
    check(
      body.resources[0].maintenance_info.version === '1.1.0' && !body.resources[0].upgrade_available,
      JSON.stringify(body.resources[0]),
    );
    await kit.api(page, 'DELETE', '/v3/service_instances/' + body.resources[0].guid);
  },
  async 'who may use a plan'(kit) {
    const page = await kit.admin('/services/marketplace'),
      dialog = page.getByRole('dialog');
    const theirs = await kit.as('space_developer', '/services/marketplace');
    const large = theirs.getByRole('button', { name: 'Create an instance of db, plan large' }),
      plan = page.getByRole('row', { name: /a large one/ });
    await large.waitFor();
    const set = async (before, choose, line) => {
      await plan.getByRole('button', { name: `Visible to ${before}: change for large` }).click();
      await choose();
      await dialog.getByText(line).first().waitFor();
      await dialog.getByRole('button', { name: 'Save', exact: true }).click();
      await dialog.waitFor({ state: 'detached' });
    };
    await set('public', () => dialog.getByLabel('Visible to').selectOption('admin'), 'cf disable-service-access db -p large');
    await large.waitFor({ state: 'detached' }); // their page hears of it
    const some = async () => {
      await dialog.getByLabel('Visible to').selectOption('organization');
      check(await dialog.getByRole('button', { name: 'Save', exact: true }).isDisabled(), 'no org can be saved');
      await dialog.getByLabel('cupola', { exact: true }).check();
    };
    await set('admin', some, 'cf enable-service-access db -p large -o cupola');
    await large.waitFor();
    await set('organization', () => dialog.getByLabel('Visible to').selectOption('public'), 'cf enable-service-access db -p large');
    await plan.getByRole('button', { name: 'Visible to public: change for large' }).waitFor();
  },
  async 'a form keeps to its schema, and a key shows its credentials on request'(kit) {
    const page = await kit.admin('/services/marketplace'),
      dialog = page.getByRole('dialog');
    await page.getByRole('button', { name: 'Create an instance of db, plan small' }).click();
    await dialog.getByLabel('Name', { exact: true }).fill('strict');
    await parameter(dialog, 'size').fill('');
    await dialog.getByRole('button', { name: 'Create', exact: true }).click();
    check(await parameter(dialog, 'size').evaluate(e => e.validity.valueMissing), 'a required parameter may be missing');
    await parameter(dialog, 'size').fill('2');
    await parameter(dialog, 'admin_password').pressSequentially('abc'); // minLength counts what is typed
    await dialog.getByRole('button', { name: 'Create', exact: true }).click();
    check(
      await parameter(dialog, 'admin_password').evaluate(e => e.validity.tooShort && e.type === 'password'),
      'a text too short is taken',
    );
    await parameter(dialog, 'admin_password').fill('abcd');
    await parameter(dialog, 'extensions').fill('[broken');
    await dialog.getByRole('button', { name: 'Create', exact: true }).click();
    check(await parameter(dialog, 'extensions').evaluate(e => e.validity.customError), 'broken JSON of a parameter is taken');
    await parameter(dialog, 'extensions').fill('');
    await parameter(dialog, 'hour').fill('3');
    await parameter(dialog, 'keep').fill('1.5');
    check(!(await dialog.locator('code').allTextContents()).join().includes('abcd'), 'the command line shows the password');
    await dialog.getByRole('button', { name: 'Create', exact: true }).click();
    await page.locator('.head .state', { hasText: 'create succeeded' }).waitFor();
    await kit.ask('broker got {"size":2,"admin_password":"abcd","backup":{"hour":3,"keep":1.5}}');
    await page.getByRole('button', { name: 'Create a key…' }).click();
    await dialog.getByLabel('Name', { exact: true }).fill('outside');
    await parameter(dialog, 'role').selectOption({ label: 'writer' });
    await dialog.getByRole('button', { name: 'Create', exact: true }).click();
    const row = page.locator('tr', { hasText: 'outside' });
    await row.getByText('create succeeded').waitFor();
    const key = (await kit.api(page, 'GET', '/v3/service_credential_bindings?names=outside')).body.resources[0];
    const secret = String(
      Object.values((await kit.api(page, 'GET', `/v3/service_credential_bindings/${key.guid}/details`)).body.credentials)[0],
    );
    check(!(await page.content()).includes(secret), 'the credentials are shown unasked');
    await row.getByRole('button', { name: 'Reveal the credentials of outside' }).click();
    await row.getByText(secret).first().waitFor();
    await row.getByRole('button', { name: 'Hide the credentials of outside' }).click();
    check(!(await page.content()).includes(secret), 'the credentials are not hidden again');
    await kit.api(page, 'DELETE', '/v3/service_credential_bindings/' + key.guid);
  },
  async 'bound in the app, with the parameters of the schema'(kit) {
    const page = await kit.admin(kit.app('probe', 'environment')),
      dialog = page.getByRole('dialog');
    await page.getByRole('button', { name: 'Bind a service…' }).click();
    await dialog.getByLabel('Service instance').selectOption({ label: 'strict' });
    await parameter(dialog, 'role').selectOption({ label: 'reader' });
    await dialog.getByText(`cf bind-service probe strict -c '{"role":"reader"}'`).waitFor();
    await dialog.getByRole('button', { name: 'Bind', exact: true }).click();
    const row = page.getByRole('row').filter({ has: page.getByRole('rowheader', { name: 'strict' }) });
    await row.getByText('succeeded').waitFor();
    await kit.ask('broker got {"role":"reader"}');
    await page.locator('.notice', { hasText: 'They started before strict was bound.' }).waitFor();
    await row.getByRole('button', { name: 'Unbind strict' }).click();
    await dialog.getByRole('button', { name: 'Unbind', exact: true }).click();
    await page.getByText('No service is bound.').waitFor();
    const { body } = await kit.api(page, 'GET', '/v3/service_instances?names=strict');
    await kit.api(page, 'DELETE', '/v3/service_instances/' + body.resources[0].guid);
  },
  async 'a user-provided one is changed'(kit) {
    const page = await kit.admin('/services'),
      dialog = page.getByRole('dialog');
    const relationships = { space: { data: { guid: kit.config.space } } };
    const made = await kit.api(page, 'POST', '/v3/service_instances', {
      type: 'user-provided',
      name: 'relay',
      credentials: { uri: 'smtp://before' },
      relationships,
    });
    await page.getByRole('link', { name: 'relay' }).click();
    await page.getByRole('button', { name: 'Update…' }).click();
    check((await dialog.getByLabel('Credentials, as JSON').inputValue()).includes('smtp://before'), 'the credentials are not there');
    await dialog.getByLabel('Credentials, as JSON').fill('{"uri": ');
    check(await dialog.getByRole('button', { name: 'Update', exact: true }).isDisabled(), 'broken JSON is taken');
    await dialog.getByLabel('Credentials, as JSON').fill('{"uri": "smtp://after"}');
    await dialog.getByLabel('Syslog drain URL').fill('syslog://logs.example:514');
    await dialog.getByLabel('Tags').fill('mail, fast');
    await dialog
      .getByText(`cf update-user-provided-service relay -p '{"uri":"smtp://after"}' -l syslog://logs.example:514 -t 'mail, fast'`)
      .waitFor();
    await dialog.getByRole('button', { name: 'Update', exact: true }).click();
    await page.locator('.facts').getByText('mail, fast').waitFor();
    await page.locator('.facts').getByText('syslog://logs.example:514').waitFor();
    await page.getByRole('button', { name: 'Reveal the credentials' }).click();
    await page.getByText('smtp://after').waitFor();
    await kit.api(page, 'DELETE', '/v3/service_instances/' + made.body.guid);
  },
};
