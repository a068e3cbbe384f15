// The daemon is killed while every screen of the platform is open.
import { survive } from './restart.mjs';
import { platformScreens } from './walk.mjs';

export const tests = {
  async 'kill -9: said on every screen, and back without a reload'(kit) {
    const page = await kit.admin('/services');
    const relationships = { space: { data: { guid: kit.config.space } } };
    const { body } = await kit.api(page, 'POST', '/v3/service_instances', { type: 'user-provided', name: 'kept', relationships });
    const screens = {
      ...platformScreens(kit),
      services: ['/services', 'tbody tr'],
      'a service': ['/services/instances/' + body.guid, '.facts'],
    };
    const pages = await survive(kit, screens);
    await pages.get('a BOSH deployment').locator('tr', { hasText: 'ticker/0' }).getByText('running').first().waitFor();
    await kit.api(page, 'DELETE', '/v3/service_instances/' + body.guid);
    await pages.get('services').getByRole('link', { name: 'kept' }).waitFor({ state: 'detached' }); // by the stream
  },
};
