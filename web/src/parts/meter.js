// How much is used of what there is: a bar with its numbers in words.
import { html, cls } from '../lib/html.js';

/**
 * @param {{label: string, used: number, total: number|null, text: string, warn?: number}} p
 *   total null: there is no limit; warn is the share from which it is too much
 */
export function Meter({ label, used, total, text, warn = 0.9 }) {
  const share = total ? Math.min(1, Math.max(0, used / total)) : 0;
  const percent = Math.round(share * 100);
  return html`
    <div class="meter">
      <div class="meter-head"><span>${label}</span><span class="muted">${text}</span></div>
      ${total !== null &&
      html`
        <div
          class="bar"
          role="meter"
          aria-label=${label}
          aria-valuenow=${percent}
          aria-valuemin="0"
          aria-valuemax="100"
          aria-valuetext=${text}
        >
          <div class=${cls('fill', share >= warn && 'bad')} style=${{ width: percent + '%' }}></div>
        </div>
      `}
    </div>
  `;
}
