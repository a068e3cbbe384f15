// A sparkline: the course of a number, without axes.
import { html } from '../lib/html.js';

/** @param {{values: number[]|undefined, label: string}} p label says what it is, and its newest value */
export function Spark({ values, label }) {
  if (!values || values.length < 2) return html`<span class="spark"></span>`;
  const max = Math.max(...values, 1e-9);
  const points = values.map((v, n) => `${((n / (values.length - 1)) * 84).toFixed(1)} ${(21 - (v / max) * 19).toFixed(1)}`);
  const line = 'M' + points.join('L');
  return html`
    <svg class="spark" viewBox="0 0 84 22" preserveAspectRatio="none" role="img" aria-label=${label}>
      <path class="area" d=${line + 'L84 22L0 22Z'} />
      <path d=${line} />
    </svg>
  `;
}
