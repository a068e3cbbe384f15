// Pushes an app: what cf push does, step by step, with the same calls.
import { call, act, among, get, finished, NetworkError, APIError } from './api.js';
import { base } from './router.js';
import { zip, modeOf } from './zip.js';
import { stage } from '../screens/appactions.js';

/** The app of a name in a space, or undefined. */
export async function appIn(space, name) {
  return (await get(`/v3/apps?names=${among([name])}&space_guids=${space}`)).resources[0];
}

// fetch does not tell how much of a body is sent; this does.
function upload(path, form, progress) {
  return new Promise((ok, bad) => {
    const x = new XMLHttpRequest();
    x.open('POST', base + '/api' + path);
    x.upload.onprogress = e => progress(e.loaded, e.total);
    x.onerror = () => bad(new NetworkError('The daemon does not answer.'));
    x.onload = () => {
      if (x.status < 300) return ok(JSON.parse(x.responseText));
      let message = x.responseText;
      try {
        message = JSON.parse(message)
          .errors.map(e => e.detail)
          .join('\n');
      } catch {
        /* as it is */
      }
      bad(new APIError(x.status, message));
    };
    x.send(form);
  });
}

const pause = ms =>
  new Promise(done => {
    setTimeout(done, ms);
  });

async function ready(pkg) {
  while (pkg.state !== 'READY') {
    if (pkg.state === 'FAILED' || pkg.state === 'EXPIRED') throw new Error(pkg.data?.error || `The package is ${pkg.state}.`);
    await pause(500);
    pkg = await get('/v3/packages/' + pkg.guid);
  }
  return pkg;
}

const hex = buffer => [...new Uint8Array(buffer)].map(b => b.toString(16).padStart(2, '0')).join('');

/**
 * The files that the daemon has already, as its upload wants them named: [{path, size_in_bytes, checksum, mode}].
 * Browsers compute checksums on https and localhost alone: elsewhere all files are uploaded.
 * @param {Array<{path: string, file: File}>} files
 */
export async function known(files) {
  const large = files.filter(f => f.file.size >= matchFrom && f.file.size <= matchTo).slice(0, matchMost);
  if (!large.length || !globalThis.crypto?.subtle) return [];
  const resources = [];
  for (const { path, file } of large) {
    const bytes = await file.arrayBuffer();
    resources.push({
      path,
      size_in_bytes: file.size,
      checksum: { value: hex(await crypto.subtle.digest('SHA-1', bytes)) },
      mode: modeOf(new Uint8Array(bytes, 0, Math.min(4, bytes.byteLength))).toString(8),
    });
  }
  return (await call('POST', '/v3/resource_matches', { json: { resources } })).resources;
}

// Smaller files cost less to send than to ask about; larger ones do not fit in memory; the API takes 5,000 a request.
const matchFrom = 65536,
  matchTo = 512 * 1024 * 1024,
  matchMost = 5000;

// The form of an upload: the files that the daemon does not have, and the names of those that it has.
async function formOf(source, say) {
  const form = new FormData();
  if (source.zip) {
    form.append('bits', source.zip, 'app.zip');
    return { form, here: 0 };
  }
  const have = await known(source.files),
    paths = new Set(have.map(r => r.path));
  const rest = source.files.filter(f => !paths.has(f.path));
  if (have.length) form.append('resources', JSON.stringify(have));
  if (rest.length) form.append('bits', await zip(rest, n => say('pack', `${n} of ${rest.length} files`)), 'app.zip');
  return { form, here: have.length };
}

// The package of the source: uploaded files, or an image that the daemon pulls.
async function packaged(app, source, say) {
  const relationships = { app: { data: { guid: app.guid } } };
  if (source.image)
    return call('POST', '/v3/packages', {
      json: {
        type: 'docker',
        data: { image: source.image, ...(source.username && { username: source.username, password: source.password }) },
        relationships,
      },
    });
  const { form, here } = await formOf(source, say);
  const pkg = await call('POST', '/v3/packages', { json: { type: 'bits', relationships } });
  const note = here ? `, ${here} of ${source.files.length} files already here` : '';
  say('upload', '0 %' + note, { note });
  return ready(
    await upload(`/v3/packages/${pkg.guid}/upload`, form, (sent, total) => say('upload', Math.round((sent / total) * 100) + ' %' + note)),
  );
}

// Waits until all instances run; fails with the reason of the first that crashed.
async function running(app) {
  for (let n = 0; n < 600; n++) {
    const { resources } = await get(`/v3/apps/${app.guid}/processes/web/stats`);
    if (resources.length && resources.every(i => i.state === 'RUNNING' && i.routable !== false)) return;
    if (!resources.length) return;
    const crashed = resources.find(i => i.state === 'CRASHED');
    const unplaced = resources.find(i => i.state === 'DOWN' && i.details);
    if (unplaced) throw new Error(unplaced.details);
    if (crashed) throw new Error(`Instance ${crashed.index} crashed. ${crashed.details ?? 'See its log.'}`);
    await pause(500);
  }
  throw new Error('The app is still starting.');
}

/**
 * Applies a manifest, uploads, stages and starts. say gets each step as it begins: manifest, pack, upload, stage, start, done.
 * @param {{space: string, name: string, manifest: string, source: any}} what @param {(step: string, note?: string, more?: any) => void} say
 */
export async function push({ space, name, manifest, source }, say) {
  say('manifest');
  await finished(
    await call('POST', `/v3/spaces/${space}/actions/apply_manifest`, { body: manifest, type: 'application/x-yaml', whole: true }),
  );
  const app = await appIn(space, name);
  if (!app) throw new Error(`The manifest made no app named ${name}.`);
  say(source.image ? 'upload' : 'pack', '', { app });
  const pkg = await packaged(app, source, say);
  say('stage', '', { app, since: new Date().toISOString() });
  const droplet = await stage(app.guid, pkg.guid);
  say('start');
  if (app.state === 'STARTED') await act('POST', `/v3/apps/${app.guid}/actions/stop`);
  await call('PATCH', `/v3/apps/${app.guid}/relationships/current_droplet`, { json: { data: { guid: droplet } } });
  await act('POST', `/v3/apps/${app.guid}/actions/start`);
  await running(app);
  say('done');
  return app;
}
