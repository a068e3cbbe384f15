// The daemon is killed while pages are open: they say so, and come back without a reload.
import { check, until } from './kit.mjs';

export const tests = {
  async 'kill -9: said, and back without a reload'(kit) {
    const pages = [];
    for (const where of ['/apps', kit.app('quiet'), kit.app('quiet', 'logs'), kit.app('quiet', 'deployments')]) pages.push(await kit.admin(where));
    for (const p of pages) { await p.locator('main[data-connection=live]').waitFor(); await p.evaluate(() => { window.same = true; }); }
    await kit.ask('kill');
    for (const p of pages) await p.getByText('The daemon does not answer. What you see is from').waitFor();
    await kit.ask('start');
    for (const p of pages) { await p.locator('main[data-connection=live]').waitFor(); check(await p.evaluate(() => window.same), 'the page was loaded again'); }
    await kit.request('quiet', 'POST', '/say', 'after the restart\n');
    await pages[2].locator('.log .l', { hasText: 'after the restart' }).waitFor();
    await until(() => pages[1].getByText('1 of 1 instance').count(), 'the instances');
  },
};
