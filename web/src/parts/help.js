// The keys that do something now.
import { html } from '../lib/html.js';
import { bound } from '../lib/keys.js';
import { Sheet } from './dialog.js';

const written = { 'mod+k': 'Ctrl K' };

export function Help({ close }) {
  const keys = bound().map(([key, label]) => [written[key] ?? key, label]);
  keys.push(['Enter', 'Open what has the focus'], ['Esc', 'Close']);
  return html`
    <${Sheet} title="Keyboard" close=${close}>
      <dl class="keys">
        ${keys.map(
          ([key, label]) => html`
            <div key=${key}><dt>${key.split(' ').map(k => html`<kbd key=${k}>${k}</kbd>`)}</dt><dd>${label}</dd></div>
          `,
        )}
      </dl>
    <//>
  `;
}
