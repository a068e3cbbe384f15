// Each action of each screen shows the command that does the same: in its dialog, or listed beside its button.
// The browser clicks every button. What would change something is answered by the test, not by the daemon.
import { check, until } from './kit.mjs';

const programs = /^(sudo )?(cf|cupola|curl) /;

// Calls that only read, though they are POSTs.
const reads = /\/v1\/admin\/(stack\/list|stack\/inspect|token-keys\/list|broker\/status)$|\/api\/v1\/query/;

const appScreens = kit => {
  const { noisy, crasher } = kit.config.apps;
  return {
    'an app': [`/apps/${noisy}`, 'tbody tr'],
    'an app that crashes': [`/apps/${crasher}`, 'tbody tr'],
    logs: [`/apps/${noisy}/logs`, '.log .l'],
    deployments: [`/apps/${noisy}/deployments`, '.timeline li'],
    metrics: [`/apps/${noisy}/metrics`, 'main button[aria-pressed]'],
    routes: [`/apps/${noisy}/routes`, 'tbody tr'],
    environment: [`/apps/${noisy}/environment`, 'tbody tr'],
    tasks: [`/apps/${noisy}/tasks`, 'tbody tr'],
    files: [`/apps/${noisy}/files`, '.note'],
    terminal: [`/apps/${noisy}/terminal`, '.xterm-rows'],
    events: [`/apps/${noisy}/events`, 'tbody tr'],
    apps: ['/apps', 'tbody tr'],
    'new app': ['/new', '.drop-zone'],
  };
};

const platformScreens = kit => {
  const org = '/orgs/' + kit.config.org,
    space = '/spaces/' + kit.config.space;
  return {
    marketplace: ['/services/marketplace', '.offering tbody tr'],
    brokers: ['/services/brokers', 'tbody tr'],
    orgs: ['/orgs', 'tbody tr'],
    org: [org, 'tbody tr'],
    'org members': [org + '/members', '.matrix tbody tr'],
    'org quota': [org + '/quota', '.meter'],
    'org domains': [org + '/domains', 'section'],
    'org segments': [org + '/segments', 'section'],
    space: [space, '.matrix tbody tr'],
    'space quota': [space + '/quota', '.meter'],
    'space groups': [space + '/security-groups', 'tbody tr'],
    'space placement': [space + '/placement', '.facts'],
    audit: ['/audit', 'tbody tr'],
    machine: ['/machine', '.checks tbody tr, section .state'],
    stacks: ['/stacks', 'tbody tr'],
    cells: ['/cells', '.cellcard'],
    'BOSH deployments': ['/bosh', 'tbody tr'],
    'a BOSH deployment': ['/bosh/deployments/clock', 'tbody tr'],
    'a BOSH task': ['/bosh/tasks/1', 'tbody tr'],
    quotas: ['/platform', 'tbody tr'],
    groups: ['/platform/security-groups', 'tbody tr'],
    flags: ['/platform/flags', 'tbody tr'],
    buildpacks: ['/platform/buildpacks', 'tbody tr'],
    segments: ['/platform/segments', 'section'],
    domains: ['/platform/domains', 'tbody tr'],
    users: ['/platform/users', 'tbody tr'],
  };
};

// In the page: clicks all buttons but those that are done, until one leads to another address.
// It answers calls that would change something.
async function walkHere({ head, done, programs, reads }) {
  const program = new RegExp(programs),
    reading = new RegExp(reads);
  const asked = [],
    real = (window.realFetch ??= window.fetch);
  window.fetch = (url, options) => {
    const method = options?.method ?? 'GET';
    if (method === 'GET' || reading.test(url)) return real(url, options);
    asked.push(`${method} ${url}`);
    return Promise.resolve(Response.json({ errors: [{ title: 'test', detail: 'the test answers', code: 1 }] }, { status: 400 }));
  };
  const settled = async done => {
    do await new Promise(next => requestAnimationFrame(() => requestAnimationFrame(next)));
    while (done && !done());
  };
  const words = e => e.textContent.trim().replace(/\s+/g, ' ');
  const nameOf = b => b.getAttribute('aria-label') || words(b);
  const lists = 'table, ul, ol, .offering';
  // The buttons, each kind of a table or a list once.
  const buttons = () => {
    const all = [...document.querySelectorAll(lists)],
      seen = new Set();
    return [...document.querySelectorAll('main button, main a[download]')].filter(b => {
      const key = all.indexOf(b.closest(lists)) + words(b);
      if (b.disabled || !b.checkVisibility() || b.matches('.prompt, .line button') || seen.has(key)) return false;
      if (!head && b.closest('.head')) return false;
      return seen.add(key);
    });
  };
  const commands = part =>
    [...part.querySelectorAll('.line')]
      .filter(l => l.checkVisibility() && l.querySelector('button[aria-label^="Copy the command"]'))
      .map(l => l.querySelector('code').textContent)
      .filter(c => program.test(c));
  const dialog = () => document.querySelector('dialog[open]'),
    known = new Map();
  const leave = async () => {
    dialog().close();
    await settled(() => !dialog());
  };
  // The actions that the list beside a button names, each with a command.
  const listed = async b => {
    let at = b;
    while (at.tagName !== 'MAIN' && !at.querySelector('.prompt')) at = at.parentElement;
    if (at.tagName === 'MAIN') return [];
    const prompt = at.querySelector('.prompt');
    if (known.has(prompt)) return known.get(prompt);
    prompt.click();
    await settled(dialog);
    const names = [...dialog().querySelectorAll('.commands > div')].filter(e => commands(e).length).map(e => words(e.querySelector('dt')));
    await leave();
    known.set(prompt, names);
    return names;
  };
  const click = async b => {
    const text = words(b),
      button = b.matches('.action > button, a[download]'),
      direct = (button && !text.startsWith('Cop')) || /^(Download|Reveal|New session)/.test(text),
      before = asked.length;
    if (!b.matches('a')) b.click();
    await settled(() => !b.isConnected || b.getAttribute('aria-busy') !== 'true');
    if (direct) await settled(); // what it opens when it is done
    const opened = Boolean(dialog());
    for (let n = 0; opened && n < 100 && !commands(dialog()).length; n++) await settled(); // it may load first
    const found = opened ? commands(dialog()) : [];
    if (opened) await leave();
    return { text, opened, found, acts: asked.length > before || direct };
  };
  const actions = [],
    missing = [],
    begin = location.href;
  for (const name of buttons().map(nameOf)) {
    const b = buttons().find(x => nameOf(x) === name); // what was clicked before may have changed the screen
    if (!b || done.includes(name)) continue;
    done.push(name);
    const beside = await listed(b),
      did = await click(b);
    if (did.opened || did.acts) actions.push(name);
    if (did.opened && !did.found.length) missing.push(`the dialog of ${name}`);
    if (!did.opened && did.acts && !beside.some(l => l === name || l === did.text)) missing.push(`${name} (listed: ${beside})`);
    if (location.href !== begin) return { actions, missing, done, left: true };
  }
  return { actions, missing, done };
}

// Shows a screen as a link would, without loading the page again; none is between, so that what is ready is new.
async function show(page, where, ready) {
  const to = path =>
    page.evaluate(path => {
      history.pushState(null, '', path);
      dispatchEvent(new PopStateEvent('popstate'));
    }, path);
  await to('/console/none');
  await page.locator(ready).first().waitFor({ state: 'detached' });
  await to(where);
  await page.locator(ready).first().waitFor();
}

/** Clicks all buttons of a screen; returns those that do something, and those of them without a command. */
async function walk(page, where, ready, { head, before } = {}) {
  const found = { actions: [], missing: [] };
  for (let part = { done: [], left: true }; part.left;) {
    await show(page, where, ready);
    await before?.(page);
    part = await page.evaluate(walkHere, { head, done: part.done, programs: programs.source, reads: reads.source });
    found.actions.push(...part.actions);
    found.missing.push(...part.missing);
  }
  return found;
}

async function walkAll(kit, page, screens, atLeast) {
  const missing = [];
  let count = 0;
  for (const [name, [where, ready]] of Object.entries(screens)) {
    const head = !/^\/apps\/[^/]+\//.test(where); // that of an app is the same on all its tabs
    const found = await walk(page, '/console' + where, ready, { head });
    count += found.actions.length;
    missing.push(...found.missing.map(m => `${name}: ${m}`));
  }
  check(!missing.length, 'actions without a command:\n' + missing.join('\n'));
  check(count >= atLeast, `only ${count} actions were found`);
}

// A page of an admin in a context of its own: the walk changes settings, such as the sources of a log that are shown.
async function walker(kit) {
  const page = await kit.page(await kit.browser.newContext());
  await kit.login(page, 'admin', kit.config.admin);
  return page;
}

// An app that never ran, a deployment that waits, a task and a variable that running instances have not: for their buttons.
async function prepare(kit, page) {
  const { noisy } = kit.config.apps;
  const toOne = guid => ({ data: { guid } });
  const idle = await kit.api(page, 'POST', '/v3/apps', { name: 'idle', relationships: { space: toOne(kit.config.space) } });
  await kit.api(page, 'PATCH', `/v3/apps/${noisy}/environment_variables`, { var: { NEWS: 'yes' } });
  await kit.api(page, 'POST', `/v3/apps/${noisy}/tasks`, { command: 'true', name: 'walked' });
  const d = await kit.api(page, 'POST', '/v3/deployments', { strategy: 'canary', relationships: { app: toOne(noisy) } });
  check(idle.status === 201 && d.status === 201, `${idle.status} ${d.status} ${JSON.stringify(d.body)}`);
  return {
    idle: idle.body.guid,
    async end() {
      await kit.api(page, 'POST', `/v3/deployments/${d.body.guid}/actions/cancel`);
      const done = async () => (await kit.api(page, 'GET', '/v3/deployments/' + d.body.guid)).body.status.value === 'FINALIZED';
      await until(done, 'the end of the deployment');
      await kit.api(page, 'PATCH', `/v3/apps/${noisy}/environment_variables`, { var: { NEWS: null } });
      await kit.api(page, 'DELETE', '/v3/apps/' + idle.body.guid);
    },
  };
}

const ofApps = {
  async 'each action of an app has its command'(kit) {
    const page = await walker(kit);
    const made = await prepare(kit, await kit.admin('/apps'));
    try {
      const screens = appScreens(kit);
      await walkAll(kit, page, { ...screens, 'an app that never ran': [`/apps/${made.idle}`, '.facts'] }, 30);
    } finally {
      await made.end();
    }
  },
  async 'the walk notices an action without one'(kit) {
    const before = page => page.evaluate(() => document.querySelectorAll('.prompt').forEach(p => p.remove()));
    const { missing } = await walk(await walker(kit), '/console' + kit.app('quiet'), 'tbody tr', { before });
    check(missing.length === 2, 'missing: ' + missing); // one instance more, one less
  },
};

// What makes the platform's other buttons appear; all goes with its end.
async function preparePlatform(kit, page) {
  const made = [];
  const make = async (path, json) => {
    const { status, body } = await kit.api(page, 'POST', path, json);
    check(status < 300, `POST ${path} is ${status}: ${JSON.stringify(body)}`);
    if (body.guid) made.unshift(`${path}/${body.guid}`);
    return body.guid;
  };
  const toOne = guid => ({ data: { guid } }),
    space = { space: toOne(kit.config.space) },
    org = { organization: toOne(kit.config.org) };
  await make('/v3/organization_quotas', { name: 'walked' });
  const quota = await make('/v3/space_quotas', { name: 'walked', relationships: org });
  await make(`/v3/space_quotas/${quota}/relationships/spaces`, { data: [{ guid: kit.config.space }] });
  await make('/v3/security_groups', { name: 'walked-free', rules: [] });
  const group = await make('/v3/security_groups', { name: 'walked', rules: [] });
  await make(`/v3/security_groups/${group}/relationships/running_spaces`, { data: [{ guid: kit.config.space }] });
  await make('/v3/isolation_segments', { name: 'walked-free' });
  await make('/v3/domains', { name: 'walked.example', relationships: org });
  await make('/v3/placement_pools', { name: 'walked', require: ['ssd'] });
  const instance = await make('/v3/service_instances', {
    type: 'user-provided',
    name: 'walked',
    credentials: { a: 'b' },
    relationships: space,
  });
  await make('/v3/service_credential_bindings', {
    type: 'app',
    relationships: { service_instance: toOne(instance), app: toOne(kit.config.apps.probe) },
  });
  return { made, instance };
}

const ofPlatform = {
  async 'each action of the platform has its command'(kit) {
    const page = await walker(kit),
      admin = await kit.admin('/orgs');
    const { made, instance } = await preparePlatform(kit, admin);
    try {
      const own = { 'a service instance': ['/services/instances/' + instance, 'main section'] };
      await walkAll(kit, page, { ...platformScreens(kit), ...own }, 60);
    } finally {
      for (const path of made) await kit.api(admin, 'DELETE', path);
    }
  },
};

export const tests = JSON.parse(process.env.CONSOLE_TEST).apps.noisy ? ofApps : ofPlatform;
