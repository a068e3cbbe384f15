// The log: history, live lines, filters, colours, JSON, pause.
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
    await line(page, '"level":"warn"').getByRole('button').click();
    await page.locator('.log .json', { hasText: '"deep": 1' }).waitFor();
    await page.getByRole('searchbox').fill('line s[a-z]ven');
    await page.getByText(/^1 of \d+ lines$/).waitFor();
    check(await page.locator('.log mark').first().textContent() === 'line seven', 'the match is not marked');
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
    await until(async () => await page.locator('.log .l.APP').count() > 0 && await page.locator('.log .l.CELL').count() === 0, 'CELL to be hidden still');
    await page.getByLabel('Wrap').uncheck();
    await page.getByRole('group', { name: 'Sources' }).getByRole('button', { name: /^CELL/ }).click();
  },
  async 'a flood of lines has no long task'(kit) {
    const page = await kit.admin(kit.app('noisy', 'logs'));
    await page.locator('.log .l').first().waitFor();
    await page.evaluate(() => { window.long = []; new PerformanceObserver(list => { for (const e of list.getEntries()) window.long.push(Math.round(e.duration)); }).observe({ type: 'longtask' }); });
    await kit.request('noisy', 'GET', '/flood?rate=1000&seconds=3');
    await until(async () => Number(/of (\d+) lines|^(\d+) lines/.exec(await page.locator('.logs [role=status]').first().textContent())?.slice(1).find(Boolean)) > 1500, 'the lines');
    check(await page.locator('.log .l').count() < 200, 'all lines are in the page');
    process.stderr.write('long tasks of a flood, in ms: ' + JSON.stringify(await page.evaluate(() => window.long)) + '\n');
  },
};
