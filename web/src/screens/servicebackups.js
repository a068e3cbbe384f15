// The backups of a service instance of the built-in broker: made, downloaded, restored and deleted.
import { html, useState } from '../lib/html.js';
import { among, list, act, get } from '../lib/api.js';
import { useResource } from '../lib/resource.js';
import { base, go } from '../lib/router.js';
import { quoted, bytes } from '../lib/format.js';
import { Field, State, Time, Problem, Section, Lines, Button } from '../parts/basic.js';
import { Table } from '../parts/table.js';
import { Sheet, open, confirm } from '../parts/dialog.js';
import { announce } from '../parts/live.js';

/** Whether the built-in broker has an offering, which is not the autoscaler's. */
export const builtIn = offering => {
  const id = offering?.broker_catalog?.id ?? '';
  return id.startsWith('cupola-') && id !== 'cupola-autoscaler';
};

const reasons = { requested: 'requested', before_restore: 'before a restore' };

/** The backups of a service instance, the newest first; none of one without them. */
export const useBackups = (guid, offering) =>
  useResource(
    async signal =>
      builtIn(offering) ? (await list(`/v1/service_instances/${guid}/backups?order_by=-created_at`, { signal })).resources : [],
    [guid],
    c => c.kind === 'service_instance' && (c.guid === guid || c.guid === '*'),
  );

/** The section of the screen; of is what the screen has loaded, all what useBackups gives. */
export function Backups({ of, all, reload }) {
  const { instance: i, may } = of,
    path = `/v1/service_instances/${i.guid}`;
  const again = () => Promise.all([all.reload(), reload()]);
  const make = async () => {
    try {
      await act('POST', path + '/backups');
      announce(`${i.name} was backed up`);
    } finally {
      await all.reload();
    }
  };
  const remove = b => () =>
    confirm({
      title: 'Delete the backup?',
      submit: 'Delete',
      text: `The backup of ${i.name} of ${new Date(b.created_at).toLocaleString()} is deleted. This cannot be undone.`,
      lines: [`cupola services delete-backup ${b.guid}`],
      run: async () => {
        await act('DELETE', '/v1/service_backups/' + b.guid);
        announce('The backup was deleted');
        await all.reload();
      },
    });
  const backups = all.data,
    lines = [`cupola services backups ${quoted(i.name)}`, may.edit && `cupola services backup ${quoted(i.name)}`].filter(Boolean);
  return html`
    <${Section} title="Backups" actions=${may.edit && html`<${Button} run=${make}>Back up now<//>`}>
      <${Problem} error=${all.error} />
      ${backups &&
      (backups.length
        ? html`<${Table} caption="Backups" columns=${columns(of, again, remove)} rows=${backups} />`
        : html`<p class="muted">There are no backups.</p>`)}
      <${Lines} lines=${lines} />
    <//>
  `;
}

const columns = (of, reload, remove) => [
  { title: 'Created', cell: b => html`<${Time} at=${b.created_at} />` },
  { title: 'State', cell: b => html`<${State} value=${b.state.toLowerCase()} />` },
  { title: 'Size', cell: b => (b.state === 'READY' ? bytes(b.size) : '–') },
  { title: 'Version', cell: b => b.version || '–' },
  { title: 'Why', cell: b => reasons[b.reason] ?? b.reason },
  (of.may.edit || of.may.credentials) && {
    title: 'Actions',
    quiet: true,
    cell: b => b.state === 'READY' && html`<${Actions} of=${of} b=${b} reload=${reload} remove=${remove(b)} />`,
  },
];

function Actions({ of, b, reload, remove }) {
  const when = new Date(b.created_at).toLocaleString();
  const restore = () => open(Restore, { title: 'Restore ' + of.instance.name, of, b, reload });
  return html`
    ${of.may.credentials &&
    html`
      <a class="button" href=${`${base}/api/v1/service_backups/${b.guid}/download`} download aria-label=${'Download the backup of ' + when}>
        Download
      </a>
    `}
    ${of.may.edit &&
    html`
      <button type="button" onClick=${restore} aria-label=${'Restore the backup of ' + when}>Restore…</button>
      <button type="button" onClick=${remove} aria-label=${'Delete the backup of ' + when}>Delete…</button>
    `}
  `;
}

// Makes a service instance like another one, and answers its GUID.
async function another(i, name) {
  const { space, service_plan } = i.relationships;
  await act('POST', '/v3/service_instances', { type: 'managed', name, relationships: { space, service_plan } });
  const found = await get(`/v3/service_instances?names=${among([name])}&space_guids=${space.data.guid}`);
  return found.resources[0].guid;
}

/** Restores a backup into its service instance, or into a new one. */
function Restore({ of, b, close, reload }) {
  const { instance: i } = of;
  const [name, setName] = useState('');
  const run = async () => {
    const guid = name ? await another(i, name) : i.guid;
    await act('POST', `/v1/service_instances/${guid}/actions/restore`, { backup: { guid: b.guid } });
    announce(`The backup was restored into ${name || i.name}`);
    if (name) go('/services/instances/' + guid);
    else await reload();
  };
  const line = `cupola services restore ${quoted(i.name)} ${b.guid} ${name ? '--new ' + quoted(name) : '--force'}`;
  return html`
    <${Sheet} title=${`Restore ${i.name}`} close=${close} submit="Restore" run=${run} danger=${!name} lines=${[line]}>
      <p>
        ${name
          ? `The service instance ${name} is created with the plan of ${i.name}, and gets the content of the backup.`
          : `The content of ${i.name} is replaced by the backup of ${new Date(b.created_at).toLocaleString()}. ` +
            `The present content is backed up first. Connections may end.`}
      </p>
      <div class="fields">
        <${Field} label="New service instance" value=${name} onValue=${setName} note="Leave it empty to replace the content of this one" />
      </div>
    <//>
  `;
}
