// An app's scaling policy, and what it has done.
import { html, useState } from '../lib/html.js';
import { get, call } from '../lib/api.js';
import { useResource, ofApp } from '../lib/resource.js';
import { quoted, duration, stamp } from '../lib/format.js';
import { Problem, Skeleton, Empty, Lines, State, Field, Section } from '../parts/basic.js';
import { open, confirm, Sheet } from '../parts/dialog.js';

async function load(app, signal) {
  const history = get(`/v1/apps/${app.guid}/scaling_histories?results-per-page=50`, { signal });
  const policy = await get(`/v1/apps/${app.guid}/policy`, { signal }).catch(e => {
    if (e.status !== 404) throw e;
    return null;
  });
  return { policy, history: await history };
}

const pathOf = app => `/v1/apps/$(cf app --guid ${quoted(app.name)})`;
const setLine = app => `cf curl -X PUT "${pathOf(app)}/policy" -d @policy.json`;

const example = {
  instance_min_count: 1,
  instance_max_count: 4,
  scaling_rules: [
    { metric_type: 'cpuutil', operator: '>=', threshold: 80, adjustment: '+1' },
    { metric_type: 'cpuutil', operator: '<', threshold: 20, adjustment: '-1' },
  ],
};

/** The tab Autoscaling. */
export default function Autoscaling({ app, may }) {
  const of = useResource(signal => load(app, signal), [app.guid], ofApp(app.guid, 'process event'));
  const { policy, history } = of.data ?? {};
  const edit = () => open(Edit, { title: 'Scaling policy', wide: true, app, policy, reload: of.reload });
  const remove = () =>
    confirm({
      title: 'Delete the scaling policy?',
      text: `${app.name} keeps the number of instances that it has now. The history stays.`,
      submit: 'Delete the policy',
      lines: [`cf curl -X DELETE "${pathOf(app)}/policy"`],
      run: async () => {
        await call('DELETE', `/v1/apps/${app.guid}/policy`);
        await of.reload();
      },
    });
  return html`
    <div class="section-head">
      <h2>Autoscaling</h2>
      ${of.data &&
      may.edit &&
      html`
        <div class="actions">
          ${policy && html`<button type="button" onClick=${remove}>Delete the policy…</button>`}
          <button type="button" class="primary" onClick=${edit}>${policy ? 'Change the policy…' : 'Set a policy…'}</button>
        </div>
      `}
    </div>
    <${Problem} error=${of.error} />
    ${!of.data && !of.error && html`<${Skeleton} />`}
    ${of.data &&
    !policy &&
    html`
      <${Empty} title="This app has no scaling policy." line=${setLine(app)}>
        With one it gets more or fewer instances by what is measured of it, and by the time.
      <//>
    `}
    ${policy && html`<${Policy} policy=${policy} />`}
    ${history && (policy || history.resources.length > 0) && html`<${History} history=${history} />`}
    <${Lines}
      lines=${[
        `cf curl "${pathOf(app)}/policy"`,
        `cf curl "${pathOf(app)}/scaling_histories"`,
        may.edit && setLine(app),
        may.edit && policy && `cf curl -X DELETE "${pathOf(app)}/policy"`,
      ]}
    />
  `;
}

function Policy({ policy }) {
  const rules = policy.scaling_rules ?? [];
  return html`
    <dl class="facts">
      <div>
        <dt>Instances</dt>
        <dd>${policy.instance_min_count} to ${policy.instance_max_count}</dd>
      </div>
    </dl>
    ${rules.length > 0 &&
    html`
      <div class="scroll">
        <table class="cards">
          <caption class="hidden">Rules</caption>
          <thead>
            <tr>
              <th scope="col">When</th>
              <th scope="col">For</th>
              <th scope="col">Instances</th>
              <th scope="col">Cool-down</th>
            </tr>
          </thead>
          <tbody>
            ${rules.map(
              (r, n) => html`
                <tr key=${n}>
                  <th scope="row">${r.metric_type} ${r.operator} ${r.threshold}</th>
                  <td data-label="For">${duration(r.breach_duration_secs ?? 120)}</td>
                  <td data-label="Instances">${r.adjustment}</td>
                  <td data-label="Cool-down">${duration(r.cool_down_secs ?? 300)}</td>
                </tr>
              `,
            )}
          </tbody>
        </table>
      </div>
    `}
    <${Schedules} of=${policy.schedules} />
  `;
}

const weekdays = ['', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun'];

function recurs(s) {
  const days = s.days_of_week?.map(d => weekdays[d] ?? d).join(', ') ?? s.days_of_month?.map(d => 'day ' + d).join(', ') ?? '';
  const dates = s.start_date || s.end_date ? ` (${s.start_date ?? ''} to ${s.end_date ?? ''})` : '';
  return `${days} ${s.start_time} to ${s.end_time}${dates}`;
}

function Schedules({ of }) {
  const all = [
    ...(of?.specific_date ?? []).map(s => [`${s.start_date_time} to ${s.end_date_time}`, s]),
    ...(of?.recurring_schedule ?? []).map(s => [recurs(s), s]),
  ];
  if (!all.length) return null;
  return html`
    <${Section} title=${'Schedules, ' + of.timezone}>
      <div class="scroll">
        <table class="cards">
          <caption class="hidden">Schedules</caption>
          <thead>
            <tr>
              <th scope="col">When</th>
              <th scope="col">Instances</th>
              <th scope="col">At the start at least</th>
            </tr>
          </thead>
          <tbody>
            ${all.map(
              ([when, s], n) => html`
                <tr key=${n}>
                  <th scope="row">${when}</th>
                  <td data-label="Instances">${s.instance_min_count} to ${s.instance_max_count}</td>
                  <td data-label="At the start at least">${s.initial_min_instance_count ?? '–'}</td>
                </tr>
              `,
            )}
          </tbody>
        </table>
      </div>
    <//>
  `;
}

const types = ['by a rule', 'by a schedule'];
const outcomes = ['SUCCEEDED', 'FAILED', 'IGNORED'];

function History({ history }) {
  const rows = history.resources,
    more = history.total_results - rows.length;
  return html`
    <${Section} title="History">
      ${rows.length === 0 && html`<p class="muted">Nothing was scaled yet.</p>`}
      ${rows.length > 0 &&
      html`
        <div class="scroll">
          <table class="cards">
            <caption class="hidden">History</caption>
            <thead>
              <tr>
                <th scope="col">When</th>
                <th scope="col">State</th>
                <th scope="col">Instances</th>
                <th scope="col">Why</th>
              </tr>
            </thead>
            <tbody>
              ${rows.map(
                e => html`
                  <tr key=${e.timestamp}>
                    <th scope="row">${stamp(e.timestamp / 1e6)}</th>
                    <td data-label="State"><${State} value=${outcomes[e.status] ?? e.status} title=${types[e.scaling_type]} /></td>
                    <td data-label="Instances">${e.old_instances} → ${e.new_instances}</td>
                    <td data-label="Why">
                      ${e.reason || e.message}
                      ${e.error && html`<span class="sub bad">${e.error}</span>`}
                    </td>
                  </tr>
                `,
              )}
            </tbody>
          </table>
        </div>
      `}
      ${more > 0 && html`<p class="note">The newest ${rows.length} of ${history.total_results}.</p>`}
    <//>
  `;
}

function Edit({ app, policy, reload, close }) {
  const [text, setText] = useState(() => JSON.stringify(policy ?? example, null, 2));
  let json = null,
    wrong = null;
  try {
    json = JSON.parse(text);
  } catch (e) {
    wrong = e.message;
  }
  const run = async () => {
    await call('PUT', `/v1/apps/${app.guid}/policy`, { json });
    await reload();
  };
  return html`
    <${Sheet}
      title=${`Scaling policy of ${app.name}`}
      close=${close}
      submit="Set the policy"
      run=${run}
      lines=${[setLine(app)]}
      disabled=${!json}
    >
      <${Field}
        label="Policy"
        as="textarea"
        rows="18"
        spellcheck=${false}
        value=${text}
        onValue=${setText}
        error=${wrong}
        note="App Autoscaler's JSON: limits, scaling_rules, schedules"
      />
    <//>
  `;
}
