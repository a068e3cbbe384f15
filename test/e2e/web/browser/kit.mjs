// What the tests share: the browser, pages that are logged in, and what they check.
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';
import http from 'node:http';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

const config = JSON.parse(process.env.CONSOLE_TEST);
const require = createRequire(config.modules + '/');
const { chromium } = require('playwright-core');
const axe = fs.readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');
const flags = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

export const within = 45000; // ms; no claim, but ends what hangs

const widths = [
  [390, 844],
  [768, 1024],
  [1440, 900],
];

class Kit {
  constructor(browser) {
    this.browser = browser;
    this.config = config;
    this.origin = `http://localhost:${config.port}`;
    this.console = this.origin + '/console';
    this.contexts = new Map();
    this.answers = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
  }

  /** Runs a test, and reports it. */
  async test(name, run) {
    const began = Date.now();
    let error = '';
    this.opened = [];
    try {
      await run(this);
    } catch (e) {
      error = e.stack ?? String(e);
      if (process.env.SHOTS)
        for (const p of this.opened)
          await p.screenshot({ path: path.join(process.env.SHOTS, name.replaceAll(/\W+/g, '-') + '.png') }).catch(() => {});
    }
    for (const p of this.opened) {
      if (p.problems.length && !error) error = 'the page complained: ' + p.problems.join('\n');
      await p.close().catch(() => {});
    }
    process.stdout.write(JSON.stringify({ test: name, error, millis: Date.now() - began }) + '\n');
    return !error;
  }

  /** Has the Go side do something. */
  async ask(what) {
    process.stdout.write(JSON.stringify({ ask: what }) + '\n');
    await this.answers.next();
  }

  /** A new page of a browser's context; what it logs as an error fails the test. */
  async page(context, size = [1440, 900]) {
    const page = await context.newPage();
    await page.setViewportSize({ width: size[0], height: size[1] });
    page.setDefaultTimeout(within);
    page.problems = [];
    page.on('request', r => {
      if (!/^(data|blob):/.test(r.url()) && new URL(r.url()).origin !== this.origin) page.problems.push('a request leaves: ' + r.url());
    });
    page.on('pageerror', e => page.problems.push(e.message));
    page.on('dialog', async d => {
      page.problems.push('a script ran: ' + d.message());
      await d.dismiss();
    });
    page.on('console', m => {
      if (
        m.type() === 'error' &&
        !/status of 4\d\d|ERR_CONNECTION|ERR_NETWORK_CHANGED|ERR_SOCKET|ERR_EMPTY|ERR_INCOMPLETE|ERR_ABORTED|WebSocket/.test(m.text())
      )
        page.problems.push(m.text());
    });
    this.opened.push(page);
    return page;
  }

  /** Logs in by UAA's page. */
  async login(page, user, password) {
    await page.goto(this.console + '/apps');
    await page.waitForURL('**/login**');
    await page.fill('input[name=username]', user);
    await page.fill('input[name=password]', password);
    await page.press('input[name=password]', 'Enter');
    await page.waitForURL('**/console/apps');
  }

  /** A page of a user who is logged in: admin, or a user named as a role. */
  async as(user, where = '/apps', size) {
    if (!this.contexts.has(user)) {
      const context = await this.browser.newContext();
      const page = await this.page(context);
      await this.login(page, user, user === 'admin' ? config.admin : config.password);
      this.contexts.set(user, context);
      await page.close();
      this.opened.pop();
    }
    const page = await this.page(this.contexts.get(user), size);
    await page.goto(this.console + where);
    await page.locator('h1').first().waitFor();
    return page;
  }

  admin(where, size) {
    return this.as('admin', where, size);
  }

  /** The path of an app's tab. */
  app(name, tab = '') {
    return `/apps/${config.apps[name]}${tab && '/' + tab}`;
  }

  /** Waits until all web instances of an app run, and have for more than so many seconds. */
  runs(page, app, seconds = -1) {
    const stats = () => this.api(page, 'GET', `/v3/apps/${this.config.apps[app]}/processes/web/stats`);
    return until(async () => (await stats()).body.resources.every(i => i.state === 'RUNNING' && i.uptime > seconds), app + ' to run');
  }

  /**
   * Calls the API as the page's user: {status, body}. What only reads is asked again where Chromium gives it up, as
   * web/src/lib/api.js does.
   */
  api(page, method, where, json) {
    return page.evaluate(
      async ([method, where, json]) => {
        const ask = () =>
          fetch('/console/api' + where, {
            method,
            headers: { 'Content-Type': 'application/json' },
            body: json && JSON.stringify(json),
          });
        const r = await ask().catch(e => {
          if (method !== 'GET') throw e;
          return ask();
        });
        const text = await r.text();
        return { status: r.status, body: text && text.startsWith('{') ? JSON.parse(text) : text };
      },
      [method, where, json],
    );
  }

  /** Asks an app through the router. */
  request(app, method, where, body = '') {
    return new Promise((ok, bad) => {
      const r = http.request({ host: '127.0.0.1', port: config.port, method, path: where, headers: { Host: app + '.localhost' } }, a => {
        let text = '';
        a.on('data', d => {
          text += d;
        });
        a.on('end', () => ok({ status: a.statusCode, text }));
      });
      r.on('error', bad);
      r.end(body);
    });
  }

  /** Runs axe; fails on any violation. */
  async accessible(page, what, runOnly = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']) {
    if (!(await page.evaluate(() => 'axe' in window))) await page.evaluate(axe);
    const found = await page.evaluate(
      rules =>
        window.axe.run({ runOnly: rules, resultTypes: ['violations'] }).then(r =>
          r.violations.map(
            v =>
              `${v.id}: ${v.nodes
                .slice(0, 3)
                .map(n => n.html.slice(0, 200))
                .join(' | ')}`,
          ),
        ),
      runOnly,
    );
    check(!found.length, `axe finds in ${what}: ${found.join('\n')}`);
  }

  /** Runs axe at three widths, light and dark, of which the second has other colours alone; nothing scrolls sideways. */
  async everywhere(page, what) {
    for (const [width, height] of widths) {
      await page.setViewportSize({ width, height });
      for (const colorScheme of ['light', 'dark']) {
        await page.emulateMedia({ colorScheme });
        await page.evaluate(() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done))));
        const rules = colorScheme === 'dark' && !process.env.ALWAYS ? ['color-contrast'] : undefined; // all, for test-all
        await this.accessible(page, `${what} at ${width}, ${colorScheme}`, rules);
        const file = `screen-${what}-${width}-${colorScheme}.png`.replaceAll(' ', '-');
        if (process.env.SHOTS) await page.screenshot({ path: path.join(process.env.SHOTS, file) });
      }
      await this.fits(page, `${what} at ${width}`);
    }
  }

  /** Nothing scrolls sideways but regions made for it. */
  async fits(page, what) {
    const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    check(over <= 0, `${what} is ${over} px too wide`);
  }

  async end() {
    await this.browser.close();
  }
}

/** Fails with a text. */
export function check(ok, text) {
  if (!ok) throw new Error(text);
}

/** Waits until f answers something true; what says what is waited for, or is a function that does in the end. */
export async function until(f, what) {
  for (const end = Date.now() + within; ;) {
    const got = await f();
    if (got) return got;
    if (Date.now() >= end) throw new Error('waited in vain for ' + (typeof what === 'function' ? what() : what));
    await new Promise(done => {
      setTimeout(done, 100);
    });
  }
}

/** Starts the browser with a new profile. */
export async function start() {
  const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'console-'));
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    args: flags,
    headless: true,
    downloadsPath: dir,
  });
  return new Kit(browser);
}
