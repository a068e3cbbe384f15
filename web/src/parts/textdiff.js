// What changed between two texts, by line, with some lines around.
import { html, useMemo } from '../lib/html.js';

const around = 3,
  most = 4e6;

/** The lines of both texts: [sign, line], where sign is ' ', '-' or '+'. */
export function lineDiff(from, to) {
  const a = from.split('\n'),
    b = to.split('\n');
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  const middle = common(a.slice(head, a.length - tail), b.slice(head, b.length - tail));
  return [...a.slice(0, head).map(l => [' ', l]), ...middle, ...a.slice(a.length - tail).map(l => [' ', l])];
}

// The longest common lines; of very long texts all lines count as changed.
function common(a, b) {
  if (a.length * b.length > most) return [...a.map(l => ['-', l]), ...b.map(l => ['+', l])];
  const width = b.length + 1,
    length = new Uint32Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--)
      length[i * width + j] =
        a[i] === b[j] ? length[(i + 1) * width + j + 1] + 1 : Math.max(length[(i + 1) * width + j], length[i * width + j + 1]);
  }
  const out = [];
  let i = 0,
    j = 0;
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      out.push([' ', a[i]]);
      i++;
      j++;
    } else if (j >= b.length || (i < a.length && length[(i + 1) * width + j] >= length[i * width + j + 1])) out.push(['-', a[i++]]);
    else out.push(['+', b[j++]]);
  }
  return out;
}

const kinds = { '-': 'del', '+': 'add', ' ': 'same' };

/** @param {{from: string, to: string}} p */
export function TextDiff({ from, to }) {
  const lines = useMemo(() => (from ? lineDiff(from, to) : to.split('\n').map(l => ['+', l])), [from, to]);
  const near = lines.map((_, n) => lines.slice(Math.max(0, n - around), n + around + 1).some(([s]) => s !== ' '));
  if (!near.includes(true)) return html`<p class="muted" role="status">Nothing changes in the manifest.</p>`;
  return html`
    <div class="diff textdiff" role="region" tabindex="0" aria-label="Changes">
      ${lines.map(([sign, line], n) =>
        near[n] ? html`<div key=${n} class=${kinds[sign]}>${line || ' '}</div>` : near[n - 1] && html`<div key=${n} class="key">…</div>`,
      )}
    </div>
  `;
}
