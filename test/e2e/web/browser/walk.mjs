// Every screen, and a walk that clicks each of its buttons: what a button does, and the commands that the screen shows for it.
const programs = /^(sudo )?(cf|cupola|curl) /;

// Calls that only read, though they are POSTs.
const reads = /\/v1\/admin\/(stack\/list|stack\/inspect|token-keys\/list|broker\/status)$|\/api\/v1\/query/;

/** The screens of an app: path and what is there when it is loaded. */
export const appScreens = kit => {
  const { noisy, crasher } = kit.config.apps;
  return {
    'an app': [`/apps/${noisy}`, 'tbody tr'],
    'an app that crashes': [`/apps/${crasher}`, 'tbody tr'],
    logs: [`/apps/${noisy}/logs`, '.log .l'],
    deployments: [`/apps/${noisy}/deployments`, '.timeline li'],
    metrics: [`/apps/${noisy}/metrics`, 'main button[aria-pressed]'],
    routes: [`/apps/${noisy}/routes`, 'tbody tr'],
    environment: [`/apps/${noisy}/environment`, 'tbody tr'],
    tasks: [`/apps/${noisy}/tasks`, '.empty .line, tbody tr'],
    jobs: [`/apps/${noisy}/jobs`, '.empty .line, tbody tr'],
    autoscaling: [`/apps/${noisy}/autoscaling`, '.empty .line, .facts'],
    files: [`/apps/${noisy}/files`, '.note'],
    terminal: [`/apps/${noisy}/terminal`, '.xterm-rows'],
    events: [`/apps/${noisy}/events`, 'tbody tr'],
    apps: ['/apps', 'tbody tr'],
    'new app': ['/new', '.drop-zone'],
  };
};

/** The screens of the platform. */
export const platformScreens = kit => {
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
export async function walk(page, where, ready, { head, before } = {}) {
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
