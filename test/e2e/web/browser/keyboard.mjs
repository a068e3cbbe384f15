// Jobs with the keyboard alone.
import { check } from './kit.mjs';

const press = async (page, ...keys) => {
  for (const k of keys) await page.keyboard.press(k);
};

// What has the focus as soon as the dialog, which is open, is gone: the next key goes there.
const focusAfter = page =>
  page.evaluate(() => {
    window.focused = new Promise(done => {
      const gone = new MutationObserver(() => document.querySelector('dialog') || done(document.activeElement.textContent.trim()));
      gone.observe(document.body, { childList: true, subtree: true });
    });
  });

// Tabs until what has the focus has a name.
async function tabTo(page, pattern, max = 60) {
  for (let n = 0; n < max; n++) {
    await page.keyboard.press('Tab');
    const name = await page.evaluate(
      () =>
        document.activeElement?.getAttribute('aria-label') ||
        document.activeElement?.labels?.[0]?.textContent ||
        document.activeElement?.textContent ||
        '',
    );
    if (pattern.test(name.trim())) return;
  }
  throw new Error('Tab does not reach ' + pattern);
}

export const tests = {
  async 'go to an app by the palette'(kit) {
    const page = await kit.admin('/apps');
    await press(page, 'Control+k');
    await page.getByRole('combobox').waitFor();
    await page.keyboard.type('noisy');
    await page
      .getByRole('option', { name: /^noisy/ })
      .first()
      .waitFor();
    await press(page, 'Enter');
    await page.getByRole('heading', { name: 'noisy', level: 1 }).waitFor();
  },
  async 'filter, choose a row, open it'(kit) {
    const page = await kit.admin('/apps');
    await page.getByRole('link', { name: 'noisy', exact: true }).waitFor();
    await press(page, '/');
    await page.keyboard.type('noisy');
    await page.getByRole('link', { name: 'quiet', exact: true }).waitFor({ state: 'detached' });
    await tabTo(page, /^noisy$/);
    await press(page, 'Enter');
    await page.getByRole('heading', { name: 'noisy', level: 1 }).waitFor();
  },
  async 'j and k move, Enter opens'(kit) {
    const page = await kit.admin('/apps');
    await page.getByRole('link', { name: 'noisy', exact: true }).waitFor();
    await press(page, 'j', 'j', 'k', 'Enter');
    await page.getByRole('heading', { name: 'crasher', level: 1 }).waitFor();
  },
  async 'help, and Esc'(kit) {
    const page = await kit.admin('/apps');
    await press(page, '?');
    await page.getByRole('dialog').getByText('Next row').waitFor();
    await press(page, 'Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
  },
  async 'tabs of an app, and back to all apps'(kit) {
    const page = await kit.admin(kit.app('noisy'));
    await page.locator('.tabs a').first().waitFor();
    await press(page, 't', 'l');
    await page.locator('.log .l').first().waitFor();
    await press(page, 'Space');
    await page.getByRole('button', { name: /^Follow/ }).waitFor();
    await press(page, 'g', 'a');
    await page.getByRole('heading', { name: 'Apps', level: 1 }).waitFor();
  },
  async 'run a task'(kit) {
    const page = await kit.admin(kit.app('noisy', 'tasks'));
    await page.getByRole('button', { name: 'Run a task…', exact: true }).first().waitFor();
    await tabTo(page, /^Run a task/);
    await press(page, 'Enter');
    await page.getByRole('dialog').waitFor();
    await page.keyboard.type('./noisy 0');
    await press(page, 'Enter');
    await page.getByText('task ends').waitFor();
  },
  async 'restart an app'(kit) {
    const page = await kit.admin(kit.app('quiet'));
    await page.getByRole('button', { name: 'Restart…', exact: true }).first().waitFor();
    await tabTo(page, /^Restart…$/);
    await press(page, 'Enter');
    await tabTo(page, /rolling/);
    await tabTo(page, /^Restart$/);
    await press(page, 'Enter');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await page.getByText('1 of 1 instance').first().waitFor(); // while it is replaced there are two
  },
  async 'set a variable, and restart for it'(kit) {
    const page = await kit.admin(kit.app('quiet', 'environment'));
    await page.getByRole('rowheader', { name: 'COLOUR' }).waitFor();
    await kit.runs(page, 'quiet');
    await tabTo(page, /^Set a variable/);
    await press(page, 'Enter');
    await page.getByRole('dialog').waitFor();
    await page.keyboard.type('TYPED');
    await press(page, 'Tab');
    await page.keyboard.type('by hand');
    await tabTo(page, /^Apply$/);
    await focusAfter(page);
    await press(page, 'Enter');
    const focused = await page.evaluate(() => window.focused);
    check(focused === 'Set a variable…', 'the focus is at ' + focused);
    await page.getByText('The running instances have other values of TYPED.').waitFor();
    await tabTo(page, /^Restart \(rolling\)$/);
    await press(page, 'Enter');
    await page.getByText('Restart needed.').waitFor({ state: 'detached' });
  },
  async 'scale an app'(kit) {
    const page = await kit.admin(kit.app('quiet'));
    await page.getByText('1 of 1 instance').first().waitFor();
    await page.getByText('deployment is').waitFor({ state: 'detached' }); // of the job before
    await tabTo(page, /^Scale web/);
    await press(page, 'Enter');
    await page.getByRole('dialog').waitFor();
    await tabTo(page, /^Instances$/);
    await press(page, 'ArrowUp', 'Enter');
    await page.getByText('2 of 2 instances').waitFor();
    await tabTo(page, /^One instance of web less$/);
    await press(page, 'Enter');
    await page.getByText('1 of 1 instance').waitFor();
  },
  async 'the theme'(kit) {
    const page = await kit.admin('/apps');
    const scheme = () => page.evaluate(() => document.documentElement.style.colorScheme);
    await tabTo(page, /^Theme/);
    await press(page, 'Enter');
    check((await scheme()) === 'light', await scheme());
    await press(page, 'Enter');
    check((await scheme()) === 'dark', await scheme());
    await page.reload();
    await page.locator('h1').first().waitFor();
    check((await scheme()) === 'dark', 'the theme was forgotten');
    await tabTo(page, /^Theme/);
    await press(page, 'Enter');
  },
};
