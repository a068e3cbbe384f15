// New app: every way in: a dropped folder, a zip, the samples; and the log as staging writes it.
import fs from 'node:fs';
import path from 'node:path';
import { check, until } from './kit.mjs';

// Drops files of this machine on an element, as a file manager does.
async function drop(page, target, files) {
  const box = await target.boundingBox(),
    at = { x: box.x + box.width / 2, y: box.y + box.height / 2 };
  const client = await page.context().newCDPSession(page);
  for (const type of ['dragEnter', 'dragOver', 'drop'])
    await client.send('Input.dispatchDragEvent', { type, ...at, data: { items: [], files, dragOperationsMask: 1 } });
  await client.detach();
}

// Notes in the page whether log lines were there while the staging ran.
const watchStaging = page =>
  page.evaluate(() => {
    window.sawLive = false;
    new MutationObserver(() => {
      if (document.querySelector('.steps [aria-current=step]')?.textContent.startsWith('Stage') && document.querySelector('.log .STG'))
        window.sawLive = true;
    }).observe(document.body, { subtree: true, childList: true });
  });

async function remove(kit, page, name) {
  const { body } = await kit.api(page, 'GET', '/v3/apps?names=' + name);
  for (const app of body.resources) await kit.api(page, 'DELETE', '/v3/apps/' + app.guid);
}

async function opened(page, name) {
  await page.getByRole('link', { name: 'Open ' + name, exact: true }).click();
  await page.getByText('1 of 1 instance').first().waitFor();
}

export const tests = {
  async 'a dropped folder, with .cfignore, and the log of its staging as it comes'(kit) {
    const folder = fs.mkdtempSync(path.join(kit.config.scratch, 'dropped-'));
    fs.cpSync(kit.config.folder, folder, { recursive: true });
    fs.writeFileSync(path.join(folder, '.cfignore'), 'secret.txt\n');
    fs.writeFileSync(path.join(folder, 'secret.txt'), 'not for the app\n');
    const page = await kit.admin('/new');
    await drop(page, page.locator('.drop-zone'), [folder]);
    await page.getByText('left out, as cf push does').waitFor();
    await page.getByRole('button', { name: 'Use the form', exact: true }).click();
    await page.getByLabel('Name', { exact: true }).fill('dropped');
    await page.getByLabel('Memory').fill('64M');
    await watchStaging(page);
    await page.getByRole('button', { name: 'Push dropped', exact: true }).click();
    await opened(page, 'dropped');
    check(await page.evaluate(() => window.sawLive), 'no line of the staging log was shown while it ran');
    check((await kit.request('dropped', 'GET', '/')).status === 200, 'the app does not answer');
    await page.locator('.tabs').getByRole('link', { name: 'Files' }).click();
    await page.getByRole('button', { name: 'List its files', exact: true }).click();
    await page.getByRole('button', { name: 'app/', exact: true }).click();
    await page.getByRole('button', { name: 'public/', exact: true }).waitFor();
    check((await page.getByText('secret.txt').count()) === 0, 'an ignored file is in the droplet');
    await remove(kit, page, 'dropped');
  },
  async 'a zip is pushed as it is'(kit) {
    const page = await kit.admin('/new');
    const body = Buffer.from(await (await page.request.get(kit.console + '/samples/static.zip')).body());
    await page
      .locator('input[type=file]:not([webkitdirectory])')
      .setInputFiles({ name: 'zipped.zip', mimeType: 'application/zip', buffer: body });
    await page.locator('.drop-zone').getByText('A zip').waitFor();
    check((await page.getByLabel('Name', { exact: true }).inputValue()) === 'zipped', 'the name of the file is not proposed');
    await page.getByLabel('Memory').fill('64M');
    await page.getByLabel('Buildpack', { exact: true }).selectOption('staticfile_buildpack');
    await page.getByRole('region', { name: 'Manifest' }).getByText('- staticfile_buildpack').waitFor();
    await page.getByRole('button', { name: 'Push zipped', exact: true }).click();
    await opened(page, 'zipped');
    check((await kit.request('zipped', 'GET', '/')).status === 200, 'the app does not answer');
    await remove(kit, page, 'zipped');
  },
  async 'every sample runs'(kit) {
    const first = await kit.admin('/new');
    const samples = JSON.parse(await (await first.request.get(kit.console + '/samples')).text()).map(s => s.name);
    check(samples.length >= 5, `there are only the samples ${samples}`);
    const next = async () => {
      for (let name = samples.shift(); name; name = samples.shift()) await sample(kit, name);
    };
    await Promise.all([next(), next(), next()]); // browsers open six connections, of which each log takes one
  },
};

async function sample(kit, sample) {
  const page = await kit.admin('/new');
  await page.getByRole('button', { name: sample, exact: true }).click();
  const button = page.getByRole('button', { name: /^Push ./ });
  const name = (await button.textContent()).replace('Push ', '');
  await button.click();
  await page.getByRole('link', { name: 'Open ' + name, exact: true }).waitFor();
  await until(async () => (await kit.request(name, 'GET', '/')).status === 200, name);
  await remove(kit, page, name);
  await page.close();
}
