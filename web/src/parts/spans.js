// The time that charts show: chosen by chips, and kept in the address.
import { html } from '../lib/html.js';
import { place, setQuery } from '../lib/router.js';

// The length and the step of each in seconds.
const spans = {
  '15m': [900, 15],
  '1h': [3600, 30],
  '6h': [21600, 120],
  '24h': [86400, 600],
  '7d': [604800, 3600],
  '30d': [2592000, 10800],
};
const usual = '15m';

/** The span that the address names. @returns {{name: string, length: number, step: number}} */
export function useSpan() {
  const asked = place.value.query.get('span');
  const name = spans[asked] ? asked : usual,
    [length, step] = spans[name];
  return { name, length, step };
}

/** The chips. */
export function Spans() {
  const { name } = useSpan();
  return html`
    <div class="chips" role="group" aria-label="Time">
      ${Object.keys(spans).map(
        s => html`
          <button key=${s} type="button" aria-pressed=${s === name} onClick=${() => setQuery({ span: s === usual ? null : s })}>
            ${s}
          </button>
        `,
      )}
    </div>
  `;
}
