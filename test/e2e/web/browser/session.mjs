// Login by UAA's page, what the browser holds, and logout.
import { check } from './kit.mjs';

export const tests = {
  async 'login keeps no token in the browser'(kit) {
    const context = await kit.browser.newContext();
    const page = await kit.page(context);
    await kit.login(page, 'admin', kit.config.admin);
    await page.getByRole('heading', { name: 'Apps' }).waitFor();
    const cookies = await context.cookies();
    check(
      cookies.length && cookies.every(c => c.httpOnly),
      'a script can read a cookie: ' + JSON.stringify(cookies.map(c => [c.name, c.httpOnly])),
    );
    const kept = await page.evaluate(() => JSON.stringify({ ...localStorage }) + JSON.stringify({ ...sessionStorage }) + document.cookie);
    check(!/eyJ|token/i.test(kept), 'the browser keeps a token: ' + kept.slice(0, 200));
    await context.close();
  },
  async 'logout leads to the login'(kit) {
    const context = await kit.browser.newContext();
    const page = await kit.page(context);
    await kit.login(page, 'admin', kit.config.admin);
    await page.locator('.user summary').click();
    await page.getByRole('button', { name: 'Log out', exact: true }).click();
    await page.waitForURL('**/login**');
    await context.close();
  },
  async 'a wrong password stays at the login'(kit) {
    const context = await kit.browser.newContext();
    const page = await kit.page(context);
    await page.goto(kit.console + '/apps');
    await page.fill('input[name=username]', 'admin');
    await page.fill('input[name=password]', 'wrong');
    await page.press('input[name=password]', 'Enter');
    await page.waitForLoadState();
    check(page.url().includes('/login'), 'it is at ' + page.url());
    await context.close();
  },
};
