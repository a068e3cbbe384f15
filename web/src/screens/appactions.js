// What can be done with an app as a whole: start, stop, restart, restage, deploy, delete; each with its cf line.
import { html } from '../lib/html.js';
import { act, call, get, finished } from '../lib/api.js';
import { go } from '../lib/router.js';
import { quoted } from '../lib/format.js';
import { Button, Field, Icon } from '../parts/basic.js';
import { open, confirm, Sheet, close } from '../parts/dialog.js';
import { Commands } from '../parts/commands.js';
import { announce } from '../parts/live.js';
import { useState } from '../lib/html.js';

const state = (guid, what) => act('POST', `/v3/apps/${guid}/actions/${what}`);

/** Starts a deployment of the app's current droplet, of another one, or of a revision. */
export const deploy = (guid, strategy, more = {}, options) =>
  call('POST', '/v3/deployments', { json: { ...more, strategy, ...(options && { options }), relationships: { app: { data: { guid } } } } });

const pause = ms =>
  new Promise(done => {
    setTimeout(done, ms);
  });

/** Stages the newest package again: answers the droplet's GUID, or fails with the build's error. onBuild gets the build. */
export async function stage(guid, packageGUID, onBuild = () => {}, lifecycle) {
  let build = await call('POST', '/v3/builds', { json: { package: { guid: packageGUID }, ...(lifecycle && { lifecycle }) } });
  for (;;) {
    onBuild(build);
    if (build.state === 'STAGED') return build.droplet.guid;
    if (build.state === 'FAILED') throw new Error(build.error || 'Staging failed.');
    await pause(1000);
    build = await get('/v3/builds/' + build.guid);
  }
}

async function restage(app, strategy) {
  const { resources } = await get(`/v3/apps/${app.guid}/packages?order_by=-created_at&states=READY&per_page=1`);
  if (!resources.length) throw new Error('The app has no package that is READY: push it first.');
  const droplet = await stage(app.guid, resources[0].guid);
  announce('Staged');
  if (strategy) return deploy(app.guid, strategy, { droplet: { guid: droplet } });
  if (app.state === 'STARTED') await state(app.guid, 'stop');
  await call('PATCH', `/v3/apps/${app.guid}/relationships/current_droplet`, { json: { data: { guid: droplet } } });
  await state(app.guid, 'start');
}

/** The buttons in the head of an app. */
export function Actions({ of, reload }) {
  const { app, may } = of,
    name = quoted(app.name);
  if (!may.operate) return null;
  const run = what => async () => {
    await state(app.guid, what);
    announce(`${app.name}: ${what} done`);
    await reload();
  };
  const stop = () =>
    confirm({
      title: `Stop ${app.name}?`,
      text: 'All its instances stop, and its routes answer 404.',
      submit: 'Stop',
      lines: [`cf stop ${name}`],
      run: run('stop'),
    });
  const remove = () =>
    confirm({
      title: `Delete ${app.name}?`,
      text: `The app ${app.name} is deleted with its packages, droplets, revisions and tasks. Its routes stay, without this app.`,
      submit: 'Delete',
      lines: [`cf delete ${name} -f`],
      run: async () => {
        await act('DELETE', `/v3/apps/${app.guid}`);
        go('/apps');
      },
    });
  return html`
    ${app.state === 'STOPPED'
      ? html`<${Button} kind="primary" icon="play" run=${run('start')}>Start<//>`
      : html`
          <button type="button" onClick=${() => open(Restart, { title: 'Restart', of, reload })}>Restart…</button>
          <button type="button" onClick=${stop}>Stop…</button>
        `}
    <button type="button" onClick=${() => open(Restart, { title: 'Restage', of, reload, restages: true })}>Restage…</button>
    ${may.edit && html`<button type="button" onClick=${remove} aria-label=${'Delete ' + app.name}>Delete…</button>`}
    <${Commands}
      of=${app.name}
      lines=${[
        app.state === 'STOPPED' && ['Start', `cf start ${name}`],
        app.state !== 'STOPPED' && ['Restart…', `cf restart ${name} --strategy rolling`],
        app.state !== 'STOPPED' && ['Stop…', `cf stop ${name}`],
        ['Restage…', `cf restage ${name} --strategy rolling`],
        may.edit && ['Delete…', `cf delete ${name} -f`],
      ]}
    />
  `;
}

const ways = {
  '': 'All instances stop at once, and start again: requests fail in between.',
  rolling: 'New instances replace the old ones, some at a time: no request fails.',
  canary: 'One new instance starts, and waits for you to continue or cancel.',
};

function Restart({ of, reload, close, restages }) {
  const { app } = of,
    name = quoted(app.name);
  const [strategy, setStrategy] = useState(app.state === 'STARTED' ? 'rolling' : '');
  const [steps, setSteps] = useState('');
  const [flight, setFlight] = useState('1');
  const verb = restages ? 'restage' : 'restart';
  const weights = steps
    .split(/[\s,]+/)
    .filter(Boolean)
    .map(Number);
  const options = strategy
    ? {
        max_in_flight: Number(flight) || 1,
        ...(strategy === 'canary' && weights.length && { canary: { steps: weights.map(instance_weight => ({ instance_weight })) } }),
      }
    : undefined;
  const line =
    `cf ${verb} ${name}${strategy && ` --strategy ${strategy}`}` +
    `${strategy && flight !== '1' ? ` --max-in-flight ${flight}` : ''}` +
    `${strategy === 'canary' && weights.length ? ` --instance-steps ${weights.join(',')}` : ''}`;
  const run = async () => {
    if (restages) await restage(app, strategy);
    else if (strategy) await deploy(app.guid, strategy, {}, options);
    else await state(app.guid, 'restart');
    announce(`${app.name}: ${verb} started`);
    await reload();
  };
  return html`
    <${Sheet}
      title=${`${restages ? 'Restage' : 'Restart'} ${app.name}`}
      close=${close}
      submit=${restages ? 'Restage' : 'Restart'}
      run=${run}
      lines=${[line]}
    >
      ${restages && html`<p>The newest package is staged again, with the buildpacks and the stack of today.</p>`}
      <fieldset class="choice">
        <legend class="legend">How the instances are replaced</legend>
        ${Object.entries(ways).map(
          ([value, text]) => html`
            <label key=${value}>
              <input type="radio" name="strategy" value=${value} checked=${strategy === value} onChange=${() => setStrategy(value)} />
              <span><strong>${value || 'all at once'}</strong> ${text}</span>
            </label>
          `,
        )}
      </fieldset>
      ${strategy &&
      !restages &&
      html`
        <div class="fields">
          <${Field} label="In flight" type="number" min="1" value=${flight} onValue=${setFlight} note="How many are replaced at a time" />
          ${strategy === 'canary' &&
          html`<${Field} label="Steps" value=${steps} onValue=${setSteps} placeholder="10, 50" note="Percentages at which it pauses" />`}
        </div>
      `}
    <//>
  `;
}

/** What a deployment does now, with Continue and Cancel. */
export function Deploying({ of, reload }) {
  const { app, deployment: d, may } = of;
  if (!d) return null;
  const name = quoted(app.name),
    paused = d.status.reason === 'PAUSED';
  const step = d.status.canary?.steps;
  const does = what => async () => {
    await call('POST', `/v3/deployments/${d.guid}/actions/${what}`);
    announce('Deployment: ' + what);
    await reload();
  };
  return html`
    <div class="notice" role="status">
      <${Icon} name=${paused ? 'pause' : 'wait'} />
      <span>
        A <strong>${d.strategy}</strong> deployment is ${d.status.reason?.toLowerCase().replaceAll('_', ' ') ?? 'active'}
        ${step ? `, step ${step.current} of ${step.total}` : ''}
        .
        ${d.status.details?.error && html` <span class="bad">${d.status.details.error}</span>`}
      </span>
      ${may.operate && paused && html`<${Button} kind="primary" run=${does('continue')}>Continue<//>`}
      ${may.operate && d.status.reason !== 'CANCELING' && html`<${Button} run=${does('cancel')}>Cancel<//>`}
      ${may.operate &&
      html`
        <${Commands}
          of=${'the deployment of ' + app.name}
          lines=${[paused && ['Continue', `cf continue-deployment ${name}`], ['Cancel', `cf cancel-deployment ${name}`]]}
        />
      `}
    </div>
  `;
}
