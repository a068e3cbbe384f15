// Two revisions compared, and the rollback to one.
import { html, useState } from '../lib/html.js';
import { get } from '../lib/api.js';
import { useResource } from '../lib/resource.js';
import { changed } from '../lib/diff.js';
import { quoted } from '../lib/format.js';
import { Problem, Skeleton, Field, Check } from '../parts/basic.js';
import { Diff } from '../parts/diff.js';
import { Sheet } from '../parts/dialog.js';
import { announce } from '../parts/live.js';
import { deploy } from './appactions.js';

async function contents(r, secrets, signal) {
  const [env, droplet] = await Promise.all([
    secrets ? get(`/v3/revisions/${r.guid}/environment_variables`, { signal }) : null,
    get(`/v3/droplets/${r.droplet.guid}`, { signal }).catch(e => {
      if (e.status === 404) return null;
      throw e;
    }),
  ]);
  const packs = droplet?.buildpacks?.map(b => `${b.buildpack_name || b.name} ${b.version ?? ''}`.trim()).join(', ');
  return {
    env: env?.var ?? null,
    commands: Object.fromEntries(Object.entries(r.processes ?? {}).map(([t, p]) => [t, p.command ?? "the droplet's"])),
    droplet: {
      droplet: r.droplet.guid,
      ...(droplet?.image && { image: droplet.image }),
      ...(droplet?.stack && { stack: droplet.stack }),
      ...(packs && { buildpacks: packs }),
    },
    sidecars: Object.fromEntries((r.sidecars ?? []).map(s => [s.name, `${s.command} (${s.process_types.join(', ')})`])),
  };
}

/** What differs between two revisions. @param {{from: any, to: any, may: any}} p */
function Difference({ from, to, may }) {
  const both = useResource(
    async signal => {
      const [a, b] = await Promise.all([contents(from, may.edit, signal), contents(to, may.edit, signal)]);
      return { a, b };
    },
    [from.guid, to.guid],
  );
  const [values, setValues] = useState(false);
  if (!both.data) return both.error ? html`<${Problem} error=${both.error} />` : html`<${Skeleton} rows=${3} />`;
  const { a, b } = both.data;
  const parts = [
    ['Environment', changed(a.env ?? {}, b.env ?? {})],
    ['Start command', changed(a.commands, b.commands)],
    ['Droplet', changed(a.droplet, b.droplet)],
    ['Sidecars', changed(a.sidecars, b.sidecars)],
  ];
  const none = parts.every(p => !p[1].length);
  return html`
    ${none && html`<p>Both have the same ${a.env ? 'environment, ' : ''}commands, droplet and sidecars.</p>`}
    ${parts.map(
      ([title, changes]) => html`<${Diff} key=${title} title=${title} changes=${changes} masked=${title === 'Environment' && !values} />`,
    )}
    ${parts[0][1].length > 0 && html`<${Check} label="Show the values of variables" checked=${values} onValue=${setValues} />`}
    ${!a.env && html`<p class="note">Your role does not show the environment.</p>`}
  `;
}

/** The dialog that compares two revisions. */
export function Compare({ from, to, may, close }) {
  return html`
    <${Sheet}
      title=${`Revision ${from.version} → ${to.version}`}
      close=${close}
      lines=${[`cf curl /v3/revisions/${from.guid}`, `cf curl /v3/revisions/${to.guid}`]}
    >
      <${Difference} from=${from} to=${to} may=${may} />
    <//>
  `;
}

/** The dialog that rolls back: the difference, and the button. */
export function Rollback({ of, current, to, reload, close }) {
  const [strategy, setStrategy] = useState('rolling');
  const run = async () => {
    await deploy(of.app.guid, strategy, { revision: { guid: to.guid } });
    announce(`Rolling back to revision ${to.version}`);
    await reload();
  };
  return html`
    <${Sheet}
      title=${`Roll ${of.app.name} back to revision ${to.version}`}
      close=${close}
      submit="Roll back"
      run=${run}
      lines=${[`cf rollback ${quoted(of.app.name)} --version ${to.version}${strategy === 'canary' ? ' --strategy canary' : ''} -f`]}
    >
      ${current &&
      html`<p>What changes from revision ${current.version}, which runs now:</p><${Difference} from=${current} to=${to} may=${of.may} />`}
      <${Field} as="select" label="Strategy" value=${strategy} onValue=${setStrategy}>
        <option value="rolling">rolling: no request fails</option>
        <option value="canary">canary: one instance first</option>
      <//>
    <//>
  `;
}
