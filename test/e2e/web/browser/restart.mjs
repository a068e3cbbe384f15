// The daemon is killed while every screen is open: each says so, and comes back without a reload.
import { check, until } from './kit.mjs';

const tabs = ['', 'logs', 'deployments', 'metrics', 'routes', 'environment', 'tasks', 'terminal', 'files', 'events'];
const others = ['/apps', '/new', '/services', '/orgs', '/audit', '/machine', '/stacks', '/cells', '/bosh', '/platform'];

export const tests = {
  async 'kill -9: said on every screen, and back without a reload'(kit) {
    const pages = new Map();
    for (const where of [...others, ...tabs.map(t => kit.app('quiet', t)), `/spaces/${kit.config.space}`])
      pages.set(where, await kit.admin(where));
    for (const p of pages.values()) {
      await p.locator('main[data-connection=live]').waitFor();
      await p.evaluate(() => {
        window.same = true;
      });
    }
    await kit.ask('kill');
    for (const p of pages.values()) await p.getByText('The daemon does not answer. What you see is from').waitFor();
    await kit.ask('start');
    const began = Date.now();
    for (const [where, p] of pages) {
      await p.locator('main[data-connection=live]').waitFor();
      check(await p.evaluate(() => window.same), where + ' was loaded again');
      check(
        !(await p.getByText('The daemon does not answer. What you see is from').count()),
        where + ' goes on to say that the daemon is gone',
      );
    }
    process.stderr.write(`${pages.size} screens were back ${Date.now() - began} ms after the start\n`);
    const logs = pages.get(kit.app('quiet', 'logs')),
      overview = pages.get(kit.app('quiet'));
    await kit.request('quiet', 'POST', '/say', 'after the restart\n');
    await logs.locator('.log .l', { hasText: 'after the restart' }).waitFor();
    await until(() => overview.getByText('1 of 1 instance').count(), 'the instances');
  },
};
