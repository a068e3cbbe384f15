// The frame of every screen: header, navigation, what the stream says of the daemon, and where dialogs appear.
import { html, cls, signal, useEffect } from '../lib/html.js';
import { Link, base, place, go } from '../lib/router.js';
import { leave } from '../lib/api.js';
import { hello, connection, heard } from '../lib/events.js';
import { theme, utc } from '../lib/settings.js';
import { useKeys } from '../lib/keys.js';
import { clock } from '../lib/format.js';
import { visible } from '../routes.js';
import { rank } from '../lib/roles.js';
import { Icon } from './basic.js';
import { Dialogs, open, close } from './dialog.js';
import { Live, announce } from './live.js';
import { Help } from './help.js';

const menu = signal(false);
const palette = () => import('./palette.js').then(m => open(m.Palette, { title: 'Go to' }));
const help = () => open(Help, { title: 'Keyboard' });

const focusFilter = () => document.querySelector('input[type=search]')?.focus();

function moveRow(by) {
  const rows = [...document.querySelectorAll('main [data-row]')];
  if (!rows.length) return false;
  const at = rows.indexOf(document.activeElement?.closest?.('[data-row]'));
  const next = rows[Math.min(rows.length - 1, Math.max(0, at + by))] ?? rows[0];
  (next.querySelector('a, button') ?? next).focus();
  next.scrollIntoView({ block: 'nearest' });
}

/** Everything around a screen. */
export function Shell({ children }) {
  const seen = visible();
  useKeys(
    [
      ['mod+k', 'Go to an app, a space or an action', palette],
      ['?', 'Show this help', help],
      ['/', 'Filter', focusFilter],
      ['j', 'Next row', () => moveRow(1)],
      ['k', 'Previous row', () => moveRow(-1)],
      ...seen.map(s => ['g ' + s.key, 'Go to ' + s.title, () => go(s.path)]),
    ],
    [seen.length],
  );
  useEffect(() => {
    menu.value = false;
    close(); // a dialog belongs to the screen that opened it
  }, [place.value.path]);
  useEffect(() => {
    if (connection.value !== 'connecting') announce(connection.value === 'lost' ? 'The daemon does not answer' : 'Connected');
  }, [connection.value]);
  return html`
    <a class="skip" href="#main">Skip to the content</a>
    <${Header} />
    <${Navigation} />
    <main id="main" tabindex="-1" data-connection=${connection.value}><${Lost} />${children}</main>
    <${Dialogs} />
    <${Live} />
  `;
}

function Lost() {
  if (connection.value !== 'lost') return null;
  return html`
    <div class="lost" role="alert">
      <${Icon} name="bad" />
      <span>
        The daemon does not answer. What you see is from ${clock(heard.value).slice(
          0,
          8,
        )} and may be old; it is loaded again as soon as the daemon is back.
      </span>
    </div>
  `;
}

function Header() {
  const user = hello.value?.user.name;
  return html`
    <header class="top">
      <button
        type="button"
        class="quiet burger"
        aria-expanded=${menu.value}
        aria-controls="nav"
        aria-label="Menu"
        onClick=${() => {
          menu.value = !menu.value;
        }}
      >
        <${Icon} name="menu" />
      </button>
      <${Link} to="/apps" class="brand">
        <svg viewBox="0 0 32 32" aria-hidden="true">
          <path d="M6 29V13C6 7.500 10 3 16 3s10 4.500 10 10v16z" />
          <path class="fire" d="M11 29v-8a5 5 0 0110 0v8z" />
        </svg>
        <span>cupola</span>
      <//>
      <button type="button" class="find" aria-label="Go to… Ctrl K" onClick=${palette}>
        <${Icon} name="search" />
        <span>Go to…</span>
        <kbd>Ctrl K</kbd>
      </button>
      <span class="space"></span>
      <${Theme} />
      <button type="button" class="quiet" onClick=${help} aria-label="Keyboard help" title="Keyboard help"><kbd>?</kbd></button>
      ${user &&
      html`
        <details class="user">
          <summary title=${user}><span>${user}</span></summary>
          <div class="drop">
            <p class="muted">${rank()} · ${hello.value.domain}</p>
            <label class="check">
              <input
                type="checkbox"
                checked=${utc.value}
                onChange=${e => {
                  utc.value = e.currentTarget.checked;
                }}
              />
              Times in UTC
            </label>
            <button type="button" onClick=${logout}>Log out</button>
          </div>
        </details>
      `}
    </header>
  `;
}

async function logout() {
  await fetch(base + '/logout', { method: 'POST', credentials: 'same-origin' }).catch(() => {});
  leave(base + '/login');
}

const themes = ['system', 'light', 'dark'];

function Theme() {
  const next = () => {
    theme.value = themes[(themes.indexOf(theme.value) + 1) % 3];
    announce('Theme: ' + theme.value);
  };
  return html`
    <button type="button" class="quiet theme" onClick=${next} title="Theme: system, light or dark" aria-label=${'Theme: ' + theme.value}>
      <${Icon} name="sun" />
      <span>${theme.value}</span>
    </button>
  `;
}

function Navigation() {
  const here = place.value.path;
  return html`
    <nav id="nav" class=${cls('side', menu.value && 'open')} aria-label="Main">
      <ul>
        ${visible().map(
          s => html`
            <li key=${s.path}>
              <${Link}
                to=${s.path}
                aria-current=${[s.path, ...(s.also ?? [])].some(p => here === p || here.startsWith(p + '/')) ? 'page' : undefined}
              >
                <${Icon} name=${s.icon} />
                <span>${s.title}</span>
                <kbd aria-hidden="true">g ${s.key}</kbd>
              <//>
            </li>
          `,
        )}
      </ul>
      <p class="muted version">
        ${hello.value && html`cupola ${hello.value.version}`}
        <span class=${'dot ' + connection.value}>${connection.value === 'live' ? 'live' : connection.value}</span>
      </p>
    </nav>
  `;
}
