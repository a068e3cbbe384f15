// Pictures of the main screens, for docs/console.md, from what the tests before made. PICTURES names the directory.
import path from 'node:path';

const size = [1200, 740];
const words = [
  'GET /cart',
  'payment of order 4711 accepted',
  'cache miss for key user:88',
  '\x1b[33mwarn\x1b[0m slow query took 431 ms',
  '{"level":"info","msg":"order shipped","order":4711}',
  'session renewed',
];
const pictures = kit => ({
  apps: ['/apps', 'tbody tr .spark path'],
  overview: [kit.app('noisy'), 'tbody tr .spark path'],
  logs: [kit.app('noisy', 'logs'), '.log .l'],
  deployments: [kit.app('noisy', 'deployments'), '.timeline li'],
  metrics: [kit.app('noisy', 'metrics'), '.chart canvas'],
  terminal: [kit.app('noisy', 'terminal'), '.xterm-rows'],
  new: ['/new', '.drop-zone'],
});

export const tests = process.env.PICTURES
  ? {
      async pictures(kit) {
        await kit.request('noisy', 'POST', '/say', Array.from({ length: 60 }, (_, n) => words[n % words.length] + '\n').join(''));
        for (let n = 0; n < 40; n++) await kit.request('noisy', 'GET', n % 9 ? '/' : '/missing');
        for (const [name, [where, ready]] of Object.entries(pictures(kit))) {
          const page = await kit.admin(where, name === 'logs' ? [1200, 500] : size); // text takes more bytes than plots
          await page.emulateMedia({ colorScheme: name === 'logs' || name === 'terminal' ? 'dark' : 'light' });
          await page.locator(ready).first().waitFor({ timeout: 90000 }); // a sparkline needs two measurements
          if (name === 'terminal') {
            await page.locator('.xterm-rows', { hasText: '$' }).waitFor();
            await page.keyboard.type('ls -l; echo $CF_INSTANCE_ADDR\n');
          }
          await page.waitForTimeout(1000);
          await page.screenshot({ path: path.join(process.env.PICTURES, `console-${name}.png`) });
          await page.close();
        }
      },
    }
  : {};
