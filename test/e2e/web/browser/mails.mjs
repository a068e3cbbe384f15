// Mails that an app sent to a service instance: listed, read, and as harmless as text.
import fs from 'node:fs';
import { check } from './kit.mjs';

const screen = kit => '/services/instances/' + kit.config.instance;

export const tests = {
  async 'none, then those that an app sent'(kit) {
    const page = await kit.admin(screen(kit));
    await page.getByText('Apps have sent no mails yet.').waitFor();
    await kit.ask('send');
    const rows = page.locator('section', { has: page.getByRole('heading', { name: 'Mails' }) }).locator('tbody tr');
    await rows.nth(2).waitFor(); // without a reload
    check((await rows.first().innerText()).includes('The report'), 'the newest is not the first');
    check((await rows.last().innerText()).includes('Grüße'), 'the subject is not decoded');
    await rows.first().getByText('user@example.com, boss@example.com').waitFor();
    await kit.everywhere(page, 'mails of a service instance');
  },
  async 'text in another encoding'(kit) {
    const page = await kit.admin(screen(kit)),
      dialog = page.getByRole('dialog');
    await page.getByRole('button', { name: 'Grüße' }).click();
    await dialog.getByText('viele Grüße, Jörg').waitFor();
    await dialog.getByText('Jörg <joerg@example.com>').waitFor();
    await dialog.getByText('Source').click();
    await dialog.getByText('viele Gr=FC=DFe').waitFor();
    await kit.everywhere(page, 'a mail');
    const [download] = await Promise.all([page.waitForEvent('download'), dialog.getByRole('link', { name: 'Download' }).click()]);
    check(fs.readFileSync(await download.path(), 'utf8').includes('viele Gr=FC=DFe'), 'the file is another one');
  },
  async 'HTML is shown as its text'(kit) {
    const page = await kit.admin(screen(kit)),
      dialog = page.getByRole('dialog'),
      asked = [];
    page.on('request', r => r.url().includes('tracker.example') && asked.push(r.url()));
    page.on('dialog', d => asked.push('a script ran: ' + d.message()));
    await page.getByRole('button', { name: '<img src=x onerror=alert(1)>' }).click();
    await dialog.getByText('Your order is on its way').waitFor();
    await dialog.getByText('This mail has HTML alone').waitFor();
    check(!(await dialog.locator('pre').first().innerText()).includes('alert(2)'), 'a script is shown as text');
    check(asked.length === 0, 'got ' + asked);
  },
  async 'an attachment'(kit) {
    const page = await kit.admin(screen(kit)),
      dialog = page.getByRole('dialog');
    await page.getByRole('button', { name: 'The report' }).click();
    await dialog.getByText('It is attached.', { exact: true }).waitFor();
    const [download] = await Promise.all([page.waitForEvent('download'), dialog.getByRole('button', { name: 'report.csv' }).click()]);
    check(download.suggestedFilename() === 'report.csv', 'the file is called ' + download.suggestedFilename());
    check(fs.readFileSync(await download.path(), 'utf8') === 'a,b\n1,2\n', 'the file is another one');
  },
  async 'an auditor sees none'(kit) {
    const page = await kit.as('space_auditor', screen(kit));
    await page.getByRole('heading', { name: 'outbox', exact: true }).waitFor();
    await page.getByRole('heading', { name: 'Backups' }).waitFor();
    check((await page.getByRole('heading', { name: 'Mails' }).count()) === 0, 'the mails are offered');
  },
};
