// Differences, as lines that were removed and added.
import { html } from '../lib/html.js';

const text = v => (typeof v === 'string' ? v : JSON.stringify(v, null, 2));

/**
 * @param {{title: string, changes: Array<{key: string, old: any, new: any}>, masked?: boolean}} p
 *   masked hides the values, not that they differ
 */
export function Diff({ title, changes, masked }) {
  if (!changes.length) return null;
  const line = (sign, c, v) => html`<div class=${sign}>${c.key}${masked ? ' = ••••••' : ': ' + text(v)}</div>`;
  return html`
    <div class="diff" role="group" aria-label=${title}>
      <div class="key">${title}</div>
      ${changes.map(c => html`${c.old !== undefined && line('del', c, c.old)}${c.new !== undefined && line('add', c, c.new)}`)}
    </div>
  `;
}
