// The same on the command line, beside the buttons that act at once: one small button, which lists what each does.
import { html } from '../lib/html.js';
import { Icon, Line } from './basic.js';
import { open, Sheet } from './dialog.js';

/**
 * The button that shows actions as commands.
 * @param {{of: string, lines: Array<[string, string]|false|null|undefined|''>}} p
 *   of names what they act on; lines are the names of the buttons, and the command that does the same
 */
export function Commands({ of, lines }) {
  const show = () => open(Listing, { title: 'On the command line', of, lines: lines.filter(Boolean) });
  return html`
    <button
      type="button"
      class="quiet prompt"
      title="The same on the command line"
      aria-label=${'On the command line: ' + of}
      onClick=${show}
    >
      <${Icon} name="prompt" />
    </button>
  `;
}

function Listing({ of, lines, close }) {
  return html`
    <${Sheet} title="On the command line" close=${close}>
      <p class="muted">${of}</p>
      <dl class="commands">
        ${lines.map(
          ([label, text]) => html`
            <div key=${label}>
              <dt>${label}</dt>
              <dd><${Line} text=${text} /></dd>
            </div>
          `,
        )}
      </dl>
    <//>
  `;
}
