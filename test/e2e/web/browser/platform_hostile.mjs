// Names that users choose are text on the screens of the platform: no script runs, and the layout holds.
import { check } from './kit.mjs';

const strings = [
  '<script>alert(1)</script>',
  '"><img src=x onerror=alert(2)>',
  "'><svg onload=alert(3)>",
  '<iframe srcdoc="<script>parent.alert(4)</script>">',
  'javascript:alert(5)',
  '${alert(6)}',
  "{{constructor.constructor('alert(7)')()}}",
  '<style>*{display:none}</style>',
  '<base href="//evil.example/">',
  '<math><mtext></p><script>alert(8)</script>',
  '--><!--<script>alert(9)</script>',
  'W'.repeat(200),
  '\u202e\u2066rtl',
  'e' + '\u0301'.repeat(60),
  '<form action=//evil.example><input name=x>',
  '<dialog open>x</dialog>',
];

async function unharmed(kit, page, what) {
  await kit.fits(page, what);
  check(await page.locator('header.top').isVisible(), 'the header is gone from ' + what);
  check(
    (await page.locator('main iframe, main script, main style, main base, main dialog[open]').count()) === 0,
    'an element came from text in ' + what,
  );
}

async function each(
  kit,
  where,
  ready,
  sizes = [
    [1440, 900],
    [390, 844],
  ],
) {
  for (const size of sizes) {
    const page = await kit.admin(where, size);
    await page.locator(ready).first().waitFor();
    await unharmed(kit, page, `${where} at ${size[0]}`);
    await page.close();
  }
}

export const tests = {
  async 'orgs, spaces and quotas'(kit) {
    const page = await kit.admin('/orgs'),
      orgs = [],
      quotas = [];
    for (const s of strings) {
      const o = await kit.api(page, 'POST', '/v3/organizations', { name: s });
      if (o.status !== 201) continue;
      orgs.push(o.body.guid);
      const q = await kit.api(page, 'POST', '/v3/organization_quotas', {
        name: s,
        relationships: { organizations: { data: [{ guid: o.body.guid }] } },
      });
      if (q.status === 201) quotas.push(q.body.guid);
      const space = await kit.api(page, 'POST', '/v3/spaces', {
        name: s,
        relationships: { organization: { data: { guid: o.body.guid } } },
      });
      if (space.status === 201 && orgs.length === 2) await each(kit, '/spaces/' + space.body.guid, 'main h1');
    }
    check(orgs.length >= 10 && quotas.length >= 8, `${orgs.length} orgs and ${quotas.length} quotas were accepted`);
    await each(kit, '/orgs', 'tbody tr >> nth=9');
    await each(kit, '/platform', 'tbody tr >> nth=7');
    for (const o of [orgs[0], orgs[1], orgs.at(-1)]) await each(kit, `/orgs/${o}/quota`, '.meter');
    await each(kit, '/cells', '.cellcard');
    await each(kit, '/audit', 'tbody tr');
    for (const o of orgs) await kit.api(page, 'DELETE', '/v3/organizations/' + o);
    for (const q of quotas) await kit.api(page, 'DELETE', '/v3/organization_quotas/' + q);
  },
  async 'service instances, their tags and credentials'(kit) {
    const page = await kit.admin('/services'),
      made = [];
    for (const s of strings) {
      const i = await kit.api(page, 'POST', '/v3/service_instances', {
        type: 'user-provided',
        name: s,
        tags: [s.slice(0, 100)],
        credentials: { [s]: s },
        syslog_drain_url: 'https://x.example/' + encodeURIComponent(s),
        relationships: { space: { data: { guid: kit.config.space } } },
      });
      if (i.status === 201) made.push(i.body.guid);
    }
    check(made.length >= 10, `${made.length} names were accepted`);
    await each(kit, '/services', 'tbody tr >> nth=9');
    for (const guid of [made[0], made[1], made.at(-4)]) {
      const one = await kit.admin('/services/instances/' + guid, [390, 844]);
      await one.getByRole('button', { name: 'Reveal the credentials' }).click();
      await one.locator('.pairs').waitFor();
      await unharmed(kit, one, 'an instance');
      await one.close();
    }
    await each(kit, '/services/instances/' + made[2], 'main h1', [[1440, 900]]);
    for (const guid of made) await kit.api(page, 'DELETE', '/v3/service_instances/' + guid);
  },
};
