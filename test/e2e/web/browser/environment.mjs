// The tab Environment: variables changed after a look at the difference, an imported .env file, and bindings.
import { check, until } from './kit.mjs';

const dialog = page => page.getByRole('dialog');
const apply = (page, name) => dialog(page).getByRole('button', { name, exact: true }).click();
const env = async (kit, page) => (await kit.api(page, 'GET', `/v3/apps/${kit.config.apps.quiet}/environment_variables`)).body.var;

export const tests = {
  async 'a variable is added and removed, and the restart is asked for'(kit) {
    const page = await kit.admin(kit.app('quiet', 'environment'));
    await page.getByRole('button', { name: 'Set a variable…', exact: true }).click();
    await dialog(page).getByLabel('Name', { exact: true }).fill('MOTTO');
    await dialog(page).getByLabel('Value').fill('two words');
    await dialog(page).locator('.diff .add', { hasText: 'MOTTO: two words' }).waitFor();
    await dialog(page).getByText("cf set-env quiet MOTTO 'two words'").waitFor();
    await apply(page, 'Apply');
    await page
      .getByRole('row')
      .filter({ has: page.getByRole('rowheader', { name: 'MOTTO' }) })
      .getByRole('img', { name: 'hidden' })
      .waitFor();
    await page.getByText('The running instances have other values of MOTTO.').waitFor();
    await page.getByRole('button', { name: 'Remove MOTTO', exact: true }).click();
    await dialog(page).getByText('The variable MOTTO of quiet is removed.').waitFor();
    await apply(page, 'Remove');
    await page.getByRole('rowheader', { name: 'MOTTO' }).waitFor({ state: 'detached' });
    await page.getByText('Restart needed.').waitFor({ state: 'detached' });
    check(!('MOTTO' in (await env(kit, page))), 'the variable is still there');
  },
  async 'a .env file is imported after a look at the difference'(kit) {
    const page = await kit.admin(kit.app('quiet', 'environment'));
    await page.getByRole('button', { name: 'Import .env…', exact: true }).click();
    const lines = dialog(page).getByLabel('NAME=VALUE lines');
    await lines.fill('# a comment\nCOLOUR=blue\nnot a variable');
    await dialog(page).getByText('Line 3 is not NAME=VALUE').waitFor();
    check(
      await dialog(page)
        .getByRole('button', { name: /^Apply/ })
        .isDisabled(),
      'a broken file is taken',
    );
    const file = '# a comment\nexport GREETING="hello \\"you\\""\nCOLOUR=purple\nEMPTY=\n';
    await dialog(page)
      .getByLabel('From a file')
      .setInputFiles({ name: '.env', mimeType: 'text/plain', buffer: Buffer.from(file) });
    await until(async () => (await lines.inputValue()) === file, 'the file');
    await dialog(page).locator('.diff .del', { hasText: 'COLOUR: blue' }).waitFor();
    await dialog(page).locator('.diff .add', { hasText: 'GREETING: hello "you"' }).waitFor();
    await apply(page, 'Apply 3 changes');
    await page.getByRole('rowheader', { name: 'GREETING' }).waitFor();
    const vars = await env(kit, page);
    check(vars.GREETING === 'hello "you"' && vars.COLOUR === 'purple' && vars.EMPTY === '', JSON.stringify(vars));
    await page.getByText('The running instances have other values of COLOUR, EMPTY, GREETING.').waitFor();
    await kit.api(page, 'PATCH', `/v3/apps/${kit.config.apps.quiet}/environment_variables`, {
      var: { GREETING: null, EMPTY: null, COLOUR: 'blue' },
    });
  },
  async 'a service is bound, its credentials revealed, and unbound'(kit) {
    const page = await kit.admin(kit.app('quiet', 'environment'));
    const { body: made } = await kit.api(page, 'POST', '/v3/service_instances', {
      type: 'user-provided',
      name: 'mailer',
      credentials: { uri: 'smtp://hidden-place' },
      relationships: { space: { data: { guid: kit.config.space } } },
    });
    await kit.runs(page, 'quiet', 3); // a binding that is hardly younger may be in the instance
    await page.getByRole('button', { name: 'Bind a service…', exact: true }).click();
    await dialog(page).getByLabel('Service instance').selectOption({ label: 'mailer' });
    await dialog(page).getByLabel('Binding name').fill('post');
    await dialog(page).getByText('cf bind-service quiet mailer --binding-name post').waitFor();
    await apply(page, 'Bind');
    const row = page.getByRole('row').filter({ has: page.getByRole('rowheader', { name: 'mailer' }) });
    await row.getByText('post').waitFor();
    check(!(await page.content()).includes('hidden-place'), 'the credentials are shown unasked');
    await row.getByRole('button', { name: 'Reveal the credentials of mailer', exact: true }).click();
    await row.getByText('smtp://hidden-place').waitFor();
    const events = await kit.api(page, 'GET', '/v3/audit_events?types=audit.service_binding.show&order_by=-created_at&per_page=1');
    check(events.body.resources[0]?.target.type === 'service_binding', 'the reveal is no audit event');
    await page.locator('.notice', { hasText: 'They started before mailer was bound.' }).waitFor();
    await page.getByRole('button', { name: 'Reveal values', exact: true }).click();
    await page.getByText('VCAP_SERVICES').click();
    await page.getByRole('region', { name: 'VCAP_SERVICES' }).getByText('"binding_name": "post"').waitFor();
    await row.getByRole('button', { name: 'Unbind mailer', exact: true }).click();
    await dialog(page).getByText('quiet no longer gets the credentials of mailer').waitFor();
    await apply(page, 'Unbind');
    await page.getByText('No service is bound.').waitFor();
    await kit.api(page, 'DELETE', '/v3/service_instances/' + made.guid);
  },
};
