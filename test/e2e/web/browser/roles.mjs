// Role × button: who may not, does not see it, and gets 403 or 404 if they call all the same.
import { check } from './kit.mjs';

// What each role sees of an app: the tabs beyond those of all, and the buttons of some tabs.
const roles = {
  space_developer: {
    tabs: ['Environment', 'Terminal', 'Files'],
    sees: {
      '': ['Restart…', 'Stop…', 'Restage…', 'Delete quiet', 'Scale web'],
      tasks: ['Run a task…'],
      jobs: ['New job…'],
      autoscaling: ['Set a policy…'],
      routes: ['Map a route…'],
      environment: ['Set a variable…'],
    },
  },
  space_supporter: {
    tabs: ['Environment'],
    sees: {
      '': ['Restart…', 'Stop…', 'Restage…', 'Scale web'],
      routes: ['Map a route…'],
      environment: ['Set a variable…', 'Reveal values'],
    },
  },
  space_manager: { tabs: ['Files'], sees: {} },
  space_auditor: { tabs: ['Files'], sees: {} },
};
const buttons = {
  '': ['Restart…', 'Stop…', 'Restage…', 'Delete quiet', 'Scale web'],
  tasks: ['Run a task…'],
  jobs: ['New job…'],
  autoscaling: ['Set a policy…'],
  routes: ['Map a route…'],
  environment: ['Set a variable…', 'Reveal values'],
};

// The calls behind the buttons, and who may make them (CC: the roles × routes table).
const calls = kit => [
  ['POST', `/v3/apps/${kit.config.apps.quiet}/actions/stop`, undefined, ['space_developer', 'space_supporter']],
  ['DELETE', `/v3/apps/${kit.config.apps.quiet}`, undefined, ['space_developer']],
  ['POST', `/v3/apps/${kit.config.apps.quiet}/tasks`, { command: 'true' }, ['space_developer']],
  ['GET', `/v3/apps/${kit.config.apps.quiet}/env`, undefined, ['space_developer', 'space_supporter']],
  ['PATCH', `/v3/apps/${kit.config.apps.quiet}/environment_variables`, { var: {} }, ['space_developer', 'space_supporter']],
];

export const tests = Object.fromEntries(
  Object.entries(roles).map(([role, want]) => [
    role,
    async kit => {
      for (const [tab, all] of Object.entries(want.blind ? {} : buttons)) {
        if (tab === 'environment' && !want.tabs.includes('Environment')) continue;
        const page = await kit.as(role, kit.app('quiet', tab));
        await page.locator('.tabs a').first().waitFor();
        if (tab === '') {
          const tabs = await page.locator('.tabs a').allTextContents();
          for (const t of ['Environment', 'Terminal', 'Files'])
            check(tabs.includes(t) === want.tabs.includes(t), `${role} sees the tabs ${tabs}`);
        }
        await page.locator('main h2, main .facts').first().waitFor();
        for (const name of all) {
          const button = page.getByRole('button', { name, exact: true }).first();
          const expected = (want.sees[tab] ?? []).includes(name) || (role === 'space_developer' && name === 'Reveal values');
          if (expected) await button.waitFor();
          else check((await button.count()) === 0, `${role} sees the button ${name}`);
        }
        await page.close();
      }
      if (want.blind) {
        // the app is not there for them
        const page = await kit.as(role, kit.app('quiet'));
        await page.getByText('App not found').waitFor();
        for (const name of buttons[''])
          check((await page.getByRole('button', { name, exact: true }).count()) === 0, `${role} sees the button ${name}`);
      }
      const page = await kit.as(role, '/apps');
      check((await page.getByRole('link', { name: 'New app' }).count()) === (role === 'space_developer' ? 1 : 0), `New app, for ${role}`);
      for (const [method, path, json, allowed] of calls(kit)) {
        if (allowed.includes(role) || (want.reads && method === 'GET')) continue; // those that may are tested as admin
        const { status } = await kit.api(page, method, path, json);
        check(status === 403 || status === 404, `${method} ${path} as ${role} is ${status}`);
      }
    },
  ]),
);

tests['a lost role takes its buttons along'] = async kit => {
  const page = await kit.as('space_supporter', kit.app('quiet'));
  await page.getByRole('button', { name: 'Restart…', exact: true }).first().waitFor();
  const admin = await kit.admin('/apps');
  const { body } = await kit.api(admin, 'GET', `/v3/roles?types=space_supporter&space_guids=${kit.config.space}`);
  const { status } = await kit.api(admin, 'DELETE', '/v3/roles/' + body.resources[0].guid);
  check(status === 202, 'the role is still there: ' + status);
  await page.getByRole('button', { name: 'Restart…', exact: true }).first().waitFor({ state: 'detached' });
};
