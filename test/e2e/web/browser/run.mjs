// Runs the browser's tests one after the other in one browser, and writes a line of JSON for each.
// CONSOLE_TEST holds the configuration; ONLY is a pattern of the names to run.
import { start } from './kit.mjs';

const kit = await start();
const areas = kit.config.areas ?? [
  'session',
  'apps',
  'logs',
  'app',
  'environment',
  'deploy',
  'push',
  'newapp',
  'pictures',
  'commands',
  'ends',
  'roles',
  'readers',
  'keyboard',
  'access',
  'restart',
  'hostile',
];
const only = new RegExp(process.env.ONLY ?? '');
let failed = false;
for (const area of areas) {
  const { tests } = await import(`./${area}.mjs`);
  for (const [name, run] of Object.entries(tests))
    if (only.test(`${area}/${name}`)) failed = !(await kit.test(`${area}/${name}`, run)) || failed;
}
await kit.end();
process.exit(0);
