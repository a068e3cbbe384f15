// Audit events: who changed what and when, by type, actor, target and time; as CSV.
import { html, useState, useMemo, useRef } from '../lib/html.js';
import { get, list, among } from '../lib/api.js';
import { useResource } from '../lib/resource.js';
import { ofKind } from '../lib/operations.js';
import { place, setQuery, Link } from '../lib/router.js';
import { stamp, count } from '../lib/format.js';
import { save } from '../lib/save.js';
import { Head, Empty, Lines, Field, Button } from '../parts/basic.js';
import { Table, Waiting } from '../parts/table.js';
import { Commands } from '../parts/commands.js';

const size = 50,
  chunk = 1000; // events that are searched for an actor at a time
const names = ['type', 'target', 'actor', 'since', 'until'];

/** The API's filter of the query; actors are not among its filters. */
function filters(q) {
  const times = [q.since && 'created_ats[gte]=' + instant(q.since), q.until && 'created_ats[lte]=' + instant(q.until)];
  return [
    q.type && 'types=' + among(q.type.split(/[\s,]+/).filter(Boolean)),
    q.target && 'target_guids=' + among(q.target.split(/[\s,]+/).filter(Boolean)),
    ...times,
  ]
    .filter(Boolean)
    .join('&');
}

const instant = local => {
  const d = new Date(local);
  return Number.isNaN(d.getTime()) ? '' : d.toISOString().replace(/\.\d+Z/, 'Z');
};

const path = (q, more) => `/v3/audit_events?order_by=-created_at&${[filters(q), more].filter(Boolean).join('&')}`;

const byActor = (q, rows) =>
  q.actor ? rows.filter(e => e.actor.name?.toLowerCase().includes(q.actor.toLowerCase()) || e.actor.guid === q.actor) : rows;

// What was searched for an actor, whom the API cannot filter by: pages of events, newest first, and the hits among them.
const begin = q => ({ q, hits: [], searched: 0, total: 0, oldest: null, next: path(q, `per_page=${chunk}`) });

// Searches on until there are enough hits, or no more events.
async function find(s, enough, signal) {
  while (s.next && s.hits.length < enough) {
    const { resources, pagination } = await get(s.next, { signal });
    const known = new Set(s.hits.map(e => e.guid)); // events that came meanwhile move the others on
    s.hits.push(...byActor(s.q, resources).filter(e => !known.has(e.guid)));
    s.searched += resources.length;
    s.total = Math.max(s.searched, pagination.total_results);
    s.oldest = resources.at(-1)?.created_at ?? s.oldest;
    const href = pagination.next?.href;
    s.next = href ? new URL(href).pathname + new URL(href).search : null;
  }
}

// A page of events. kept is the last search of an actor, which older pages go on with.
async function load(q, page, kept, signal) {
  if (!q.actor) return get(path(q, `per_page=${size}&page=${page}`), { signal });
  const same = kept.current && JSON.stringify(kept.current.q) === JSON.stringify(q);
  const s = page > 1 && same ? kept.current : begin(q);
  await find(s, page * size + 1, signal);
  kept.current = s;
  const { searched, total, oldest } = s;
  return {
    resources: s.hits.slice((page - 1) * size, page * size),
    pagination: { total_results: s.hits.length, total_pages: Math.ceil(s.hits.length / size) },
    search: { searched, total, oldest, whole: !s.next },
  };
}

/** Says how far an actor was searched for. */
function Searched({ actor, of, hits }) {
  if (!of) return null;
  const { searched, total, oldest, whole } = of,
    all = count(total, 'event').replace(/\d+/, n => Number(n).toLocaleString('en'));
  return html`
    <p class="note" role="status">
      ${whole
        ? `All ${all} that the other filters leave were searched: ${count(hits, 'event')} by ${actor}.`
        : `Only the newest ${searched.toLocaleString('en')} of ${all} were searched, back to ${stamp(oldest)}. Older searches on.`}
      ${' The API has no filter by actor.'}
    </p>
  `;
}

const jq = '.resources[] | [.created_at, .type, .actor.name, .target.name] | @csv';

/** The screen /audit. */
export default function Audit() {
  const query = place.value.query,
    q = Object.fromEntries(names.map(n => [n, query.get(n) ?? '']));
  const page = Number(query.get('page')) || 1;
  const kept = useRef(null);
  const events = useResource(signal => load(q, page, kept, signal), [q, page], page === 1 ? ofKind('event') : undefined);
  const total = events.data?.pagination.total_results,
    pages = events.data?.pagination.total_pages ?? 1,
    search = events.data?.search;
  const types = useMemo(() => [...new Set((events.data?.resources ?? []).map(e => e.type))].sort(), [events.data]);
  return html`
    <${Head} title="Audit" note=${events.data && !search && html`<span class="muted" role="status">${count(total, 'event')}</span>`}>
      <${Button} run=${() => download(q)}>Export as CSV<//>
      <${Commands} of="audit events" lines=${[['Export as CSV', `cf curl "${path(q, 'per_page=5000')}" | jq -r '${jq}'`]]} />
    <//>
    <${Filters} q=${q} types=${types} />
    <${Waiting} of=${events} rows=${8} />
    <${Searched} actor=${q.actor} of=${search} hits=${total} />
    ${events.data &&
    (total
      ? html`<${Events} rows=${events.data.resources} />`
      : html`<${Empty} title="No event is like that.">Change the filter. Events are kept for 31 days.<//>`)}
    ${pages > 1 &&
    html`
      <nav class="pages" aria-label="Pages">
        <button type="button" disabled=${page <= 1} onClick=${() => setQuery({ page: page > 2 ? String(page - 1) : null })}>Newer</button>
        <span class="muted">Page ${page}${search && !search.whole ? '' : ` of ${pages}`}</span>
        <button type="button" disabled=${page >= pages} onClick=${() => setQuery({ page: String(page + 1) })}>Older</button>
      </nav>
    `}
    <${Lines} lines=${[`cf curl "${path(q, '').replace(/&$/, '')}"`]} />
  `;
}

function Filters({ q, types }) {
  const set = name => value => setQuery({ [name]: value, page: null });
  return html`
    <form class="fields filters" onSubmit=${e => e.preventDefault()} role="search" aria-label="Audit events">
      <${Field}
        label="Type"
        type="search"
        list="audit-types"
        placeholder="audit.app.update"
        value=${q.type}
        onValue=${set('type')}
        spellcheck=${false}
      />
      <datalist id="audit-types">${types.map(t => html`<option key=${t} value=${t} />`)}</datalist>
      <${Field} label="Actor" placeholder="admin" value=${q.actor} onValue=${set('actor')} spellcheck=${false} />
      <${Field} label="Target's GUID" value=${q.target} onValue=${set('target')} spellcheck=${false} />
      <${Field} label="Since" type="datetime-local" value=${q.since} onValue=${set('since')} />
      <${Field} label="Until" type="datetime-local" value=${q.until} onValue=${set('until')} />
      ${names.some(n => q[n]) &&
      html`
        <button type="button" onClick=${() => setQuery({ ...Object.fromEntries(names.map(n => [n, null])), page: null })}>Clear</button>
      `}
    </form>
  `;
}

const screens = { app: '/apps/', service_instance: '/services/instances/', organization: '/orgs/', space: '/spaces/' };

function target(e) {
  const to = screens[e.target.type],
    text = e.target.name || e.target.guid;
  return html`
    ${to && !e.type.includes('.delete')
      ? html`<${Link} to=${to + e.target.guid} title=${e.target.guid}>${text}<//>`
      : html`<span title=${e.target.guid}>${text}</span>`}
    <span class="sub">${e.target.type}</span>
  `;
}

function Data({ data }) {
  const [open, setOpen] = useState(false);
  if (!data || !Object.keys(data).length) return html`<span class="muted">–</span>`;
  return html`
    <details class="what" onToggle=${e => setOpen(e.currentTarget.open)}>
      <summary>Details</summary>
      ${open && html`<pre>${JSON.stringify(data, null, 2)}</pre>`}
    </details>
  `;
}

function Events({ rows }) {
  const columns = [
    { title: 'Time', cell: e => html`<time datetime=${e.created_at} class="nowrap">${stamp(e.created_at)}</time>` },
    {
      title: 'Type',
      cell: e => html`
        <button type="button" class="link mono" onClick=${() => setQuery({ type: e.type, page: null })} aria-label=${'Only ' + e.type}>
          ${e.type}
        </button>
      `,
    },
    {
      title: 'Actor',
      cell: e => html`
        <button
          type="button"
          class="link"
          onClick=${() => setQuery({ actor: e.actor.name || e.actor.guid, page: null })}
          aria-label=${'Only by ' + (e.actor.name || e.actor.guid)}
        >
          ${e.actor.name || e.actor.guid}
        </button>
        <span class="sub">${e.actor.type}</span>
      `,
    },
    { title: 'Target', cell: target },
    { title: 'Data', cell: e => html`<${Data} data=${e.data} />` },
  ];
  return html`<${Table} caption="Audit events" columns=${columns} rows=${rows} kind="audit" />`;
}

// A text that begins like a formula would be one in a spreadsheet.
const cell = v => {
  const t = String(v ?? '');
  return '"' + (/^[=+\-@\t\r]/.test(t) ? "'" : '') + t.replaceAll('"', '""') + '"';
};

/** All events that the filter leaves, as CSV. */
export function csv(rows) {
  const head = [
    'created_at',
    'type',
    'actor_type',
    'actor_name',
    'actor_guid',
    'target_type',
    'target_name',
    'target_guid',
    'space_guid',
    'organization_guid',
    'data',
  ];
  return (
    [
      head.join(','),
      ...rows.map(e =>
        [
          e.created_at,
          e.type,
          e.actor.type,
          e.actor.name,
          e.actor.guid,
          e.target.type,
          e.target.name,
          e.target.guid,
          e.space?.guid,
          e.organization?.guid,
          JSON.stringify(e.data),
        ]
          .map(cell)
          .join(','),
      ),
    ].join('\r\n') + '\r\n'
  );
}

async function download(q) {
  const { resources } = await list(path(q, 'per_page=5000'));
  save('audit-events.csv', [csv(byActor(q, resources))], 'text/csv');
}
