// New app: a folder, with its own manifest.
import { check, until } from './kit.mjs';

export const tests = {
  async 'a folder is pushed'(kit) {
    const page = await kit.admin('/new');
    await page.setInputFiles('input[webkitdirectory]', kit.config.folder);
    await page.getByText('manifest.yml of the folder').waitFor();
    await page.getByRole('button', { name: 'Push hello-static', exact: true }).click();
    await page.getByRole('link', { name: 'Open hello-static' }).waitFor();
    await page.locator('.log .STG').first().waitFor();
    check((await kit.request('hello-static', 'GET', '/')).status === 200, 'the app does not answer');
    await page.getByRole('link', { name: 'Open hello-static' }).click();
    await page.getByText('1 of 1 instance').waitFor();
  },
  async 'files that the daemon has are not uploaded again'(kit) {
    const page = await kit.admin('/new');
    await page.setInputFiles('input[webkitdirectory]', kit.config.program);
    await page.getByRole('button', { name: 'Use the form', exact: true }).click();
    await page.getByLabel('Name', { exact: true }).fill('again');
    await page.getByLabel('Buildpack', { exact: true }).selectOption('binary_buildpack');
    await page.getByLabel('Stack', { exact: true }).selectOption('minifs');
    await page.getByLabel('Memory').fill('64M');
    await page.getByLabel('Start command').fill('./noisy');
    await page.getByRole('button', { name: 'Push again', exact: true }).click();
    await page.getByText('1 of 1 files already here').first().waitFor();
    await page.getByRole('link', { name: 'Open again' }).click();
    await page.getByText('1 of 1 instance').waitFor();
    const guid = page.url().split('/apps/')[1].split('/')[0];
    await kit.api(page, 'DELETE', '/v3/apps/' + guid);
  },
  async 'an app that does not start says why, and how to mend it'(kit) {
    const page = await kit.admin('/new');
    await page.setInputFiles('input[webkitdirectory]', kit.config.program);
    await page.getByRole('button', { name: 'Use the form', exact: true }).click();
    await page.getByLabel('Name', { exact: true }).fill('misspelt');
    await page.getByLabel('Buildpack', { exact: true }).selectOption('binary_buildpack');
    await page.getByLabel('Stack', { exact: true }).selectOption('minifs');
    await page.getByLabel('Memory').fill('64M');
    await page.getByLabel('Start command').fill('./noizy');
    await page.getByRole('button', { name: 'Push misspelt', exact: true }).click();
    await page.getByRole('alert').filter({ hasText: 'There is no file ./noizy (did you mean ./noisy?)' }).waitFor();
    await page.getByRole('link', { name: 'Its log' }).click();
    await page.locator('.tabs').getByRole('link', { name: 'Overview' }).click();
    await page.locator('tbody tr', { hasText: 'did you mean ./noisy?' }).first().waitFor();
    const guid = page.url().split('/apps/')[1].split('/')[0];
    await kit.api(page, 'DELETE', '/v3/apps/' + guid);
  },
  async 'a staging that fails says why, with its log'(kit) {
    const page = await kit.admin('/new');
    await page.setInputFiles('input[webkitdirectory]', kit.config.nothing);
    await page.getByLabel('Name', { exact: true }).fill('nothing');
    await page.getByRole('button', { name: 'Push nothing', exact: true }).click();
    await page.getByRole('alert').filter({ hasText: 'NoAppDetectedError' }).waitFor();
    await page.getByRole('link', { name: 'Its log' }).click();
    await page.locator('.tabs').getByRole('link', { name: 'Deployments' }).click();
    const build = page.locator('.timeline .build');
    await build.getByText('failed').waitFor();
    await build.getByText('NoAppDetectedError').waitFor();
    await build.getByRole('button', { name: 'Staging log', exact: true }).click();
    await build.locator('.log .STG').first().waitFor();
    const guid = page.url().split('/apps/')[1].split('/')[0];
    await kit.api(page, 'DELETE', '/v3/apps/' + guid);
  },
  async "the manifest is shown as it is made, and its errors are the server's"(kit) {
    const page = await kit.admin('/new');
    await page.setInputFiles('input[webkitdirectory]', kit.config.folder);
    await page.getByRole('button', { name: 'Use the form', exact: true }).click();
    await page.getByLabel('Name', { exact: true }).fill('too-large');
    await page.getByLabel('Memory').fill('lots');
    await page.getByLabel('Manifest', { exact: true }).getByText('memory: lots').waitFor();
    await page.getByRole('button', { name: 'Push too-large', exact: true }).click();
    const text = await until(() => page.getByRole('alert').first().textContent(), 'the error');
    check(/memory/i.test(text), 'it says ' + text);
  },
  async 'delete asks first'(kit) {
    const page = await kit.admin('/apps?q=hello-static');
    await page.getByRole('link', { name: 'hello-static', exact: true }).click();
    await page.getByRole('button', { name: 'Delete hello-static', exact: true }).click();
    await page.getByRole('dialog').getByText('The app hello-static is deleted').waitFor();
    await page.getByRole('dialog').getByRole('button', { name: 'Delete', exact: true }).click();
    await page.waitForURL('**/console/apps');
  },
};
