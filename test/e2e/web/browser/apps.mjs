// The list of apps: one request, states, reasons, and the filter.
import { check } from './kit.mjs';

export const tests = {
  async 'one list request, nothing off its origin, and a small start'(kit) {
    const page = await kit.admin('/apps');
    const lists = [],
      single = [],
      foreign = [];
    page.on('request', r => {
      if (r.url().includes('/api/v3/apps?')) lists.push(r.url());
      if (/\/v3\/apps\/[0-9a-f]/.test(r.url())) single.push(r.url());
      if (!r.url().startsWith(kit.origin)) foreign.push(r.url());
    });
    await page.reload();
    await page.getByRole('link', { name: 'noisy', exact: true }).waitFor();
    check(
      lists.length > 0 && lists.filter(l => !l.includes('guids=')).every(l => l === lists[0]) && !lists.some(l => /[?&]page=/.test(l)),
      'it asked for lists: ' + lists.join(' '),
    );
    check(!single.length, 'it asked for single apps: ' + single.join(' '));
    check(!foreign.length, 'it asked others: ' + foreign.join(' '));
    const sent = await page.evaluate(() =>
      performance
        .getEntriesByType('resource')
        .filter(e => /\/assets\/.*\.(js|css)$/.test(e.name))
        .reduce((sum, e) => sum + e.encodedBodySize, 0),
    );
    check(sent > 10000, 'the size of the start is unknown');
    process.stderr.write(`script and style of the start: ${sent} bytes\n`);
    check(sent <= 120000, `the start has ${sent} bytes; want at most 120,000`);
  },
  async 'states, instances and the reason of a crash'(kit) {
    const page = await kit.admin('/apps');
    const row = name => page.locator('tr', { has: page.getByRole('link', { name, exact: true }) });
    await row('noisy').getByText('running').waitFor();
    await row('noisy').getByText('1 / 1').waitFor();
    await row('crasher').getByText('crashed').waitFor();
    await row('crasher').getByText('Exited with status 3').waitFor();
    await row('noisy').getByRole('link', { name: 'noisy.localhost' }).waitFor();
  },
  async 'the filter narrows as one types, and is in the address'(kit) {
    const page = await kit.admin('/apps');
    await page.getByRole('link', { name: 'quiet', exact: true }).waitFor();
    await page.getByRole('searchbox').pressSequentially('crash');
    await page.getByRole('link', { name: 'quiet', exact: true }).waitFor({ state: 'detached' });
    check(page.url().includes('q=crash'), page.url());
    await page.getByText('1 of').waitFor();
  },
};
