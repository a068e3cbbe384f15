// An app: scale, environment, tasks, terminal, routes, metrics, events.
import { check, until } from './kit.mjs';

export const tests = {
  async 'scale: one more, and what a change of memory restarts'(kit) {
    const page = await kit.admin(kit.app('quiet'));
    await page.getByRole('button', { name: 'One more instance of web', exact: true }).click();
    await page.getByText('2 of 2 instances').waitFor();
    await page.getByRole('button', { name: 'Scale web', exact: true }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText('Nothing changes.').waitFor();
    await dialog.getByLabel('Memory (MB)').fill('80');
    await dialog.getByText('All 2 instances restart').waitFor();
    await dialog.getByText(/Quota of the org cupola: \d+/).waitFor();
    await dialog.getByLabel('Memory (MB)').fill('64');
    await dialog.getByLabel('Instances', { exact: true }).fill('1');
    await dialog.getByRole('button', { name: 'Scale', exact: true }).click();
    await page.getByText('1 of 1 instance').waitFor();
  },
  async 'environment: masked, revealed as an audit event, and changed after a look at the difference'(kit) {
    const page = await kit.admin(kit.app('noisy', 'environment'));
    await page.getByRole('rowheader', { name: 'COLOUR' }).waitFor();
    check(!(await page.content()).includes('blue'), 'the value is in the page before it is revealed');
    await page.getByRole('button', { name: 'Reveal values', exact: true }).click();
    await page.getByRole('cell', { name: 'blue' }).waitFor();
    const events = await kit.api(page, 'GET', `/v3/audit_events?types=audit.app.environment.show&target_guids=${kit.config.apps.noisy}`);
    check(events.body.resources.length > 0, 'the reveal is no audit event');
    await page.getByRole('button', { name: 'Change COLOUR', exact: true }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Value').fill('green');
    await dialog.locator('.diff .del', { hasText: 'blue' }).waitFor();
    await dialog.locator('.diff .add', { hasText: 'green' }).waitFor();
    await dialog.getByRole('button', { name: 'Apply', exact: true }).click();
    await page.getByText('Restart needed.').waitFor();
    await page.getByRole('button', { name: 'Restart (rolling)', exact: true }).click();
    await until(async () => (await kit.request('noisy', 'GET', '/')).text.includes('green'), 'the new value in the app');
    await page.getByText('Restart needed.').waitFor({ state: 'detached' });
  },
  async 'tasks: run, log, again, cancel'(kit) {
    const page = await kit.admin(kit.app('quiet', 'tasks'));
    const run = async command => {
      await page.getByRole('button', { name: 'Run a task…', exact: true }).first().click();
      await page.getByRole('dialog').getByRole('textbox', { name: 'Command' }).fill(command);
      await page.getByRole('dialog').getByRole('button', { name: 'Run', exact: true }).click();
    };
    await run('./noisy 0');
    await page.getByText('task ends').waitFor();
    await page.getByRole('row').filter({ hasText: 'succeeded' }).first().waitFor();
    await run('./noisy 600');
    await page.getByText('task begins with [600]').waitFor(); // its log, while it runs
    await page.getByRole('row').filter({ hasText: 'running' }).first().waitFor();
    await page.getByRole('button', { name: 'Cancel task 2', exact: true }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel the task', exact: true }).click();
    await page.getByRole('row').filter({ hasText: 'failed' }).first().waitFor();
    await page
      .getByRole('button', { name: /Run again/ })
      .last()
      .click();
    await page.getByRole('rowheader').nth(2).waitFor();
  },
  async 'jobs: made with a schedule, run, its log, paused, deleted'(kit) {
    const page = await kit.admin(kit.app('quiet', 'jobs'));
    const button = name => page.getByRole('button', { name, exact: true });
    const dialog = page.getByRole('dialog');
    const field = name => dialog.getByRole('textbox', { name, exact: true });
    await button('New job…').click();
    await field('Name').fill('nightly');
    await field('Command').fill('./noisy 0');
    await field('Schedule').fill('30 25 * * *');
    await dialog.getByRole('button', { name: 'Create', exact: true }).click();
    await dialog.getByRole('alert').waitFor(); // there is no hour 25
    await dialog.getByText('The job is made; its schedule was refused').waitFor();
    await field('Schedule').fill('30 2 1 1 *');
    await field('Time zone').fill('Europe/Berlin');
    await dialog.getByText('cupola jobs create').waitFor();
    await dialog.getByRole('button', { name: 'Create', exact: true }).click();
    const row = page.getByRole('row').filter({ has: page.getByRole('rowheader', { name: 'nightly' }) });
    await row.getByText('CRON_TZ=Europe/Berlin 30 2 1 1 *').waitFor();
    await row.getByText(/next \d{4}-(12-31|01-01)/).waitFor();
    await button('History of nightly').click();
    await page.getByText('It has not run yet.').waitFor();
    await button('Run now: nightly').click();
    await row.getByText('succeeded').waitFor();
    await page
      .getByRole('button', { name: /^Log of / })
      .first()
      .click();
    await page.getByText('task ends').waitFor();
    await kit.everywhere(page, 'jobs with a run');
    await button('Pause nightly').click();
    await row.getByText('paused').waitFor();
    await button('Resume nightly').click();
    await row.getByText(/next \d{4}/).waitFor();
    await button('Delete CRON_TZ=Europe/Berlin 30 2 1 1 * of nightly…').click();
    await dialog.getByRole('button', { name: 'Delete the schedule', exact: true }).click();
    await row.getByText('when asked for').waitFor();
    await button('Delete nightly…').click();
    await dialog.getByRole('button', { name: 'Delete the job', exact: true }).click();
    await page.getByText('This app has no jobs.').waitFor();
  },
  async 'jobs: a call of a URL, run, its history, deleted'(kit) {
    const page = await kit.admin(kit.app('quiet', 'jobs'));
    const button = name => page.getByRole('button', { name, exact: true });
    const dialog = page.getByRole('dialog');
    await button('New job…').click();
    await dialog.getByRole('textbox', { name: 'Name', exact: true }).fill('ping');
    await dialog.getByRole('combobox', { name: 'What it does' }).selectOption('Request a URL');
    await dialog.getByRole('textbox', { name: 'URL', exact: true }).fill('http://169.254.169.254/latest');
    await dialog.getByText(/cupola jobs create \S+ ping --url/).waitFor();
    await kit.everywhere(page, 'a new call');
    await dialog.getByRole('button', { name: 'Create', exact: true }).click();
    const row = page.getByRole('row').filter({ has: page.getByRole('rowheader', { name: 'ping' }) });
    await row.getByText('POST http://169.254.169.254/latest').waitFor();
    await button('Run now: ping').click();
    await row.getByText('failed').waitFor();
    await button('History of ping').click();
    await page.getByText('may not connect to it by their security groups').first().waitFor();
    await button('Delete ping…').click();
    await dialog.getByRole('button', { name: 'Delete the job', exact: true }).click();
    await page.getByText('This app has no jobs.').waitFor();
  },
  async 'autoscaling: a policy, what it did, and its end'(kit) {
    const page = await kit.admin(kit.app('quiet', 'autoscaling'));
    const dialog = page.getByRole('dialog');
    const field = name => dialog.getByRole('textbox', { name, exact: true });
    await page.getByRole('button', { name: 'Set a policy…', exact: true }).click();
    const set = async policy => {
      await field('Policy').fill(typeof policy === 'string' ? policy : JSON.stringify(policy));
      if (typeof policy !== 'string') await dialog.getByRole('button', { name: 'Set the policy', exact: true }).click();
    };
    await set('{"instance_min_count": 2');
    check(await dialog.getByRole('button', { name: 'Set the policy', exact: true }).isDisabled(), 'half of a policy can be set');
    await set({ instance_min_count: 2, instance_max_count: 1 });
    await dialog.getByText('(root): Must validate at least one schema').waitFor();
    const always = { start_time: '00:00', end_time: '23:59', days_of_week: [1, 2, 3, 4, 5, 6, 7] };
    const recurring_schedule = [{ ...always, instance_min_count: 2, instance_max_count: 3, initial_min_instance_count: 2 }];
    const rule = { metric_type: 'throughput', operator: '>=', threshold: 5000, adjustment: '+1' };
    await set({ instance_min_count: 1, instance_max_count: 3, scaling_rules: [rule], schedules: { timezone: 'UTC', recurring_schedule } });
    await page.getByRole('rowheader', { name: 'throughput >= 5000' }).waitFor();
    await page.getByRole('cell', { name: '1 → 2' }).waitFor({ timeout: 60000 }); // the schedule's time has begun
    await kit.everywhere(page, 'autoscaling with a policy');
    await page.getByRole('button', { name: 'Delete the policy…', exact: true }).click();
    await dialog.getByRole('button', { name: 'Delete the policy', exact: true }).click();
    await page.getByText('This app has no scaling policy.').waitFor();
    await kit.api(page, 'POST', `/v3/apps/${kit.config.apps.quiet}/processes/web/actions/scale`, { instances: 1 });
  },
  async 'terminal: a command'(kit) {
    const page = await kit.admin(kit.app('quiet', 'terminal'));
    await page.locator('.xterm-rows').waitFor();
    await page.locator('.xterm-rows', { hasText: '$' }).waitFor();
    await page.keyboard.type('echo it-$((20+3))\n');
    await page.locator('.xterm-rows', { hasText: 'it-23' }).waitFor();
    const size = await page.evaluate(() =>
      Math.max(
        ...performance
          .getEntriesByType('resource')
          .filter(e => e.name.endsWith('.js'))
          .map(e => e.encodedBodySize),
      ),
    );
    check(size > 50000 && size <= 100000, 'the terminal has ' + size + ' bytes');
  },
  async 'terminal: it follows the size of the window, and says how the shell ended'(kit) {
    const page = await kit.admin(kit.app('quiet', 'terminal'));
    const rows = page.locator('.xterm-rows');
    await rows.filter({ hasText: '$' }).waitFor();
    const columns = async n => {
      await page.keyboard.type(`echo mark-${n}; app/noisy size\n`);
      const found = () => rows.textContent().then(t => new RegExp(`mark-${n}\\s*columns=(\\d+)`).exec(t)?.[1]);
      return Number(await until(found, 'the size'));
    };
    const wide = await columns(1);
    await page.setViewportSize({ width: 700, height: 700 });
    const narrow = await until(async () => {
      const n = await columns(2 + Math.floor(Math.random() * 1e6));
      return n < wide && n;
    }, 'a smaller size');
    check(narrow > 40 && wide > 100, `it has ${wide} columns, then ${narrow}`);
    await page.keyboard.type('exit 7\n');
    await page.getByText('The shell ended with status 7.').waitFor();
    await page.getByRole('button', { name: 'Connect again', exact: true }).click();
    await rows.filter({ hasText: 'exit 7' }).waitFor({ state: 'detached' });
    await rows.filter({ hasText: '$' }).waitFor();
    await kit.api(page, 'POST', `/v3/apps/${kit.config.apps.quiet}/actions/restart`);
    await page.getByRole('alert').or(page.getByText('The shell ended')).first().waitFor();
    await page.getByRole('button', { name: 'Connect again', exact: true }).waitFor();
  },
  async 'routes: the last requests, map and unmap'(kit) {
    const page = await kit.admin(kit.app('quiet', 'routes'));
    await kit.request('quiet', 'GET', '/some/where?x=1');
    await page.getByText('GET /some/where?x=1').first().waitFor();
    await page.getByRole('button', { name: 'Map a route…', exact: true }).click();
    await page.getByRole('dialog').getByRole('textbox', { name: 'Host' }).fill('second');
    await page.getByRole('dialog').getByRole('button', { name: 'Map', exact: true }).click();
    await page.getByRole('link', { name: 'second.localhost' }).waitFor();
    await until(async () => (await kit.request('second', 'GET', '/')).status === 200, 'the route');
    await page
      .getByRole('row', { name: /second\.localhost/ })
      .getByText('web:8080 http1')
      .waitFor();
    await page.getByRole('button', { name: 'Unmap second.localhost', exact: true }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Unmap', exact: true }).click();
    await page.getByRole('link', { name: 'second.localhost' }).waitFor({ state: 'detached' });
  },
  async 'routes: a destination with a protocol and a port of its own, below a path'(kit) {
    const page = await kit.admin(kit.app('quiet', 'routes'));
    await page.getByRole('button', { name: 'Map a route…', exact: true }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Host', { exact: true }).fill('spoken');
    await dialog.getByLabel('Path', { exact: true }).fill('/v2');
    await dialog.getByLabel('Protocol of the app').selectOption('http2');
    await dialog.getByLabel('Port of the app').fill('9090');
    await dialog.getByText('cf map-route quiet localhost --hostname spoken --path /v2 --app-protocol http2 --app-port 9090').waitFor();
    await dialog.getByRole('button', { name: 'Map', exact: true }).click();
    const row = page.getByRole('row', { name: /spoken\.localhost\/v2/ });
    await row.getByText('web:9090 http2').waitFor();
    await page.getByRole('button', { name: 'Map a route…', exact: true }).click();
    await dialog.getByLabel('Host', { exact: true }).fill('spoken');
    await dialog.getByLabel('Path', { exact: true }).fill('no slash');
    await dialog.getByRole('button', { name: 'Map', exact: true }).click();
    await dialog.getByRole('alert').getByText(/path/i).waitFor(); // the server's words, next to the form
    await page.keyboard.press('Escape');
    await row.getByRole('button', { name: 'Unmap spoken.localhost/v2', exact: true }).click();
    await dialog.getByRole('button', { name: 'Unmap', exact: true }).click();
    await row.waitFor({ state: 'detached' });
    const { body } = await kit.api(page, 'GET', '/v3/routes?hosts=spoken');
    for (const r of body.resources) await kit.api(page, 'DELETE', '/v3/routes/' + r.guid);
  },
  async 'metrics: windows of time'(kit) {
    await kit.request('quiet', 'GET', '/');
    const page = await kit.admin(kit.app('quiet', 'metrics'));
    const asked = () =>
      page.waitForResponse(r => r.url().includes('/api/v1/query_range') && r.request().postData().includes('name__') === false);
    await page.locator('.chart canvas').first().waitFor();
    for (const [name, step] of Object.entries({ '1h': '30s', '6h': '120s', '24h': '600s', '7d': '3600s', '30d': '10800s', '15m': '15s' })) {
      const [answer] = await Promise.all([asked(), page.getByRole('button', { name, exact: true }).click()]);
      const params = new URLSearchParams(answer.request().postData());
      check(answer.ok() && params.get('step') === step, `${name} asks with ${params}`);
      check((await page.getByRole('button', { name, exact: true }).getAttribute('aria-pressed')) === 'true', name + ' is not chosen');
      await page.locator('.chart canvas').first().waitFor();
    }
    await page.getByRole('button', { name: '1h', exact: true }).click();
    await page.reload();
    check((await page.getByRole('button', { name: '1h', exact: true }).getAttribute('aria-pressed')) === 'true', 'the address forgot 1h');
  },
  async 'metrics: requests and what instances use'(kit) {
    await kit.request('quiet', 'GET', '/');
    const page = await kit.admin(kit.app('quiet', 'metrics'));
    await page.getByText(/\d+ requests?: p50 [\d.]+ ms/).waitFor();
    await page.locator('.chart canvas').nth(4).waitFor();
  },
  async 'files: the droplet, unpacked in the browser'(kit) {
    const page = await kit.admin(kit.app('noisy', 'files'));
    await page.getByRole('button', { name: 'List its files', exact: true }).click();
    await page.getByRole('button', { name: 'app/', exact: true }).click();
    await page.getByRole('row', { name: /noisy .*rwxr-xr-x/ }).waitFor();
    await page.getByRole('navigation', { name: 'Folder' }).getByRole('button', { name: 'droplet', exact: true }).click();
    await page.getByRole('button', { name: 'staging_info.yml', exact: true }).click();
    await page.getByRole('region', { name: 'staging_info.yml' }).getByText('start_command').waitFor();
  },
  async 'events: who did what'(kit) {
    const page = await kit.admin(kit.app('noisy', 'events'));
    await page.getByRole('rowheader', { name: 'app.environment.show' }).first().waitFor();
  },
};
