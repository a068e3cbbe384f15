// Every screen at three widths, light and dark: axe finds nothing, and nothing scrolls sideways.
const screens = kit => ({
  apps: '/apps',
  'new app': '/new',
  overview: kit.app('noisy'),
  crashed: kit.app('crasher'),
  logs: kit.app('noisy', 'logs'),
  deployments: kit.app('noisy', 'deployments'),
  metrics: kit.app('noisy', 'metrics'),
  routes: kit.app('noisy', 'routes'),
  environment: kit.app('noisy', 'environment'),
  tasks: kit.app('noisy', 'tasks'),
  jobs: kit.app('noisy', 'jobs'),
  autoscaling: kit.app('noisy', 'autoscaling'),
  files: kit.app('noisy', 'files'),
  terminal: kit.app('noisy', 'terminal'),
  events: kit.app('noisy', 'events'),
});
const ready = {
  logs: '.log .l',
  deployments: '.timeline li',
  metrics: '.chart canvas',
  routes: 'tbody tr',
  environment: '.note',
  tasks: '.empty, tbody tr',
  jobs: '.empty, tbody tr',
  autoscaling: '.empty, .facts',
  files: '.note',
  terminal: '.xterm-rows',
  events: 'tbody tr',
  overview: 'tbody tr',
  crashed: 'tbody tr',
  apps: 'tbody tr',
  'new app': '.drop-zone',
};

const names = [
  'apps',
  'new app',
  'overview',
  'crashed',
  'logs',
  'deployments',
  'metrics',
  'routes',
  'environment',
  'tasks',
  'jobs',
  'autoscaling',
  'files',
  'terminal',
  'events',
];

export const tests = {
  ...Object.fromEntries(
    names.map(name => [
      name,
      async kit => {
        const page = await kit.admin(screens(kit)[name]);
        await page.locator(ready[name]).first().waitFor();
        await kit.everywhere(page, name);
      },
    ]),
  ),
  async dialogs(kit) {
    const page = await kit.admin(kit.app('noisy'));
    for (const name of ['Restart…', 'Stop…', 'Restage…', 'Scale web', 'Keyboard help', 'On the command line: noisy']) {
      await page.getByRole('button', { name, exact: true }).first().click();
      await page.getByRole('dialog').waitFor();
      await kit.accessible(page, 'the dialog ' + name);
      await page.keyboard.press('Escape');
      await page.getByRole('dialog').waitFor({ state: 'detached' });
    }
    await page.keyboard.press('Control+k');
    await page.getByRole('option').first().waitFor();
    await kit.accessible(page, 'the palette');
  },
};
