// Measures the web console in Chromium; told by the environment, it prints JSON.
import { createRequire } from 'node:module';
const { chromium } = createRequire(process.env.MODULES + '/')('playwright-core');
const { API, TOKEN, OPEN, LIVE, NOISY, ROUNDS, SECONDS, CONSOLES, DAEMON, METRICS } = process.env;
import { readFileSync, readdirSync } from 'node:fs';

const args = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'];
const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args });
const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
const rows = '.applist tbody tr[data-row]';

async function login() {
  const page = await context.newPage();
  await page.goto(OPEN);
  await page.waitForSelector(rows);
  await page.close();
}

// One load of the list of apps in a fresh page: when it painted first, when its rows
// were there, what was transferred, and how long the filter took for a key.
async function load(cold) {
  const page = await context.newPage();
  const cdp = await context.newCDPSession(page);
  await cdp.send('Network.enable');
  await cdp.send('Network.setCacheDisabled', { cacheDisabled: cold });
  const sent = new Map();
  cdp.on('Network.requestWillBeSent', e => sent.set(e.requestId, { url: e.request.url, bytes: 0 }));
  cdp.on('Network.loadingFinished', e => { const r = sent.get(e.requestId); if (r) r.bytes = e.encodedDataLength; });
  const begin = performance.now();
  await page.goto(API + '/console/apps', { waitUntil: 'commit' });
  await page.waitForFunction(s => document.querySelectorAll(s).length >= 10, rows, { polling: 'raf' });
  const there = await page.evaluate(() => performance.now());
  await page.waitForTimeout(1500);
  const paint = await page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0);
  const key = await page.evaluate(s => new Promise(done => {
    const input = document.querySelector('input[type=search]');
    const before = performance.now();
    new MutationObserver((_, o) => { o.disconnect(); requestAnimationFrame(() => done(performance.now() - before)); }).observe(document.querySelector('.applist tbody'), { childList: true, subtree: true, characterData: true });
    input.value = 'bench-77';
    input.dispatchEvent(new Event('input', { bubbles: true }));
    setTimeout(() => done(performance.now() - before), 2000);
  }), rows);
  const all = [...sent.values()], lists = all.filter(r => /\/v3\/apps\?/.test(r.url));
  const assets = all.filter(r => /\/assets\/|\/console\/apps$/.test(r.url));
  const off = all.filter(r => !r.url.startsWith(API)).length;
  await page.close();
  return { paint, there, key, lists: lists.length, listBytes: lists.reduce((n, r) => n + r.bytes, 0), assetBytes: assets.reduce((n, r) => n + r.bytes, 0), off, total: performance.now() - begin };
}

// How long after the API's answer the list shows another state of an app.
async function change(rounds) {
  const page = await context.newPage();
  await page.goto(API + '/console/apps');
  await page.waitForSelector(rows);
  await page.fill('input[type=search]', 'live');
  await page.waitForSelector(rows);
  await page.waitForTimeout(500);
  const times = [];
  for (let i = 0; i < rounds; i++) {
    const [act, text] = i % 2 ? ['start', /running|starting/] : ['stop', /stopped/];
    await fetch(`${API}/v3/apps/${LIVE}/actions/${act}`, { method: 'POST', headers: { authorization: TOKEN } });
    const answered = performance.now();
    await page.waitForFunction(([s, t]) => new RegExp(t).test(document.querySelector(s)?.innerText ?? ''), [rows, text.source], { polling: 'raf' });
    times.push(performance.now() - answered);
    await page.waitForTimeout(700);
  }
  await page.close();
  return times;
}

// A renderer's proportional share of memory, in MB.
function renderers() {
  return readdirSync('/proc').filter(p => /^\d+$/.test(p)).flatMap(pid => {
    try {
      const cmd = readFileSync(`/proc/${pid}/cmdline`, 'utf8');
      if (!cmd.includes('--type=renderer') || !cmd.includes('chromium')) return [];
      return [[pid, +readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8').match(/^Pss:\s+(\d+)/m)[1] / 1024]];
    } catch { return []; }
  });
}

// A minute of a log of thousands of lines a second.
async function logs(seconds) {
  const before = new Set(renderers().map(r => r[0]));
  const own = await browser.newContext({ viewport: { width: 1440, height: 900 }, storageState: await context.storageState() });
  const page = await own.newPage();
  await page.addInitScript(() => {
    window.longest = 0; window.long = 0;
    new PerformanceObserver(l => { for (const e of l.getEntries()) { window.longest = Math.max(window.longest, e.duration); if (e.duration > 100) window.long++; } }).observe({ type: 'longtask', buffered: true });
  });
  await page.goto(`${API}/console/apps/${NOISY}/logs`);
  await page.waitForFunction(() => document.querySelectorAll('.logs').length > 0);
  await page.waitForTimeout(2000);
  await page.evaluate(() => { window.longest = 0; window.long = 0; });
  let peak = 0;
  const cdp = await own.newCDPSession(page);
  await cdp.send('Performance.enable');
  let heap = 0;
  for (let i = 0; i < seconds; i++) {
    await page.waitForTimeout(1000);
    for (const [pid, mb] of renderers()) if (!before.has(pid)) peak = Math.max(peak, mb);
    const { metrics } = await cdp.send('Performance.getMetrics');
    heap = Math.max(heap, metrics.find(m => m.name === 'JSHeapUsedSize').value / 1048576);
  }
  const seen = await page.evaluate(() => ({ longest: window.longest, long: window.long, status: document.querySelector('.logs [role=status]')?.innerText, last: document.querySelector('.logs')?.innerText.match(/line (\d+)/g)?.at(-1) }));
  await own.close();
  return { ...seen, peak, heap };
}

const anon = () => +readFileSync(`/proc/${DAEMON}/status`, 'utf8').match(/RssAnon:\s+(\d+)/)[1] / 1024;

// What the daemon holds in its heap and stacks once a collection that began after now
// has freed what nothing refers to. Go collects at least every two minutes.
async function held() {
  const quiet = Date.now() / 1000;
  for (;;) {
    const text = await (await fetch(METRICS)).text(), metric = name => +text.match(new RegExp(`^${name} (\\S+)`, 'm'))[1];
    if (metric('go_memstats_last_gc_time_seconds') > quiet) return (metric('go_memstats_heap_alloc_bytes') + metric('go_memstats_stack_inuse_bytes')) / 1048576;
    await new Promise(r => setTimeout(r, 500));
  }
}

// What the daemon holds for each open console, and how much more of memory it has then.
async function memory(count) {
  const settle = () => new Promise(r => setTimeout(r, 4000));
  await settle();
  const before = await held(), rssBefore = anon(), pages = [];
  for (let i = 0; i < count; i++) { const p = await context.newPage(); await p.goto(API + '/console/apps'); await p.waitForSelector(rows); pages.push(p); }
  await settle();
  const rssAfter = anon(), after = await held();
  for (const p of pages) await p.close();
  return { before, after, each: (after - before) / count, rssBefore, rssAfter };
}

await login();
const result = { cold: [], warm: [] };
for (let i = 0; i < +ROUNDS; i++) { result.cold.push(await load(true)); result.warm.push(await load(false)); }
result.memory = await memory(+CONSOLES);
result.change = await change(30);
result.logs = await logs(+SECONDS);
await browser.close();
console.log(JSON.stringify(result));
