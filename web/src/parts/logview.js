// A view of very many log lines: only those on the screen are in the page.
import { html, useRef, useEffect, useLayoutEffect, useState } from '../lib/html.js';
import { spans } from '../lib/ansi.js';
import { jsonOf } from '../lib/logs.js';
import { clock, stamp, ago } from '../lib/format.js';
import { Icon } from './basic.js';

const height = 19;

// The place of each line in rows, where lines may take several: prefix sums. null where each takes one.
function layout(lines, wrap, columns, open) {
  if (!wrap && !open.size) return null;
  const sums = new Float64Array(lines.length + 1);
  for (let n = 0; n < lines.length; n++) {
    let rows = wrap ? Math.max(1, Math.ceil(lines[n].text.length / columns)) : 1;
    if (open.has(lines[n].seq)) rows += folded(lines[n]).split('\n').length;
    sums[n + 1] = sums[n] + rows;
  }
  return sums;
}

const folded = line => JSON.stringify(jsonOf(line), null, 2) ?? '';

function find(sums, row) {
  let low = 0,
    high = sums.length - 1;
  while (low < high) {
    const mid = (low + high) >> 1;
    if (sums[mid + 1] <= row) low = mid + 1;
    else high = mid;
  }
  return low;
}

// How many characters of the message fit beside what stands before it.
function columnsOf(box, probe, before) {
  if (!box || !probe) return 120;
  return Math.max(20, Math.floor((box.clientWidth - before - 24) / (probe.getBoundingClientRect().width / 100)));
}

/**
 * @param {{lines: any[], version: number, wrap: boolean, relative: boolean, follow: boolean, onFollow: (on: boolean) => void,
 *   mark: RegExp|null, at: string|null, onAt?: (stamp: string) => void, until?: number|null, label: string, plain?: boolean}} p
 * version is another number when lines have changed; at is the timestamp of the line that is marked, onAt marks one;
 * until is the number of a line below which others were put: what is before it comes into sight
 */
export function LogView({ lines, version, wrap, relative, follow, onFollow, mark, at, onAt, until, label, plain }) {
  const box = useRef(),
    probe = useRef(),
    own = useRef(-1);
  const [top, setTop] = useState(0);
  const [size, setSize] = useState({ height: 600, columns: 120 });
  const [open, setOpen] = useState(() => new Set());
  useEffect(() => {
    const measure = () =>
      box.current && setSize({ height: box.current.clientHeight, columns: columnsOf(box.current, probe.current, plain ? 0 : 210) });
    const watch = new ResizeObserver(measure);
    watch.observe(box.current);
    return () => watch.disconnect();
  }, []);
  const sums = layout(lines, wrap, size.columns, open);
  const rows = sums ? sums[lines.length] : lines.length;
  const topOf = n => (sums && n >= 0 ? sums[n] : n) * height;
  const first = Math.max(0, (sums ? find(sums, Math.floor(top / height)) : Math.floor(top / height)) - 5);
  const visible = Math.ceil(size.height / height) + 10;
  const last = Math.min(lines.length, sums ? find(sums, Math.floor(top / height) + visible) + 1 : first + visible);
  useLayoutEffect(() => {
    if (follow && box.current) {
      box.current.scrollTop = box.current.scrollHeight;
      own.current = box.current.scrollTop;
    }
  }, [version, follow, rows, size.height]);
  useEffect(() => {
    if (!at) return;
    const y = topOf(lines.findIndex(l => l.stamp === at));
    const b = box.current;
    if (y >= 0 && (y < b.scrollTop || y + height > b.scrollTop + b.clientHeight)) b.scrollTop = y - size.height / 3;
  }, [at, lines.length > 0]);
  useEffect(() => {
    const y = topOf(lines.findIndex(l => l.seq >= until));
    if (until !== null && until !== undefined && y >= 0) box.current.scrollTop = y - box.current.clientHeight + 3 * height;
  }, [until]);
  const scrolled = () => {
    const b = box.current;
    setTop(b.scrollTop);
    if (b.scrollTop === own.current) return; // not the user
    own.current = -1;
    const bottom = b.scrollHeight - b.scrollTop - b.clientHeight < height * 2;
    if (bottom !== follow) onFollow(bottom);
  };
  const toggle = seq => {
    const next = new Set(open);
    if (!next.delete(seq)) next.add(seq);
    setOpen(next);
  };
  const before = (sums ? sums[Math.min(first, lines.length)] : first) * height;
  return html`
    <div class=${'log' + (wrap ? ' wrap' : '')} ref=${box} onScroll=${scrolled} tabindex="0" role="log" aria-live="off" aria-label=${label}>
      <span class="probe" ref=${probe} aria-hidden="true">${'0'.repeat(100)}</span>
      <div class="log-all" style=${{ height: rows * height + 'px' }}>
        <div class="log-seen" style=${{ transform: `translateY(${before}px)` }}>
          ${lines
            .slice(first, last)
            .map(
              l => html`
                <${Row}
                  key=${l.seq}
                  line=${l}
                  relative=${relative}
                  mark=${mark}
                  on=${at === l.stamp}
                  open=${open.has(l.seq)}
                  toggle=${toggle}
                  plain=${plain}
                  onAt=${onAt}
                />
              `,
            )}
        </div>
      </div>
    </div>
  `;
}

// The time marks its line: for the mouse; with the keyboard, Copy link marks the last one.
function When({ line, relative, onAt }) {
  const text = relative ? ago(line.time) : clock(line.time);
  if (!onAt) return html`<span class="when" title=${stamp(line.time)}>${text}</span>`;
  const title = `${stamp(line.time)}. Click to mark the line: the link leads to it.`;
  return html`<button type="button" class="when" tabindex="-1" title=${title} onClick=${() => onAt(line.stamp)}>${text}</button>`;
}

function Row({ line, relative, mark, on, open, toggle, plain, onAt }) {
  const json = line.text.includes('{') && jsonOf(line);
  return html`
    <div class=${'l ' + line.source + (line.err ? ' err' : '') + (on ? ' on' : '')}>
      ${!plain &&
      html`
        <${When} line=${line} relative=${relative} onAt=${onAt} />
        <span class="src" title=${line.type}>
          ${line.source}
          ${line.instance !== '' && line.source !== 'API' ? '/' + line.instance : ''}
        </span>
      `}
      <span class="msg">
        ${json &&
        html`
          <button type="button" class="fold" aria-expanded=${open} aria-label="JSON of this line" onClick=${() => toggle(line.seq)}>
            <${Icon} name=${open ? 'none' : 'plus'} />
          </button>
        `}
        ${spans(line.raw).map((s, n) => html`<span key=${n} class=${s.cls}>${marked(s.text, mark)}</span>`)}
      </span>
      ${open && html`<pre class="json">${folded(line)}</pre>`}
    </div>
  `;
}

// The text with what the expression found in <mark>.
function marked(text, mark) {
  if (!mark) return text;
  const out = [];
  let from = 0;
  mark.lastIndex = 0; // matchAll begins where the last test ended
  for (const m of text.matchAll(mark)) {
    if (!m[0]) continue;
    out.push(text.slice(from, m.index), html`<mark>${m[0]}</mark>`);
    from = m.index + m[0].length;
  }
  return from ? [...out, text.slice(from)] : text;
}
