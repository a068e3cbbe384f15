// The daemon is killed while every screen is open: each says so, and comes back without a reload.
import { check, until } from './kit.mjs';
import { appScreens } from './walk.mjs';

const gone = 'The daemon does not answer. What you see is from';

// Opens all screens, a few at a time. Each page counts the answers of the API that it gets.
async function opened(kit, screens) {
  const pages = new Map(),
    left = Object.entries(screens);
  const next = async () => {
    for (let one = left.shift(); one; one = left.shift()) {
      const [name, [where, ready]] = one;
      const page = await kit.admin(where);
      await page.locator(ready).first().waitFor();
      await page.locator('main[data-connection=live]').waitFor();
      page.on('response', r => {
        if (r.ok() && r.url().includes('/console/api/')) page.answers++;
      });
      await page.evaluate(() => {
        window.same = true;
      });
      pages.set(name, page);
    }
  };
  await Promise.all([next(), next(), next()]);
  return pages;
}

// Reads the stream of events beside the page's own, and keeps the numbers of its messages.
const numbers = page =>
  page.evaluate(() => {
    window.messages = [];
    new EventSource('/console/events').onmessage = e => window.messages.push([e.lastEventId, Boolean(JSON.parse(e.data).hello)]);
  });

async function withoutGap(page) {
  await until(() => page.evaluate(() => window.messages.filter(m => m[1]).length >= 2), 'the stream to greet again');
  const ids = await page.evaluate(() => window.messages.map(m => Number(m[0].split('-')[0])));
  check(ids.length > 2 && ids.every((n, i) => n === i + 1), 'the numbers of the messages are ' + ids);
}

/** Kills the daemon while the screens are open, and starts it: answers the pages by name. */
export async function survive(kit, screens) {
  const pages = await opened(kit, screens),
    [first] = pages.values();
  await numbers(first);
  await until(() => first.evaluate(() => window.messages.length > 0), 'the stream to greet'); // what changes before is not in it
  const { status } = await kit.api(first, 'PATCH', '/v3/organizations/' + kit.config.org, { metadata: { labels: { before: 'the-kill' } } });
  check(status === 200, 'the label is refused: ' + status);
  await until(() => first.evaluate(() => window.messages.length > 1), 'a message');
  await kit.ask('kill');
  for (const [name, p] of pages) {
    await p.getByText(gone).waitFor();
    check(await p.locator('main .lost[role=alert]').isVisible(), name + ' hides that the daemon is gone');
    p.answers = 0;
  }
  await kit.ask('start');
  const began = Date.now();
  for (const [name, p] of pages) {
    await p.locator('main[data-connection=live]').waitFor();
    check(await p.evaluate(() => window.same), name + ' was loaded again');
    check(!(await p.getByText(gone).count()), name + ' goes on to say that the daemon is gone');
  }
  process.stderr.write(`${pages.size} screens were back ${Date.now() - began} ms after the start\n`);
  for (const [name, p] of pages) await until(() => p.answers > 0, name + ' to load again what it shows');
  await withoutGap(first);
  return pages;
}

export const tests = {
  async 'kill -9: said on every screen, and back without a reload'(kit) {
    const pages = await survive(kit, appScreens(kit));
    await kit.request('noisy', 'POST', '/say', 'after the restart\n');
    await pages.get('logs').locator('.log .l', { hasText: 'after the restart' }).waitFor();
    await until(() => pages.get('an app').getByText('1 of 1 instance').count(), 'the instances');
    await pages.get('terminal').getByRole('button', { name: 'Connect again' }).click();
    await pages.get('terminal').locator('.xterm-rows', { hasText: '$' }).waitFor();
  },
};
