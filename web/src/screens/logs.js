// The log of an app or a service instance: live and history, filtered by source, instance and expression.
import { html, useState, useEffect, useMemo, useRef } from '../lib/html.js';
import { Ring, follow, search } from '../lib/logs.js';
import { place, setQuery } from '../lib/router.js';
import { setting, utc } from '../lib/settings.js';
import { quoted, count } from '../lib/format.js';
import { useKeys } from '../lib/keys.js';
import { save } from '../lib/save.js';
import { Problem, Lines, Button, Check, Icon, copyText } from '../parts/basic.js';
import { LogView } from '../parts/logview.js';
import { Commands } from '../parts/commands.js';
import { announce } from '../parts/live.js';

const wrap = setting('logs.wrap', false),
  relative = setting('logs.relative', false),
  hiddenKept = setting('logs.hidden', []);

/** An expression that is searched for; one that is none is searched for as text. error says why. */
export function expression(text) {
  if (!text) return { re: null };
  try {
    return { re: new RegExp(text, 'gi') };
  } catch (e) {
    return { re: new RegExp(text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'), 'gi'), error: e.message };
  }
}

// The lines of the ring that pass, kept up to date as lines come: only new ones are looked at.
class Filtered {
  constructor(ring) {
    this.ring = ring;
    this.lines = [];
    this.seen = 0;
    this.key = null;
  }
  update(key, pass) {
    if (key !== this.key) {
      this.key = key;
      this.lines = [];
      this.seen = 0;
      this.first = 0;
    }
    const all = this.ring.lines,
      oldest = all[0]?.seq ?? 0;
    if (this.first !== undefined && oldest < this.first) {
      this.lines = [];
      this.seen = -Infinity;
    }
    this.first = oldest;
    if (this.lines.length && this.lines[0].seq < oldest) this.lines.splice(0, this.lines.findIndex(l => l.seq >= oldest) >>> 0);
    let n = all.length;
    while (n > 0 && all[n - 1].seq > this.seen) n--;
    for (; n < all.length; n++) if (pass(all[n])) this.lines.push(all[n]);
    this.seen = all.at(-1)?.seq ?? this.seen;
    return this.lines;
  }
}

// The ring of a source and how it changes. Renders at most some times a second, however many lines come.
function useLog(guid, at) {
  const [version, setVersion] = useState(0);
  const [state, setState] = useState({ is: 'connecting' });
  const ring = useMemo(() => new Ring(), [guid]);
  useEffect(() => {
    let timer = null;
    const bump = () => {
      timer ??= setTimeout(() => {
        timer = null;
        setVersion(v => v + 1);
      }, 100);
    };
    const end = follow(guid, {
      ring,
      at,
      last: () => ring.lines.at(-1)?.stamp ?? null,
      lines: all => {
        ring.push(all);
        bump();
      },
      state: (is, error) => setState({ is, error }),
    });
    return () => {
      end();
      clearTimeout(timer);
    };
  }, [guid, at]);
  return { ring, version, state, bump: () => setVersion(v => v + 1) };
}

/** The tab Logs of an app. */
export default function Logs({ app }) {
  const lines = {
    follow: `cf logs ${quoted(app.name)}`,
    recent: `cf logs ${quoted(app.name)} --recent`,
    search: text => `cupola logs search ${quoted(app.name)} -e ${quoted('(?i)' + text)}`,
  };
  return html`<${Log} of=${app} lines=${lines} silent="The app has said nothing yet." />`;
}

/**
 * A log with its filters.
 * @param {{of: {guid: string, name: string}, lines: {follow: string, recent: string, search?: (text: string) => string}, silent: string}} p
 *   of is the source; lines are the commands that do the same, search by a text, if it is there; silent says that there is no line yet
 */
export function Log({ of, lines: same, silent }) {
  const query = place.value.query;
  const text = query.get('q') ?? '',
    instance = query.get('instance') ?? '',
    at = query.get('at');
  const hidden = query.has('hide') ? query.get('hide').split(',').filter(Boolean) : hiddenKept.value;
  const { ring, version, state, bump } = useLog(of.guid, at);
  const [following, setFollowing] = useState(!at);
  const [before, setBefore] = useState({}); // the first line before older ones were put above it
  const [found, setFound] = useState({ text: '', lines: [] }); // older lines that a search found: others are missing among them
  const paused = useRef(null);
  const filtered = useMemo(() => new Filtered(ring), [ring]);
  const { re, error } = useMemo(() => expression(text), [text]);
  const pass = l =>
    (instance === '' || (l.source === 'APP' && l.instance === instance)) &&
    !hidden.includes(l.source) &&
    (!re || ((re.lastIndex = 0), re.test(l.text)));
  const extra = text && found.text === text ? found.lines : [];
  const shown = filtered.update(`${text}|${instance}|${hidden}`, pass);
  const lines = extra.length ? [...extra.filter(pass), ...shown] : shown;
  if (following) paused.current = null;
  else paused.current ??= lines.at(-1)?.seq ?? 0;
  const news = paused.current === null ? 0 : lines.length - 1 - lines.findLastIndex(l => l.seq <= paused.current);
  const sources = [...ring.sources].filter(s => s[1]).sort(),
    instances = [...ring.instances].sort((a, b) => a - b);
  const hide = s => {
    const next = hidden.includes(s) ? hidden.filter(h => h !== s) : [...hidden, s];
    hiddenKept.value = next;
    setQuery({ hide: query.has('hide') ? next.join(',') : null });
  };
  const none = before.noneOf === text;
  const more = async () => {
    const first = extra[0] ?? ring.lines[0];
    const page = ring.without(await search(of.guid, first?.stamp, text));
    setFollowing(false);
    setBefore({ seq: first?.seq, noneOf: page.length ? null : text });
    if (!text) ring.unshift(page);
    else if (page.length) {
      let seq = first.seq - page.length;
      for (const l of page) l.seq = seq++;
      setFound({ text, lines: [...page, ...extra] });
    }
    announce(page.length ? `${count(page.length, 'older line')}` : 'There are no older lines');
    bump();
  };
  const marked = at && lines.find(l => l.stamp === at);
  const link = () => permalink(marked ?? (paused.current && lines.findLast(l => l.seq <= paused.current)) ?? lines.at(-1));
  useKeys([
    ['Space', 'Pause or follow the log', () => setFollowing(f => !f)],
    [
      'w',
      'Wrap lines',
      () => {
        wrap.value = !wrap.value;
      },
    ],
  ]);
  return html`
    <div class="logs">
      <div class="toolbar">
        <input
          type="search"
          aria-label="Expression that lines must have"
          placeholder="Filter: text or regular expression ( / )"
          value=${text}
          spellcheck=${false}
          autocomplete="off"
          onInput=${e => setQuery({ q: e.currentTarget.value })}
        />
        <span class="muted" role="status">
          ${text || instance || hidden.length ? `${lines.length} of ${count(ring.lines.length, 'line')}` : count(ring.lines.length, 'line')}
        </span>
        <div class="chips" role="group" aria-label="Sources">
          ${sources.map(
            ([s, n]) => html`
              <button key=${s} type="button" class=${'src ' + s} aria-pressed=${!hidden.includes(s)} onClick=${() => hide(s)}>
                ${s} <span>${n}</span>
              </button>
            `,
          )}
        </div>
        ${(instances.length > 0 || instance) &&
        html`
          <label class="check">
            Instance <select value=${instance} onChange=${e => setQuery({ instance: e.currentTarget.value })}>
              <option value="">all</option>
              ${instances.map(i => html`<option key=${i} value=${i}>${i}</option>`)}
            </select>
          </label>
        `}
        <${Check}
          label="Wrap"
          checked=${wrap.value}
          onValue=${v => {
            wrap.value = v;
          }}
        />
        <${Check}
          label="Relative time"
          checked=${relative.value}
          onValue=${v => {
            relative.value = v;
          }}
        />
        <div class="actions">
          <button type="button" aria-pressed=${!following} onClick=${() => setFollowing(f => !f)}>
            <${Icon} name=${following ? 'pause' : 'play'} />
            ${following ? 'Pause' : `Follow${news > 0 ? ` (${news} new)` : ''}`}
          </button>
          ${ring.lines.length > 0 &&
          html`
            <${Button} run=${more} disabled=${none} title=${text ? 'Search older lines, as far as they are kept' : 'Load older lines'}>
              ${none ? 'No older lines' : 'Older'}
            <//>
          `}
          <button type="button" onClick=${() => download(of, lines)}>Download</button>
          <${Copy} run=${link} title=${marked ? 'To the line that is marked' : 'To the last line'} />
          <${Commands}
            of=${'the log of ' + of.name}
            lines=${[
              [following ? 'Pause' : 'Follow', same.follow],
              ring.lines.length > 0 && ['Older', (text && same.search?.(text)) || same.recent],
              ['Download', same.recent + ' > ' + fileOf(of)],
            ]}
          />
        </div>
      </div>
      ${error && html`<p class="note bad" role="status">Not a regular expression (${error}): searched for as text.</p>`}
      <${Problem} error=${state.error} />
      ${state.is === 'lost' && html`<p class="note bad" role="status">The stream ended; connecting again.</p>`}
      <${LogView}
        lines=${lines}
        version=${version}
        wrap=${wrap.value}
        relative=${relative.value}
        utc=${utc.value}
        follow=${following}
        onFollow=${setFollowing}
        mark=${re}
        at=${at}
        onAt=${stamp => setQuery({ at: stamp === at ? null : stamp })}
        until=${before.seq}
        label=${'Log of ' + of.name}
      />
      ${!ring.lines.length && state.is === 'live' && html`<p class="muted">${silent}</p>`}
      <${Lines} lines=${[same.follow, same.recent]} />
    </div>
  `;
}

const fileOf = of => of.name.replace(/[^\w.-]+/g, '_') + '.log';

// The lines as they are shown, as a text file.
function download(of, lines) {
  const text = lines.map(l => `${new Date(l.time).toISOString()} [${l.type}/${l.instance}] ${l.err ? 'ERR' : 'OUT'} ${l.text}\n`);
  save(fileOf(of), text, 'text/plain');
}

// Copies a link to what is shown now: the filters, and a line.
async function permalink(line) {
  const url = new URL(location.href);
  if (line) url.searchParams.set('at', line.stamp);
  await copyText(url.href);
  setQuery({ at: line?.stamp ?? null });
}

function Copy({ run, title }) {
  const [copied, setCopied] = useState(false);
  const click = async () => {
    await run();
    setCopied(true);
    announce('Link copied');
    setTimeout(() => setCopied(false), 1500);
  };
  return html`<button type="button" title=${title} onClick=${click}>${copied ? 'Copied' : 'Copy link'}</button>`;
}
