// What administrators and managers set: isolation segments, domains, security groups, quotas of spaces, names.
import { check } from './kit.mjs';

const dialog = page => page.getByRole('dialog');
const row = (page, text) => page.locator('main tr', { hasText: text });

async function submit(page, name) {
  await dialog(page).getByRole('button', { name, exact: true }).click();
  await dialog(page).waitFor({ state: 'detached' });
}

export const tests = {
  async 'an isolation segment: made, given to an org, chosen for a space, taken back'(kit) {
    const page = await kit.admin('/platform/segments');
    await page.getByRole('button', { name: 'Create a segment…' }).click();
    await dialog(page).getByLabel('Name, which is a tag of cells').fill('ssd');
    await dialog(page).getByText('cf create-isolation-segment ssd').waitFor();
    await submit(page, 'Create');
    await row(page, 'ssd').getByText('none').waitFor();
    await page.goto(`${kit.console}/orgs/${kit.config.org}/segments`);
    await page.getByRole('button', { name: 'ssd…' }).click();
    await dialog(page).getByText('cf enable-org-isolation cupola ssd').waitFor();
    await submit(page, 'Entitle');
    await page.getByRole('button', { name: 'Make the default: ssd' }).click();
    await submit(page, 'Set');
    await row(page, 'ssd').getByText('yes', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Reset the default ssd' }).click();
    await dialog(page).getByText('cf reset-org-default-isolation-segment cupola').waitFor();
    await submit(page, 'Set');
    await page.goto(`${kit.console}/spaces/${kit.config.space}/placement`);
    await page.getByRole('button', { name: 'Set the isolation segment…' }).click();
    await dialog(page).getByLabel('Segment', { exact: true }).selectOption({ label: 'ssd' });
    await submit(page, 'Set');
    await page.locator('.facts').getByText('ssd', { exact: true }).waitFor();
    await page.goto(`${kit.console}/orgs/${kit.config.org}/segments`);
    await page.getByRole('button', { name: 'Revoke ssd' }).click();
    await dialog(page).getByRole('button', { name: 'Revoke', exact: true }).click();
    await dialog(page)
      .getByRole('alert')
      .getByText(/[Aa]ssign|space/)
      .waitFor(); // a space has it: the server's words
    await page.keyboard.press('Escape');
    await kit.api(page, 'PATCH', `/v3/spaces/${kit.config.space}/relationships/isolation_segment`, { data: null });
    await page.getByRole('button', { name: 'Revoke ssd' }).click();
    await submit(page, 'Revoke');
    await page.getByText('The org is entitled to no isolation segment').waitFor();
    await page.goto(kit.console + '/platform/segments');
    await page.getByRole('button', { name: 'Delete ssd' }).click();
    await submit(page, 'Delete');
    await row(page, 'ssd').waitFor({ state: 'detached' });
  },
  async 'a shared and a private domain'(kit) {
    const page = await kit.admin('/platform/domains');
    await page.getByRole('button', { name: 'Create a domain…' }).click();
    await dialog(page).getByLabel('Name', { exact: true }).fill('not a domain');
    await dialog(page).getByRole('button', { name: 'Create', exact: true }).click();
    await dialog(page).getByRole('alert').waitFor();
    await dialog(page).getByLabel('Name', { exact: true }).fill('shared.example');
    await submit(page, 'Create');
    await row(page, 'shared.example').getByText('HTTP', { exact: true }).waitFor();
    await page.goto(`${kit.console}/orgs/${kit.config.org}/domains`);
    await page.getByRole('button', { name: 'Create a private domain…' }).click();
    await dialog(page).getByLabel('Name', { exact: true }).fill('own.example');
    await dialog(page).getByText('cf create-private-domain cupola own.example').waitFor();
    await submit(page, 'Create');
    await row(page, 'own.example').getByText('private').waitFor();
    await page.getByRole('button', { name: 'Delete own.example' }).click();
    await submit(page, 'Delete');
    await row(page, 'own.example').waitFor({ state: 'detached' });
    check((await page.getByRole('button', { name: 'Delete shared.example' }).count()) === 0, 'an org may delete a shared domain');
    await page.goto(kit.console + '/platform/domains');
    await page.getByRole('button', { name: 'Delete shared.example' }).click();
    await submit(page, 'Delete');
    await row(page, 'shared.example').waitFor({ state: 'detached' });
  },
  async 'a security group: changed, bound to a space, unbound, deleted'(kit) {
    const page = await kit.admin('/platform/security-groups');
    await kit.api(page, 'POST', '/v3/security_groups', { name: 'narrow', rules: [] });
    await page.getByRole('button', { name: 'Change narrow' }).click();
    await dialog(page).getByLabel('Rules, as JSON').fill('[{"protocol": "tcp", "destination": "192.0.2.9", "ports": "none"}]');
    await dialog(page).getByRole('button', { name: 'Save', exact: true }).click();
    await dialog(page).getByRole('alert').getByText(/ports/).waitFor();
    await dialog(page).getByLabel('Rules, as JSON').fill('[{"protocol": "tcp", "destination": "192.0.2.9", "ports": "443"}]');
    await submit(page, 'Save');
    await row(page, 'narrow').getByText('tcp 192.0.2.9 ports 443').waitFor();
    await page.goto(`${kit.console}/spaces/${kit.config.space}/security-groups`);
    await page.getByRole('button', { name: 'Bind a group…' }).click();
    await dialog(page).getByLabel('Group', { exact: true }).selectOption({ label: 'narrow' });
    await dialog(page).getByText('cf bind-security-group narrow cupola --space dev --lifecycle running').waitFor();
    await submit(page, 'Bind');
    await row(page, 'narrow').getByText('here').waitFor();
    await page.getByRole('button', { name: 'Unbind narrow from running apps' }).click();
    await dialog(page).getByText('cf unbind-security-group narrow cupola dev --lifecycle running').waitFor();
    await submit(page, 'Unbind');
    await row(page, 'narrow').waitFor({ state: 'detached' });
    await page.goto(kit.console + '/platform/security-groups');
    await page.getByRole('button', { name: 'Delete narrow' }).click();
    await submit(page, 'Delete');
    await row(page, 'narrow').waitFor({ state: 'detached' });
  },
  async 'a quota of a space: made, changed, set, unset'(kit) {
    const page = await kit.admin('/platform');
    await page.getByRole('button', { name: 'Create a space quota…' }).click();
    await dialog(page).getByLabel('Name', { exact: true }).fill('snug');
    await dialog(page).getByLabel('Org').selectOption({ label: 'cupola' });
    await dialog(page).getByLabel('App instances').fill('3');
    await submit(page, 'Create');
    await page.getByRole('button', { name: 'Change snug' }).click();
    await dialog(page).getByLabel('App instances').fill('4');
    await submit(page, 'Save');
    await row(page, 'snug').getByText('4', { exact: true }).waitFor();
    await page.goto(`${kit.console}/spaces/${kit.config.space}/quota`);
    await page.getByText('The space has no quota of its own').waitFor();
    await page.getByRole('button', { name: 'Set the quota…' }).click();
    await dialog(page).getByLabel('Quota', { exact: true }).selectOption({ label: 'snug' });
    await submit(page, 'Set');
    await page.getByRole('heading', { name: 'Quota snug' }).waitFor();
    await page.getByRole('button', { name: 'Set the quota…' }).click();
    await dialog(page).getByLabel('Quota', { exact: true }).selectOption({ label: 'none' });
    await dialog(page).getByText('cf unset-space-quota dev snug').waitFor();
    await submit(page, 'Set');
    await page.getByText('The space has no quota of its own').waitFor();
    await page.goto(kit.console + '/platform');
    await page.getByRole('button', { name: 'Delete snug' }).click();
    await submit(page, 'Delete');
    await row(page, 'snug').waitFor({ state: 'detached' });
  },
  async 'an org and a space are renamed; an org is suspended'(kit) {
    const page = await kit.admin('/orgs');
    const { body: org } = await kit.api(page, 'POST', '/v3/organizations', { name: 'before' });
    await kit.api(page, 'POST', '/v3/spaces', { name: 'early', relationships: { organization: { data: { guid: org.guid } } } });
    await page.goto(kit.console + '/orgs/' + org.guid);
    await page.getByRole('button', { name: 'Rename…' }).click();
    await dialog(page).getByLabel('Name', { exact: true }).fill('cupola');
    await dialog(page).getByRole('button', { name: 'Rename', exact: true }).click();
    await dialog(page)
      .getByRole('alert')
      .getByText(/taken|exists|unique/i)
      .waitFor();
    await dialog(page).getByLabel('Name', { exact: true }).fill('after');
    await submit(page, 'Rename');
    await page.getByRole('heading', { name: 'after', level: 1 }).waitFor();
    await page.getByRole('button', { name: 'Suspend…' }).click();
    await submit(page, 'Suspend');
    await page.locator('.head .state', { hasText: 'suspended' }).waitFor();
    await page.getByRole('button', { name: 'Activate…' }).click();
    await submit(page, 'Activate');
    await page.locator('.head .state').waitFor({ state: 'detached' });
    await page.getByRole('link', { name: 'early', exact: true }).click();
    await page.getByRole('button', { name: 'Rename…' }).click();
    await dialog(page).getByLabel('Name', { exact: true }).fill('late');
    await submit(page, 'Rename');
    await page.getByRole('heading', { name: 'late', level: 1 }).waitFor();
    await page.getByRole('button', { name: 'Delete late' }).click();
    await submit(page, 'Delete');
    await page.waitForURL('**/orgs/' + org.guid);
    await kit.api(page, 'DELETE', '/v3/organizations/' + org.guid);
  },
};
