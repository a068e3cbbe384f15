// An app's audit events: who did what and when.
import { html, useState } from '../lib/html.js';
import { get } from '../lib/api.js';
import { useResource, ofApp } from '../lib/resource.js';
import { quoted } from '../lib/format.js';
import { Time, Problem, Skeleton, Empty, Lines, State } from '../parts/basic.js';

const size = 50;

/** What an event says beyond its type, in one line. */
export function summary(event) {
  const d = event.data ?? {};
  if (d.exit_description || d.reason)
    return `instance ${d.index}: ${d.exit_description || d.reason}${d.crash_count > 1 ? ` (${d.crash_count} times)` : ''}`;
  const text = JSON.stringify(d.request ?? d);
  return text === '{}' ? '' : text;
}

/** A table of audit events. @param {{events: any[], target?: boolean}} p */
export function Events({ events, target }) {
  return html`
    <div class="scroll">
      <table class="cards">
        <caption class="hidden">Events</caption>
        <thead>
          <tr>
            <th scope="col">Event</th>
            <th scope="col">When</th>
            ${target && html`<th scope="col">Target</th>`}
            <th scope="col">By</th>
            <th scope="col">What</th>
          </tr>
        </thead>
        <tbody>
          ${events.map(
            e => html`
              <tr key=${e.guid} data-row>
                <th scope="row" class="event">
                  <span class=${/crash|unplaced/.test(e.type) ? 'bad' : ''}>${e.type.replace(/^audit\./, '')}</span>
                </th>
                <td data-label="When"><${Time} at=${e.created_at} /></td>
                ${target && html`<td data-label="Target">${e.target.name || e.target.type}</td>`}
                <td data-label="By" class="nowrap">${e.actor.name || e.actor.type}</td>
                <td data-label="What"><${What} event=${e} /></td>
              </tr>
            `,
          )}
        </tbody>
      </table>
    </div>
  `;
}

function What({ event }) {
  const text = summary(event);
  if (text.length < 100) return html`<span class="mono">${text}</span>`;
  return html`
    <details class="what"><summary class="mono">${text.slice(0, 90)}…</summary><pre>${JSON.stringify(event.data, null, 2)}</pre></details>
  `;
}

/** The tab Events. */
export default function AppEvents({ app }) {
  const [pages, setPages] = useState(1);
  const events = useResource(
    async signal => {
      const all = await Promise.all(
        Array.from({ length: pages }, (_, n) =>
          get(`/v3/audit_events?target_guids=${app.guid}&order_by=-created_at&per_page=${size}&page=${n + 1}`, { signal }),
        ),
      );
      return { total: all[0].pagination.total_results, rows: all.flatMap(p => p.resources) };
    },
    [app.guid, pages],
    ofApp(app.guid, 'event'),
  );
  const { rows, total } = events.data ?? {};
  return html`
    <${Problem} error=${events.error} />
    ${!rows && !events.error && html`<${Skeleton} />`}
    ${rows?.length === 0 && html`<${Empty} title="No event yet." />`}
    ${rows?.length > 0 &&
    html`
      <${Events} events=${rows} />
      ${rows.length < total && html`<button type="button" onClick=${() => setPages(pages + 1)}>Show more of ${total}</button>`}
    `}
    <${Lines} lines=${[`cf events ${quoted(app.name)}`]} />
  `;
}
