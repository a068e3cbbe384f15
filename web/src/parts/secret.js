// Secrets: masked until somebody asks, and copied without being shown.
import { html, useState } from '../lib/html.js';
import { Button } from './basic.js';
import { Commands } from './commands.js';

const text = value => (typeof value === 'string' ? value : JSON.stringify(value, null, 2));

/**
 * Credentials that are loaded when they are revealed; line does so too.
 * @param {{what: string, line: string, load: () => Promise<object>}} p
 */
export function Secrets({ what, line, load }) {
  const [values, setValues] = useState(null);
  if (!values)
    return html`
      <div class="secrets">
        <span class="mono muted" aria-hidden="true">••••••••</span>
        <${Button} run=${async () => setValues((await load()) ?? {})} aria-label=${'Reveal ' + what}>Reveal<//>
        <${Commands} of=${what} lines=${[['Reveal', line]]} />
      </div>
    `;
  const names = Object.keys(values);
  return html`
    <div class="secrets open">
      <dl class="pairs">${names.map(n => html`<div key=${n}><dt>${n}</dt><dd class="mono pre">${text(values[n])}</dd></div>`)}</dl>
      ${!names.length && html`<p class="muted">There are none.</p>`}
      <button type="button" onClick=${() => setValues(null)} aria-label=${'Hide ' + what}>Hide</button>
    </div>
  `;
}

/** What is shown of a text only on request. */
export function Masked({ what, value }) {
  const [shown, show] = useState(false);
  if (!value) return html`<span class="muted">none</span>`;
  return html`
    <span class="mono pre">${shown ? value : '••••••••'}</span> <button
      type="button"
      class="quiet"
      onClick=${() => show(!shown)}
      aria-label=${(shown ? 'Hide ' : 'Reveal ') + what}
    >
      ${shown ? 'Hide' : 'Reveal'}
    </button>
  `;
}
