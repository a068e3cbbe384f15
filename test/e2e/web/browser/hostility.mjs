// Hostile strings, in every field that apps and users can write: no script runs, no request leaves the origin, the
// layout holds, and the strings are shown as they are.
import fs from 'node:fs';
import { check, until } from './kit.mjs';

/** The 200 strings. */
export const strings = JSON.parse(fs.readFileSync(new URL('../testdata/hostile.json', import.meta.url), 'utf8'));

/** Calls the API once with each string, six at a time; returns what was accepted: {s, body}. No answer may be a 5xx. */
export async function pour(kit, page, what, request) {
  const all = strings.map((s, n) => request(s, n)).filter(Boolean);
  const answers = await page.evaluate(async all => {
    const answers = [];
    let next = 0;
    // Chromium ends requests when the machine gets a network interface, as it does with each container.
    const ask = async (...call) => {
      for (let left = 5; ; left--)
        try {
          return await fetch(...call);
        } catch (e) {
          if (!left) throw e;
        }
    };
    // What came of a job: 200, or what it failed with.
    const finished = async url => {
      for (;;) {
        const text = await (await ask('/console/api' + new URL(url).pathname)).text(),
          job = JSON.parse(text);
        if (job.state === 'COMPLETE') return { status: 200, text: '' };
        if (job.state === 'FAILED') return { status: 422, text };
        await new Promise(next => setTimeout(next, 20));
      }
    };
    const work = async () => {
      for (let n = next++; n < all.length; n = next++) {
        const [method, path, json] = all[n];
        const r = await ask('/console/api' + path, {
          method,
          headers: { 'Content-Type': path.endsWith('/apply_manifest') ? 'application/x-yaml' : 'application/json' },
          body: JSON.stringify(json),
        });
        const job = r.status === 202 && r.headers.get('Location');
        const answer = job ? await finished(job) : { status: r.status, text: await r.text() };
        const whole = answer.status < 300 && answer.text.startsWith('{');
        answers[n] = { ...answer, body: whole ? JSON.parse(answer.text) : null };
      }
    };
    await Promise.all(Array.from({ length: 6 }, work));
    return answers;
  }, all);
  const wrong = answers.find(a => a.status >= 500);
  check(!wrong, `${what}: ${wrong?.status} ${wrong?.text}`);
  const accepted = answers.map((a, n) => ({ ...a, s: strings[n] })).filter(a => a.status < 300);
  const refusals = new Set(answers.filter(a => a.status >= 300).map(a => a.text.replace(/.*"detail":"/, '').slice(0, 50)));
  console.log(`${accepted.length} of ${all.length} accepted as ${what}. ${[...refusals].slice(0, 3).join('; ')}`);
  return accepted;
}

/** Checks that a screen is whole. */
export async function unharmed(kit, page, what) {
  for (const size of [
    [1440, 900],
    [390, 844],
  ]) {
    await page.setViewportSize({ width: size[0], height: size[1] });
    await kit.fits(page, `${what} at ${size[0]}`);
  }
  check(await page.locator('header.top').isVisible(), 'the header is gone from ' + what);
  check(page.url().startsWith(kit.console), `${what} led to ${page.url()}`);
  const found = await page.evaluate(() => ({
    elements: [
      ...document.querySelectorAll(
        'main :is(iframe, script, style, base, meta, math, dialog, form[action], img), dialog :is(iframe, script, style, img)',
      ),
    ].map(e => e.outerHTML.slice(0, 100)),
    links: [...document.links].filter(a => !/^(https?|blob):/.test(a.protocol)).map(a => a.href),
  }));
  check(!found.elements.length, `elements came from text in ${what}: ${found.elements}`);
  check(!found.links.length, `links of other protocols in ${what}: ${found.links}`);
}

/** Waits until the screen shows these strings, or so many of them, as they are: its lists come one after the other. */
export async function verbatim(page, what, wanted, atLeast = wanted.length) {
  let missing = wanted;
  const enough = async () => {
    missing = await page.evaluate(wanted => {
      const parts = [...document.querySelectorAll('main, dialog[open]')];
      const fields = [...document.querySelectorAll('input, textarea')];
      const text = [...parts.map(p => p.textContent), ...fields.map(i => i.value)].join('\n');
      return wanted.filter(s => !text.includes(s));
    }, wanted);
    return wanted.length - missing.length >= atLeast;
  };
  const shown = () => `${wanted.length - missing.length} of ${wanted.length} strings; not ${JSON.stringify(missing[0])}`;
  await until(enough, () => `${what}: it shows ${shown()}`);
}

/** Shows a screen, and checks it. */
export async function view(kit, page, where, ready, wanted = [], atLeast = wanted.length) {
  await page.goto(kit.console + where);
  await page.locator(ready).first().waitFor();
  await unharmed(kit, page, where);
  await verbatim(page, where, wanted, atLeast);
}
