// Small parts that each screen is made of.
import { html, cls, useState, useId } from '../lib/html.js';
import { ago, stamp } from '../lib/format.js';
import { NetworkError } from '../lib/api.js';
import { setting } from '../lib/settings.js';
import { announce } from './live.js';

/** An icon of the sprite below, without meaning to screen readers. */
export function Icon({ name }) {
  return html`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><path d=${paths[name]} /></svg>`;
}

const paths = {
  apps: 'M2 2h5v5H2zM9 2h5v5H9zM2 9h5v5H2zM9 9h5v5H9z',
  services:
    'M8 1.5c3.3 0 5.5 1 5.5 2.3v8.4c0 1.3-2.2 2.3-5.5 2.3s-5.5-1-5.5-2.3V3.800c0-1.3 2.2-2.3 5.5-2.3z' +
    'M2.500 4c0 1.300 2.200 2.300 5.500 2.300s5.500-1 5.500-2.300M2.500 8c0 1.300 2.200 2.300 5.500 2.300s5.500-1 5.500-2.300',
  stacks: 'M8 1.500l6.500 3.300L8 8 1.500 4.800zM1.500 8L8 11.300 14.500 8M1.500 11.200L8 14.500l6.500-3.300',
  cells: 'M2 3h12v4H2zM2 9h12v4H2zM4.500 5h.01M4.500 11h.01',
  bosh: 'M8 1.500l6 3.500v6L8 14.500 2 11V5zM8 8l6-3M8 8v6.500M8 8L2 5',
  orgs:
    'M5.500 7a2.500 2.500 0 100-5 2.500 2.500 0 000 5z' +
    'M1 14c0-2.500 2-4.500 4.500-4.500S10 11.500 10 14M11 7.500a2 2 0 100-4M12 9.800c1.800.5 3 2.200 3 4.200',
  audit: 'M3 1.500h7l3 3v10H3zM5.500 7h5M5.500 9.500h5M5.500 12h3',
  machine: 'M1.500 8.500h3l2-6 3 11 2-5h3',
  platform: 'M2 4h6M11 4h3M2 8h2M7 8h7M2 12h8M13 12h1M9.500 2.500v3M5.500 6.500v3M11.500 10.500v3',
  search: 'M7 12A5 5 0 107 2a5 5 0 000 10zM10.600 10.600L14.500 14.500',
  menu: 'M2 4h12M2 8h12M2 12h12',
  copy: 'M5.500 5.500h8v8h-8zM3.500 10.500h-1v-8h8v1',
  sun: 'M8 11a3 3 0 100-6 3 3 0 000 6zM8 1v1.500M8 13.500V15M1 8h1.500M13.500 8H15M3 3l1 1M12 12l1 1M13 3l-1 1M4 12l-1 1',
  ok: 'M3 8.500l3.200 3.200L13 5',
  stop: 'M4 4h8v8H4z',
  wait: 'M8 3v5l3 2M8 14.500a6.500 6.500 0 100-13 6.500 6.500 0 000 13z',
  bad: 'M8 1.500L15 14H1zM8 6v4M8 12h.01',
  none: 'M3 8h10',
  next: 'M6 3l5 5-5 5',
  play: 'M4.500 2.500l9 5.500-9 5.500z',
  plus: 'M8 2.500v11M2.500 8h11',
  close: 'M3.500 3.500l9 9M12.500 3.500l-9 9',
  pause: 'M5 3v10M11 3v10',
  prompt: 'M2.500 4l4 4-4 4M8.500 12.500h5',
  upload: 'M8 11V2.500M4.500 6L8 2.500 11.500 6M2.500 11v2.500h11V11',
};

const tones = {
  STARTED: 'on',
  RUNNING: 'ok',
  READY: 'ok',
  STAGED: 'ok',
  SUCCEEDED: 'ok',
  DEPLOYED: 'ok',
  ACTIVE: 'wait',
  LIVE: 'ok',
  CURRENT: 'ok',
  OK: 'ok',
  ENABLED: 'ok',
  'CREATE SUCCEEDED': 'ok',
  'UPDATE SUCCEEDED': 'ok',
  DONE: 'ok',
  AVAILABLE: 'ok',
  WARN: 'wait',
  FAIL: 'bad',
  FAILING: 'bad',
  ERROR: 'bad',
  QUEUED: 'wait',
  LEAVING: 'wait',
  'CREATE FAILED': 'bad',
  'UPDATE FAILED': 'bad',
  'DELETE FAILED': 'bad',
  'CREATE IN PROGRESS': 'wait',
  'UPDATE IN PROGRESS': 'wait',
  'DELETE IN PROGRESS': 'wait',
  'CREATE INITIAL': 'wait',
  SUSPENDED: 'bad',
  STARTING: 'wait',
  PENDING: 'wait',
  STAGING: 'wait',
  DEPLOYING: 'wait',
  PAUSED: 'wait',
  CANCELING: 'wait',
  PROCESSING_UPLOAD: 'wait',
  AWAITING_UPLOAD: 'wait',
  PROCESSING: 'wait',
  CRASHED: 'bad',
  FAILED: 'bad',
  DOWN: 'bad',
  DEGRADED: 'bad',
  EXPIRED: 'none',
  STOPPED: 'none',
  SLEEPING: 'none',
  STOPPING: 'none',
  CANCELED: 'none',
  SUPERSEDED: 'none',
};

// STARTED is what is asked for, not what is: it has no colour.
const icons = { none: 'stop', on: 'play' };

/** A state in Cloud Foundry's word, by colour, icon and text. */
export function State({ value, title }) {
  const tone = tones[String(value).toUpperCase()] ?? 'none';
  return html`
    <span class=${'state ' + tone} title=${title}>
      <${Icon} name=${icons[tone] ?? tone} />
      ${String(value).toLowerCase().replaceAll('_', ' ')}
    </span>
  `;
}

/** A time: how long ago, with the exact time as title. */
export function Time({ at }) {
  if (!at) return html`<span class="muted">–</span>`;
  return html`<time datetime=${new Date(at).toISOString()} title=${stamp(at)}>${ago(at)}</time>`;
}

/** The server's words, or that nothing answers; it stays until it no longer holds. */
export function Problem({ error, what }) {
  if (!error) return null;
  const text = error instanceof NetworkError ? error.message + ' What you see may be old.' : error.message;
  return html`
    <div class="problem" role="alert">
      <${Icon} name="bad" />
      <div>${what && html`<strong>${what} </strong>`}<span class="pre">${text}</span></div>
    </div>
  `;
}

/** Where the content will be. */
export function Skeleton({ rows = 4 }) {
  return html`
    <div class="skeleton" aria-hidden="true">${Array.from({ length: rows }, (_, n) => html`<div key=${n}></div>`)}</div>
    <p class="hidden" role="status">Loading</p>
  `;
}

/** What there is not, and what to do next. */
export function Empty({ title, children, line }) {
  return html`
    <div class="empty"><p class="lead">${title}</p>${children && html`<p>${children}</p>`}${line && html`<${Line} text=${line} />`}</div>
  `;
}

/** A command line to copy. */
export function Line({ text, label = 'Copy the command' }) {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    await copyText(text);
    setCopied(true);
    announce('Copied');
    setTimeout(() => setCopied(false), 1500);
  };
  return html`
    <div class="line">
      <code tabindex="0" role="region" aria-label="Command line">${text}</code>
      <button type="button" class="quiet" onClick=${copy} aria-label=${label + ': ' + text} title=${label}>
        ${copied ? 'Copied' : html`<${Icon} name="copy" />`}
      </button>
    </div>
  `;
}

/** Puts a text on the clipboard. @param {string} text */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    copyByHand(text);
  }
}

// The clipboard's API needs a secure page, which http://console.DOMAIN is not.
function copyByHand(text) {
  const area = document.createElement('textarea');
  area.value = text;
  (document.querySelector('dialog[open]') ?? document.body).append(area);
  area.select();
  document.execCommand('copy');
  area.remove();
}

/** The command lines that do the same as a form. @param {{lines: string[]}} p */
export function Same({ lines }) {
  return html`
    <div class="lines">
      <p>The same on the command line</p>
      ${lines.filter(Boolean).map(l => html`<${Line} key=${l} text=${l} />`)}
    </div>
  `;
}

/** The command lines that do the same as what is shown, folded. @param {{lines: string[]}} p */
export function Lines({ lines, title = 'The same on the command line' }) {
  const open = setting('lines', false);
  return html`
    <details
      class="lines"
      open=${open.value}
      onToggle=${e => {
        open.value = e.currentTarget.open;
      }}
    >
      <summary>${title}</summary>
      ${lines.filter(Boolean).map(l => html`<${Line} key=${l} text=${l} />`)}
    </details>
  `;
}

/** A labelled input. rest goes to the input; note explains it. */
export function Field({ label, note, error, as = 'input', children, value, onValue, ...rest }) {
  const id = useId();
  const props = {
    ...rest,
    id,
    value,
    onInput: e => onValue?.(e.currentTarget.value, e.currentTarget),
    'aria-describedby': note || error ? id + '-note' : undefined,
    'aria-invalid': error ? 'true' : undefined,
  };
  const input =
    as === 'select'
      ? html`<select ...${props}>${children}</select>`
      : as === 'textarea'
        ? html`<textarea ...${props}></textarea>`
        : html`<input ...${props} />`;
  return html`
    <div class="field">
      <label for=${id}>${label}</label>
      ${input}
      ${(note || error) && html`<p id=${id + '-note'} class=${cls('note', error && 'bad')}>${error || note}</p>`}
    </div>
  `;
}

/** A checkbox with its label. */
export function Check({ label, checked, onValue, ...rest }) {
  return html`
    <label class="check">
      <input type="checkbox" ...${rest} checked=${checked} onChange=${e => onValue(e.currentTarget.checked)} />
      ${label}
    </label>
  `;
}

/** A button that works, waits and shows what failed next to it. run may return a promise. */
export function Button({ run, children, kind, icon, ...rest }) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(null);
  const click = async () => {
    if (busy) return;
    setBusy(true);
    setError(null);
    try {
      await run();
    } catch (e) {
      setError(e);
    }
    setBusy(false);
  };
  return html`
    <span class="action">
      <button type="button" ...${rest} class=${cls(kind, busy && 'busy')} aria-busy=${busy} onClick=${click}>
        ${icon && html`<${Icon} name=${icon} />`}
        ${children}
      </button>
      <${Problem} error=${error} />
    </span>
  `;
}

/** A heading row of a screen: its one h1, and actions. */
export function Head({ title, children, note }) {
  return html`
    <header class="head">
      <div class="title"><h1 title=${typeof title === 'string' ? title : undefined}>${title}</h1>${note}</div>
      ${children && html`<div class="actions">${children}</div>`}
    </header>
  `;
}

/** A part of a screen with a heading. */
export function Section({ title, children, actions, ...rest }) {
  const id = useId();
  return html`
    <section ...${rest} aria-labelledby=${id}>
      <div class="section-head"><h2 id=${id}>${title}</h2>${actions && html`<div class="actions">${actions}</div>`}</div>
      ${children}
    </section>
  `;
}
