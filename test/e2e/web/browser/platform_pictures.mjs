// Pictures of some screens of the platform, for docs/console.md. PICTURES names the directory.
import path from 'node:path';

export const tests = process.env.PICTURES
  ? {
      async pictures(kit) {
        const take = (page, name) => page.screenshot({ path: path.join(process.env.PICTURES, `console-${name}.png`) });
        const machine = await kit.admin('/machine', [1200, 740]);
        await machine.emulateMedia({ colorScheme: 'dark' });
        await machine.locator('.spark path').first().waitFor();
        await machine.getByRole('button', { name: 'All checks' }).click();
        await machine.getByRole('rowheader', { name: 'kernel', exact: true }).waitFor();
        await machine.waitForTimeout(9000); // some more measurements
        await take(machine, 'machine');
        const create = await kit.admin('/services/marketplace', [1200, 740]);
        await create.emulateMedia({ colorScheme: 'light' });
        await create.getByRole('button', { name: 'Create an instance of db, plan small' }).click();
        await create.getByRole('dialog').getByLabel('Name', { exact: true }).fill('ledger');
        await create.getByRole('dialog').getByText('cupola / dev').waitFor({ state: 'attached' });
        await take(create, 'create');
      },
    }
  : {};
