// The loss of a role ends terminals and logs, and logout all streams, at once. How long it took is in the test's log.
import { check, until } from './kit.mjs';

// Opens streams in the page: each notes when it was open, what it said, and when it ended.
const open = (page, process, app) =>
  page.evaluate(
    ([process, app]) => {
      const streams = (window.streams = {});
      const stream = name => (streams[name] = { open: false, said: '', ended: 0 });
      const reads = async (name, path) => {
        const s = stream(name);
        try {
          const answer = await fetch('/console' + path, { headers: { Accept: 'text/event-stream' } });
          const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
          s.open = answer.ok;
          for (let part = await reader.read(); !part.done; part = await reader.read()) s.said = (s.said + part.value).slice(-5000);
        } catch {
          // it was cut
        }
        s.ended = Date.now();
      };
      reads('events', '/events');
      reads('log', '/api/v2/read?log&source_id=' + app);
      const s = stream('terminal');
      const socket = new WebSocket(`ws://${location.host}/console/terminal?process=${process}&index=0`);
      socket.binaryType = 'arraybuffer';
      socket.onopen = () => socket.send(JSON.stringify({ cols: 80, rows: 24 }));
      socket.onmessage = m => {
        s.open = true;
        s.said += typeof m.data === 'string' ? m.data : new TextDecoder().decode(m.data);
      };
      socket.onclose = () => {
        s.ended = Date.now();
      };
    },
    [process, app],
  );

const streams = page => page.evaluate(() => window.streams);
const ended = (page, ...names) =>
  until(async () => {
    const all = await streams(page);
    return names.every(n => all[n].ended) && all;
  }, 'the end of ' + names);

// Logs in as a developer, and opens the streams.
async function begin(kit, process) {
  const page = await kit.page(await kit.browser.newContext());
  await kit.login(page, 'space_developer', kit.config.password);
  await page.goto(kit.console + '/samples'); // the console's own pages would go to the login
  await open(page, process, kit.config.apps.noisy);
  await until(async () => Object.values(await streams(page)).every(s => s.open), 'the streams');
  return page;
}

export const tests = {
  async 'a lost role ends a terminal and a log, and logout all'(kit) {
    const admin = await kit.admin('/apps');
    const process = (await kit.api(admin, 'GET', `/v3/apps/${kit.config.apps.noisy}/processes`)).body.resources[0].guid;
    const page = await begin(kit, process);
    const roles = await kit.api(admin, 'GET', `/v3/roles?types=space_developer&space_guids=${kit.config.space}&include=user`);
    const user = roles.body.included.users.find(u => u.username === 'space_developer').guid;
    const role = roles.body.resources.find(r => r.relationships.user.data.guid === user);
    const lost = Date.now();
    check((await kit.api(admin, 'DELETE', '/v3/roles/' + role.guid)).status === 202, 'the role stays');
    const without = await ended(page, 'terminal', 'log');
    check(!without.events.ended, 'the events ended with the role, though the session is good');
    await until(async () => (await streams(page)).events.said.includes('"role"'), 'the event of the role');
    const back = {
      type: 'space_developer',
      relationships: { user: { data: { guid: user } }, space: { data: { guid: kit.config.space } } },
    };
    check((await kit.api(admin, 'POST', '/v3/roles', back)).status === 201, 'the role does not come back');
    await until(async () => (await kit.api(page, 'GET', '/v3/apps/' + kit.config.apps.noisy)).status === 200, 'the app for the developer');
    await open(page, process, kit.config.apps.noisy);
    await until(async () => Object.values(await streams(page)).every(s => s.open), 'the streams, again');
    const left = await page.evaluate(async () => {
      const at = Date.now();
      await fetch('/console/logout', { method: 'POST' });
      return at;
    });
    const out = await ended(page, 'terminal', 'log', 'events');
    check(out.events.said.includes('{"end":"logout"}'), 'the last event is ' + out.events.said.slice(-200));
    const took = (all, from) =>
      JSON.stringify(Object.fromEntries(Object.entries(all).map(([n, s]) => [n, s.ended ? s.ended - from : 'open'])));
    console.log(`ms from the loss of a role to the ends: ${took(without, lost)}; from logout: ${took(out, left)}`);
  },
};
