// The log: history, live lines, filters, colours, JSON, pause.
import fs from 'node:fs';
import { check, until } from './kit.mjs';

const line = (page, text) => page.locator('.log .l', { hasText: text });

export const tests = {
  async 'a crash leads to its log'(kit) {
    const page = await kit.admin(kit.app('crasher'));
    const row = page.getByRole('row').filter({ hasText: 'Exited with status 3' });
    await row.getByText('crashed').waitFor();
    await row.getByRole('link', { name: 'logs' }).click();
    await line(page, 'fatal: no database').first().waitFor();
    await page.locator('.log .c1', { hasText: 'fatal:' }).first().waitFor();
  },
  async 'lines come live; JSON folds out; an expression counts and marks'(kit) {
    const page = await kit.admin(kit.app('noisy', 'logs'));
    await page.locator('.log .l').first().waitFor();
    await kit.request('noisy', 'POST', '/say', 'live line seven\n{"level":"warn","at":{"deep":1}}\n');
    await line(page, 'live line seven').waitFor();
    await line(page, '"level":"warn"').getByRole('button', { name: 'JSON of this line' }).click();
    await page.locator('.log .json', { hasText: '"deep": 1' }).waitFor();
    await page.getByRole('searchbox').fill('line s[a-z]ven');
    await page.getByText(/^1 of \d+ lines$/).waitFor();
    check((await page.locator('.log mark').first().textContent()) === 'line seven', 'the match is not marked');
    await page.getByRole('searchbox').fill('line (');
    await page.getByText('Not a regular expression').waitFor();
  },
  async 'pause counts what is new; settings outlive a reload'(kit) {
    const page = await kit.admin(kit.app('noisy', 'logs'));
    await page.locator('.log .l').first().waitFor();
    await page.getByRole('button', { name: 'Pause' }).click();
    await kit.request('noisy', 'POST', '/say', 'unseen one\nunseen two\n');
    await page.getByRole('button', { name: /Follow \(\d+ new\)/ }).click();
    await line(page, 'unseen two').waitFor();
    await page.getByLabel('Wrap').check();
    await page.getByRole('group', { name: 'Sources' }).getByRole('button', { name: /^CELL/ }).click();
    await page.reload();
    check(await page.getByLabel('Wrap').isChecked(), 'Wrap was forgotten');
    await until(
      async () => (await page.locator('.log .l.APP').count()) > 0 && (await page.locator('.log .l.CELL').count()) === 0,
      'CELL to be hidden still',
    );
    await page.getByLabel('Wrap').uncheck();
    await page.getByRole('group', { name: 'Sources' }).getByRole('button', { name: /^CELL/ }).click();
  },
  async 'a flood of lines has no long task'(kit) {
    const page = await kit.admin(kit.app('noisy', 'logs'));
    await page.locator('.log .l').first().waitFor();
    await page.evaluate(() => {
      window.long = [];
      new PerformanceObserver(list => {
        for (const e of list.getEntries()) window.long.push(Math.round(e.duration));
      }).observe({ type: 'longtask' });
    });
    await kit.request('noisy', 'GET', '/flood?rate=1000&seconds=3');
    await until(
      async () =>
        Number(
          /of (\d+) lines|^(\d+) lines/
            .exec(await page.locator('.logs [role=status]').first().textContent())
            ?.slice(1)
            .find(Boolean),
        ) > 1500,
      'the lines',
    );
    check((await page.locator('.log .l').count()) < 200, 'all lines are in the page');
    process.stderr.write('long tasks of a flood, in ms: ' + JSON.stringify(await page.evaluate(() => window.long)) + '\n');
  },
  async 'older lines, a link that opens at a line, and a download'(kit) {
    await kit.request('noisy', 'POST', '/say', numbered('counted', 2500));
    const page = await kit.admin(kit.app('noisy', 'logs'));
    const shown = async () => Number(/(\d+) lines$/.exec(await page.locator('.logs [role=status]').first().textContent())?.[1]);
    await until(async () => (await shown()) >= 1000, 'the first lines');
    const first = await shown();
    await page.getByRole('button', { name: 'Older' }).click();
    await until(async () => (await shown()) > first, 'older lines');
    check((await page.locator('.log .l').count()) > 0 && (await inSight(page)).length > 5, 'no line is in sight');
    for (;;) {
      const before = await shown();
      await page.getByRole('button', { name: /lder/ }).click();
      if ((await until(async () => ((await shown()) > before ? 'more' : (await none(page).count()) && 'all'), 'older lines')) === 'all')
        break;
    }
    check(await none(page).isDisabled(), 'it goes on to offer older lines');
    await page.getByRole('searchbox').fill('counted line 7 of 2500');
    await page.locator('.log mark').first().waitFor();
    const marked = await page.locator('.log .l .msg').first().textContent();
    await page.locator('.log .l .when').first().click();
    await page.locator('.log .l.on').waitFor();
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write'], { origin: kit.origin });
    await page.getByRole('button', { name: 'Copy link' }).click();
    await page.getByRole('button', { name: 'Copied' }).waitFor();
    const link = new URL(await page.evaluate(() => navigator.clipboard.readText()));
    check(link.searchParams.get('q').includes('line 7') && /^\d+$/.test(link.searchParams.get('at')), 'the link is ' + link);
    link.searchParams.delete('q');
    const other = await kit.admin('/apps');
    await other.goto(link.href);
    await other.locator('.log .l.on').waitFor();
    check((await inSight(other)).includes(marked), 'the line of the link is not in sight');
    await other.getByRole('button', { name: 'Follow' }).waitFor(); // paused
    const [coming] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Download' }).click()]);
    const text = fs
      .readFileSync(await coming.path(), 'utf8')
      .trim()
      .split('\n');
    check(coming.suggestedFilename() === 'noisy.log', coming.suggestedFilename());
    check(
      text.length >= 1 && text.every(l => /^20\S+Z \[APP\/PROC\/WEB\/0\] OUT counted line 7 of 2500$/.test(l)),
      text.slice(0, 3).join('\n'),
    );
  },
  async 'a filter finds older lines'(kit) {
    await kit.request('noisy', 'POST', '/say', numbered('sought', 2500));
    const page = await kit.admin(kit.app('noisy', 'logs'));
    await until(async () => (await line(page, 'sought line 2499 of 2500').count()) > 0, 'the newest line');
    await page.getByRole('searchbox').fill('SOUGHT line (7|9) of');
    check((await page.locator('.log .l').count()) === 0, 'a line is there before it was searched for');
    await page.getByRole('button', { name: 'Older' }).click();
    await until(async () => (await page.locator('.log .l').count()) === 2, 'the two lines');
    check((await page.locator('.log .l .msg').first().textContent()) === 'sought line 7 of 2500', 'the first line is another one');
    await page.getByRole('button', { name: 'Older' }).click();
    await none(page).waitFor();
    await page.getByRole('searchbox').fill('sought line (');
    await page.getByText('Not a regular expression').waitFor();
    await page.getByRole('button', { name: 'Older' }).click();
    await until(async () => (await none(page).count()) > 0, 'the end of a search for a text');
  },
  async 'all lines between a link and now are there'(kit) {
    await kit.request('noisy', 'POST', '/say', numbered('every', 2500));
    const page = await kit.admin(kit.app('noisy', 'logs'));
    const first = line(page, /^.*every line 0 of 2500/);
    await page.getByRole('searchbox').fill('every line 0 of 2500');
    while (!(await first.count())) await page.getByRole('button', { name: 'Older' }).click();
    await first.locator('.when').click();
    await page.getByRole('searchbox').fill('');
    await page.waitForURL(u => !u.searchParams.has('q'));
    await page.goto(page.url()); // a reload may still have the address with the filter
    await page.locator('.log .l.on').waitFor();
    await kit.request('noisy', 'POST', '/say', 'the newest line\n');
    await page.getByRole('button', { name: /^Follow/ }).click();
    await line(page, 'the newest line').waitFor();
    await page.getByRole('searchbox').fill('every line \\d+ of 2500');
    await page.getByText(/^2500 of \d+ lines$/).waitFor();
  },
};

const numbered = (word, count) => Array.from({ length: count }, (_, n) => `${word} line ${n} of ${count}\n`).join('');
const none = page => page.getByRole('button', { name: 'No older lines' });

// The texts of the lines that one sees.
const inSight = page =>
  page.locator('.log').evaluate(log => {
    const box = log.getBoundingClientRect();
    const seen = r => r.top >= box.top && r.bottom <= box.bottom;
    return [...log.querySelectorAll('.l')].filter(l => seen(l.getBoundingClientRect())).map(l => l.querySelector('.msg').textContent);
  });
