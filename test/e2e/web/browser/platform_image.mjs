// New app of a container image in a private registry.
import { check, until } from './kit.mjs';

export const tests = {
  async 'an image of a private registry is pushed'(kit) {
    const page = await kit.admin('/new');
    await kit.api(page, 'PATCH', '/v3/feature_flags/diego_docker', { enabled: true });
    await page.getByLabel('Container image').check();
    await page.getByLabel('Name', { exact: true }).fill('pictured');
    await page.getByLabel('Image', { exact: true }).fill(kit.config.registry + '/stacks/small:noisy');
    await page
      .getByRole('region', { name: 'Manifest' })
      .getByText(`image: ${JSON.stringify(kit.config.registry + '/stacks/small:noisy')}`)
      .waitFor();
    await page.getByLabel('Memory').fill('64M');
    await page.getByRole('button', { name: 'Push pictured', exact: true }).click();
    await page.getByRole('alert').filter({ hasText: 'the registry refuses access' }).waitFor(); // it wants a password
    await page.getByRole('button', { name: 'Change and try again' }).click();
    check((await page.getByLabel('Image', { exact: true }).inputValue()).endsWith('small:noisy'), 'the form was forgotten');
    await page.getByLabel('Registry user').fill(kit.config.registryUser);
    await page.getByLabel('Registry password').fill(kit.config.registryPassword);
    check(!(await page.locator('pre.manifest').textContent()).includes(kit.config.registryPassword), 'the manifest shows the password');
    await page.getByRole('button', { name: 'Push pictured', exact: true }).click();
    await page.getByRole('link', { name: 'Open pictured', exact: true }).click();
    await page.getByText('1 of 1 instance').waitFor();
    await page.locator('.facts', { hasText: 'Image' }).getByText('small:noisy').waitFor();
    await until(async () => (await kit.request('pictured', 'GET', '/')).text.startsWith('colour'), 'the app');
    await page.locator('.tabs').getByRole('link', { name: 'Deployments' }).click();
    await page.locator('.timeline .package').first().getByText('small:noisy').waitFor();
    const guid = page.url().split('/apps/')[1].split('/')[0];
    await kit.api(page, 'DELETE', '/v3/apps/' + guid);
  },
};
