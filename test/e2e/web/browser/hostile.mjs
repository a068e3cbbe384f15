// What apps and users can write about apps is text.
import { check, until } from './kit.mjs';
import { strings, pour, unharmed, verbatim, view } from './hostility.mjs';

const toOne = guid => ({ data: { guid } });
const texts = accepted => accepted.map(a => a.s);

// An app with a droplet in a space of cells that there are not: what starts there waits, and takes no time.
async function stuck(kit, page) {
  const post = async (path, json, method = 'POST') => {
    const { status, body } = await kit.api(page, method, path, json);
    check(status < 300, `${method} ${path} is ${status}: ${JSON.stringify(body)}`);
    return body;
  };
  const { data } = (await kit.api(page, 'GET', '/v3/spaces/' + kit.config.space)).body.relationships.organization;
  const segment = await post('/v3/isolation_segments', { name: 'nowhere' });
  await post(`/v3/isolation_segments/${segment.guid}/relationships/organizations`, { data: [data] });
  const space = await post('/v3/spaces', { name: 'nowhere', relationships: { organization: { data } } });
  await post(`/v3/spaces/${space.guid}/relationships/isolation_segment`, toOne(segment.guid), 'PATCH');
  const app = await post('/v3/apps', { name: 'stuck', relationships: { space: toOne(space.guid) } });
  const source = await kit.api(page, 'GET', `/v3/apps/${kit.config.apps.quiet}/droplets/current`);
  const droplet = await post('/v3/droplets?source_guid=' + source.body.guid, { relationships: { app: toOne(app.guid) } });
  await until(async () => (await kit.api(page, 'GET', '/v3/droplets/' + droplet.guid)).body.state === 'STAGED', 'the copied droplet');
  await post(`/v3/apps/${app.guid}/relationships/current_droplet`, toOne(droplet.guid), 'PATCH');
  await post(`/v3/apps/${app.guid}/actions/start`);
  return { app: app.guid, space: space.guid, org: data.guid };
}

let stuckApp;
const held = async kit => (stuckApp ??= await stuck(kit, await kit.admin('/apps')));

export const tests = {
  async 'names of apps'(kit) {
    const page = await kit.admin('/apps');
    const at = await held(kit);
    const made = await pour(kit, page, 'names of apps, with annotations', s => [
      'POST',
      '/v3/apps',
      { name: s, metadata: { annotations: { note: s } }, relationships: { space: toOne(at.space) } },
    ]);
    await pour(kit, page, 'labels of an app', s => ['PATCH', '/v3/apps/' + at.app, { metadata: { labels: { note: s } } }]);
    await view(kit, page, '/apps?q=nowhere', 'tbody th a', texts(made), 8); // as many as are in view
    for (const { body } of [made[0], made[4], made[15]]) await view(kit, page, '/apps/' + body.guid, '.tabs', [body.name]);
    await page.keyboard.press('Control+k');
    await page.getByRole('option').nth(39).waitFor();
    await verbatim(page, 'the palette', texts(made), 20);
  },
  async 'variables, sidecars and commands, and what two revisions differ in'(kit) {
    const page = await kit.admin('/apps'),
      at = await held(kit);
    const path = '/v3/apps/' + at.app;
    const keys = await pour(kit, page, 'names and values of variables', s => [
      'PATCH',
      path + '/environment_variables',
      { var: { [s]: s } },
    ]);
    const values = await pour(kit, page, 'values of variables', (s, n) => [
      'PATCH',
      path + '/environment_variables',
      { var: { ['H_' + n]: s } },
    ]);
    const cars = await pour(kit, page, 'names and commands of sidecars', s => [
      'POST',
      path + '/sidecars',
      { name: s, command: s, process_types: ['web'] },
    ]);
    const commands = await pour(kit, page, 'commands of a process', s => ['PATCH', `${path}/processes/web`, { command: s }]);
    await view(kit, page, `/apps/${at.app}/environment`, 'tbody tr', texts(keys));
    await page.getByRole('button', { name: 'Reveal values' }).click();
    await page.getByRole('button', { name: 'Hide values' }).waitFor();
    await unharmed(kit, page, 'the environment');
    await verbatim(page, 'the environment', texts(values));
    await kit.api(page, 'POST', path + '/actions/restart');
    await view(kit, page, `/apps/${at.app}/deployments`, 'tbody tr');
    for (const box of await page.getByRole('checkbox', { name: /^Compare revision [12]$/ }).all()) await box.check();
    await page.getByRole('button', { name: 'Compare…' }).click();
    await page.getByRole('checkbox', { name: 'Show the values of variables' }).check();
    await unharmed(kit, page, 'the comparison').catch(e => {
      if (!/<dialog/.test(e.message)) throw e;
    });
    await verbatim(page, 'the comparison', [...texts(keys), ...texts(values), ...texts(cars), commands.at(-1).s]);
  },
  async 'types of processes, tasks, routes and images'(kit) {
    const page = await kit.admin('/apps'),
      at = await held(kit);
    const types = await pour(kit, page, 'types of processes', s => [
      'POST',
      `/v3/spaces/${at.space}/actions/apply_manifest`,
      { applications: [{ name: 'stuck', processes: [{ type: s, instances: 0 }] }] },
    ]);
    const tasks = await pour(kit, page, 'names and commands of tasks', s => [
      'POST',
      `/v3/apps/${at.app}/tasks`,
      { name: s, command: s, memory_in_mb: 1 },
    ]);
    const domain = (await kit.api(page, 'GET', `/v3/organizations/${at.org}/domains/default`)).body.guid;
    const place = { domain: toOne(domain), space: toOne(at.space) };
    await pour(kit, page, 'hosts of routes', s => ['POST', '/v3/routes', { host: s, relationships: place }]);
    const routes = await pour(kit, page, 'paths of routes', s => [
      'POST',
      '/v3/routes',
      { host: 'h', path: '/' + s, relationships: place },
    ]);
    await pour(
      kit,
      page,
      'destinations',
      (_, n) => routes[n] && ['POST', `/v3/routes/${routes[n].body.guid}/destinations`, { destinations: [{ app: { guid: at.app } }] }],
    );
    await kit.api(page, 'PATCH', '/v3/feature_flags/diego_docker', { enabled: true });
    const pictured = await kit.api(page, 'POST', '/v3/apps', {
      name: 'pictured',
      lifecycle: { type: 'docker', data: {} },
      relationships: { space: toOne(at.space) },
    });
    const images = await pour(kit, page, 'images', s => [
      'POST',
      '/v3/packages',
      { type: 'docker', data: { image: s }, relationships: { app: toOne(pictured.body.guid) } },
    ]);
    await view(kit, page, '/apps/' + at.app, 'main h2', texts(types));
    await view(kit, page, `/apps/${at.app}/tasks`, 'tbody tr', texts(tasks), Math.min(100, tasks.length)); // the newest
    await view(kit, page, `/apps/${at.app}/routes`, 'tbody tr', texts(routes));
    await view(kit, page, `/apps/${pictured.body.guid}/deployments`, '.timeline li, .empty', texts(images), Math.min(50, images.length));
    await view(kit, page, `/apps/${at.app}/events`, 'tbody tr');
  },
  async 'names of files in a droplet'(kit) {
    const page = await kit.admin(kit.app('noisy', 'files'), [390, 844]);
    await page.getByRole('button', { name: 'List its files' }).click();
    await page.getByRole('button', { name: 'app/', exact: true }).click();
    await page.getByRole('button', { name: 'noisy', exact: true }).waitFor();
    await unharmed(kit, page, 'the files');
    await verbatim(page, 'the files', strings.map(fileName));
  },
  async 'lines of the log, and paths of requests'(kit) {
    const page = await kit.admin(kit.app('noisy', 'logs'));
    await page.locator('.log .l').first().waitFor();
    await kit.request('noisy', 'POST', '/say', strings.map(s => s + '\n').join('') + '\x1b]0;title\x07\x1b[999;1Hend of it\n');
    await page.locator('.log .l', { hasText: 'end of it' }).waitFor();
    await unharmed(kit, page, 'the log');
    check((await page.title()) !== 'title', 'a line set the title');
    await page.locator('input[type=search]').fill('alert');
    for (const s of strings.slice(180, 183)) await page.locator('.log .msg', { hasText: s }).first().waitFor();
    for (const s of strings.slice(0, 100))
      await kit.request('noisy', 'GET', '/' + encodeURIComponent(s) + '?' + s.replaceAll(/[^!-~]/g, ''));
    const routes = await kit.admin(kit.app('noisy', 'routes'), [390, 844]);
    await until(() => routes.getByText('alert(93)').count(), 'the last request');
    await unharmed(kit, routes, 'the requests');
  },
  async 'the log of a staging, and the last words of instances that crash'(kit) {
    const page = await kit.admin('/apps');
    await kit.ask('push hostile');
    const app = (await kit.api(page, 'GET', '/v3/apps?names=hostile')).body.resources[0];
    await page.goto(`${kit.console}/apps/${app.guid}/deployments`);
    await page.getByRole('button', { name: 'Staging log', exact: true }).click();
    const log = page.getByRole('log', { name: 'Staging log' });
    await log.locator('.l', { hasText: strings.at(-1) }).waitFor();
    await unharmed(kit, page, 'the staging log');
    const seen = await log.evaluate(async box => {
      let seen = '';
      for (let y = 0; y < box.scrollHeight; y += box.clientHeight / 2) {
        box.scrollTop = y;
        await new Promise(drawn => requestAnimationFrame(() => requestAnimationFrame(drawn)));
        seen += box.textContent;
      }
      return seen;
    });
    const missing = strings.filter(s => !seen.includes(s));
    check(!missing.length, `the staging log lacks ${missing.length} strings: ${JSON.stringify(missing[0])}`);
    await page.goto(`${kit.console}/apps/${app.guid}`);
    await until(async () => {
      const { body } = await kit.api(page, 'GET', `/v3/apps/${app.guid}/processes/web/stats`);
      return body.resources.every(i => i.details?.includes('Its last output'));
    }, 'the crash of each instance');
    await page.reload();
    await page.getByText('Its last output').nth(9).waitFor();
    await unharmed(kit, page, 'the instances');
    await verbatim(page, 'the instances', strings);
  },
};

// As the Go side names them: a name has no slash.
const fileName = s => s.replaceAll('/', '_');
