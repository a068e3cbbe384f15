// Every screen of the platform at three widths, light and dark: axe finds nothing, and nothing scrolls sideways.

const screens = kit => ({
  services: ['/services', '.empty, tbody tr'],
  marketplace: ['/services/marketplace', '.offering tbody tr'],
  brokers: ['/services/brokers', 'tbody tr'],
  orgs: ['/orgs', 'tbody tr'],
  org: ['/orgs/' + kit.config.org, 'tbody tr'],
  'org members': [`/orgs/${kit.config.org}/members`, '.matrix tbody tr'],
  'org quota': [`/orgs/${kit.config.org}/quota`, '.meter'],
  'org domains': [`/orgs/${kit.config.org}/domains`, 'tbody tr'],
  space: ['/spaces/' + kit.config.space, '.matrix tbody tr'],
  'space groups': [`/spaces/${kit.config.space}/security-groups`, 'tbody tr'],
  'space placement': [`/spaces/${kit.config.space}/placement`, '.facts'],
  audit: ['/audit', 'tbody tr'],
  'events of an actor': ['/audit?actor=admin', 'p.note'],
  machine: ['/machine', '.checks tbody tr, section .state'],
  stacks: ['/stacks', 'tbody tr'],
  cells: ['/cells', '.cellcard'],
  deployments: ['/bosh', 'tbody tr'],
  deployment: ['/bosh/deployments/clock', 'tbody tr'],
  task: ['/bosh/tasks/1', 'tbody tr'],
  quotas: ['/platform', 'tbody tr'],
  groups: ['/platform/security-groups', 'tbody tr'],
  flags: ['/platform/flags', 'tbody tr'],
  buildpacks: ['/platform/buildpacks', 'tbody tr'],
  domains: ['/platform/domains', 'tbody tr'],
  users: ['/platform/users', 'tbody tr'],
});

const dialogs = kit => [
  ['/services/marketplace', 'Create an instance of db, plan small'],
  ['/services/marketplace', /^Visible to/],
  ['/services/brokers', 'Register a broker…'],
  ['/services', 'User-provided…'],
  ['/orgs', 'Create an org…'],
  ['/spaces/' + kit.config.space, 'Add a member…'],
  ['/platform', 'Create a quota…'],
  ['/platform/buildpacks', /^On the command line: the buildpack/],
  ['/platform/security-groups', 'Create a group…'],
  ['/platform/users', 'Create a user…'],
  ['/stacks', 'Pull an image…'],
  ['/stacks', 'Remove unused…'],
  ['/cells', 'Create a pool…'],
  ['/bosh', 'Deploy…'],
];

const names = [
  'services',
  'marketplace',
  'brokers',
  'orgs',
  'org',
  'org members',
  'org quota',
  'org domains',
  'space',
  'space groups',
  'space placement',
  'audit',
  'events of an actor',
  'machine',
  'stacks',
  'cells',
  'deployments',
  'deployment',
  'task',
  'quotas',
  'groups',
  'flags',
  'buildpacks',
  'domains',
  'users',
];

export const tests = {
  ...Object.fromEntries(
    names.map(name => [
      name,
      async kit => {
        const [where, ready] = screens(kit)[name];
        const page = await kit.admin(where);
        await page.locator(ready).first().waitFor();
        await kit.everywhere(page, name);
      },
    ]),
  ),
  async 'an instance of a service'(kit) {
    const page = await kit.admin('/services');
    const { body } = await kit.api(page, 'POST', '/v3/service_instances', {
      type: 'user-provided',
      name: 'seen',
      credentials: { a: 'b' },
      relationships: { space: { data: { guid: kit.config.space } } },
    });
    await page.goto(`${kit.console}/services/instances/${body.guid}`);
    try {
      await page.getByRole('button', { name: 'Reveal the credentials' }).click();
      await page.locator('.pairs').waitFor();
      await kit.everywhere(page, 'instance');
    } finally {
      await kit.api(page, 'DELETE', '/v3/service_instances/' + body.guid);
    }
  },
  async dialogs(kit) {
    for (const [where, name] of dialogs(kit)) {
      const page = await kit.admin(where, [390, 844]);
      await page.getByRole('button', { name, exact: true }).first().click();
      await page.getByRole('dialog').waitFor();
      await page.waitForFunction(() => !document.querySelector('dialog .skeleton'));
      await kit.accessible(page, `the dialog ${name} of ${where}`);
      await kit.fits(page, `the dialog ${name}`);
      await page.keyboard.press('Escape');
      await page.getByRole('dialog').waitFor({ state: 'detached' });
      await page.close();
    }
  },
};
