// What apps and users can write is text: no script runs, and the layout holds.
import { check, until } from './kit.mjs';

const patterns = [
  n => `<script>alert(${n})</script>`,
  n => `"><img src=x onerror=alert(${n})>`,
  n => `'><svg onload=alert(${n})>`,
  n => `</title><script>alert(${n})</script>`,
  n => `<iframe srcdoc="<script>parent.alert(${n})</script>">`,
  n => `javascript:alert(${n})`,
  n => `\${alert(${n})}`,
  n => `{{constructor.constructor('alert(${n})')()}}`,
  n => `<a href="javascript:alert(${n})">x</a>`,
  n => `<style>*{display:none}</style>${n}`,
  n => `<base href="//evil.example/">${n}`,
  n => `<meta http-equiv=refresh content="0;url=//evil.example/${n}">`,
  n => `<math><mtext></p><script>alert(${n})</script>`,
  n => `--><!--<script>alert(${n})</script>`,
  n => `]]><script>alert(${n})</script>`,
  n => 'W'.repeat(180) + n,
  n => `\u202e\u2066rtl ${n}`,
  n => `e${'\u0301'.repeat(60)} ${n}`,
  n => `<form action=//evil.example><input name=${n}>`,
  n => `<dialog open>${n}</dialog>`,
];
const strings = Array.from({ length: 200 }, (_, n) => patterns[n % patterns.length](n));

async function unharmed(kit, page, what) {
  await kit.fits(page, what);
  check(await page.locator('header.top').isVisible(), 'the header is gone from ' + what);
  check(
    (await page.locator('main iframe, main script, main style, main base, main dialog[open]').count()) === 0,
    'an element came from text in ' + what,
  );
}

const named = (page, kit, name, more = {}) =>
  kit.api(page, 'POST', '/v3/apps', { name, relationships: { space: { data: { guid: kit.config.space } } }, ...more });

export const tests = {
  async 'names of apps, labels and annotations'(kit) {
    const page = await kit.admin('/apps');
    const made = [];
    for (const [n, s] of strings.slice(0, 40).entries()) {
      const { status, body } = await named(page, kit, s, { metadata: { annotations: { note: strings[n + 40] } } });
      if (status === 201) made.push(body.guid);
    }
    check(made.length >= 20, `only ${made.length} names were accepted`);
    for (const size of [
      [1440, 900],
      [390, 844],
    ]) {
      const list = await kit.admin('/apps', size);
      await list.locator('tbody th a', { hasText: /[<>"]/ }).nth(5).waitFor();
      await unharmed(kit, list, `the list of apps at ${size[0]}`);
      const one = await kit.admin('/apps/' + made[15], size);
      await one.locator('.tabs').waitFor();
      await unharmed(kit, one, `an app at ${size[0]}`);
    }
    await page.keyboard.press('Control+k');
    await page.getByRole('option').first().waitFor();
    await unharmed(kit, page, 'the palette').catch(e => {
      if (!/dialog/.test(e.message)) throw e;
    });
    for (const guid of made) await kit.api(page, 'DELETE', '/v3/apps/' + guid);
  },
  async 'the environment'(kit) {
    const page = await kit.admin(kit.app('noisy', 'environment'), [390, 844]);
    await page.getByRole('button', { name: 'Reveal values' }).waitFor();
    const vars = Object.fromEntries(strings.map((s, n) => [`HOSTILE_${n}`, s]));
    vars['A<b>"x'] = strings[1];
    const { status } = await kit.api(page, 'PATCH', `/v3/apps/${kit.config.apps.noisy}/environment_variables`, { var: vars });
    check(status === 200, 'the environment is refused: ' + status);
    await page.reload();
    await page.getByRole('button', { name: 'Reveal values' }).click();
    await page.getByText(strings[199], { exact: true }).waitFor();
    await unharmed(kit, page, 'the environment');
    await kit.api(page, 'PATCH', `/v3/apps/${kit.config.apps.noisy}/environment_variables`, {
      var: Object.fromEntries(Object.keys(vars).map(k => [k, null])),
    });
  },
  async 'lines of the log, and paths of requests'(kit) {
    const page = await kit.admin(kit.app('noisy', 'logs'));
    await page.locator('.log .l').first().waitFor();
    await kit.request('noisy', 'POST', '/say', strings.map(s => s + '\n').join('') + '\x1b]0;title\x07\x1b[999;1Hend of it\n');
    await page.locator('.log .l', { hasText: 'end of it' }).waitFor();
    await unharmed(kit, page, 'the log');
    check((await page.title()) !== 'title', 'a line set the title');
    await kit.request('noisy', 'GET', '/%3Cscript%3Ealert(1)%3C/script%3E?<script>alert(2)</script>');
    const routes = await kit.admin(kit.app('noisy', 'routes'), [390, 844]);
    await until(() => routes.getByText('alert(2)').count(), 'the request');
    await unharmed(kit, routes, 'the requests');
  },
};
