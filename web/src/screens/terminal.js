// A terminal in an instance: what `cf ssh` opens, over a websocket. xterm is loaded with the first one.
import { html, useState, useEffect, useRef } from '../lib/html.js';
import { hello } from '../lib/events.js';
import { base, place, setQuery } from '../lib/router.js';
import { quoted } from '../lib/format.js';
import { Problem, Lines } from '../parts/basic.js';
import { Commands } from '../parts/commands.js';
import { announce } from '../parts/live.js';

async function library() {
  const [{ Terminal }, { FitAddon }, { default: css }] = await Promise.all([
    import('@xterm/xterm'),
    import('@xterm/addon-fit'),
    import('xterm.css?text'),
    import('../lib/adoptedstyle.js'),
  ]);
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(css);
  if (!library.done) document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
  library.done = true;
  return { Terminal, FitAddon };
}

const colours = { background: '#0a0d11', foreground: '#e4e8ee', cursor: '#82adff', selectionBackground: '#2f4a7d' };

// Connects a terminal with the instance; ended gets how it ended.
function connect(term, process, index, ended) {
  const url = new URL(`${base}/terminal?process=${process}&index=${index}`, location.href);
  url.protocol = location.protocol === 'https:' ? 'wss:' : 'ws:';
  const socket = new WebSocket(url);
  socket.binaryType = 'arraybuffer';
  let said = null;
  const size = () => {
    if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify({ cols: term.cols, rows: term.rows }));
  };
  socket.onopen = size;
  socket.onmessage = m => {
    if (typeof m.data === 'string') said = JSON.parse(m.data);
    else term.write(new Uint8Array(m.data));
  };
  socket.onclose = () => ended(said ?? { error: 'The connection ended.' });
  const bytes = new TextEncoder();
  const typed = term.onData(text => {
    if (socket.readyState === WebSocket.OPEN) socket.send(bytes.encode(text));
  });
  const resized = term.onResize(size);
  return () => {
    socket.onclose = null;
    typed.dispose();
    resized.dispose();
    socket.close();
  };
}

function useTerminal(process, index, round) {
  const box = useRef();
  const [end, setEnd] = useState(null);
  useEffect(() => {
    let gone = false,
      close = () => {};
    setEnd(null);
    library().then(
      ({ Terminal, FitAddon }) => {
        if (gone) return;
        const term = new Terminal({
          fontFamily: getComputedStyle(document.documentElement).getPropertyValue('--mono'),
          fontSize: 13,
          scrollback: 5000,
          theme: colours,
          screenReaderMode: false,
          cursorBlink: !matchMedia('(prefers-reduced-motion: reduce)').matches,
        });
        const fit = new FitAddon();
        term.loadAddon(fit);
        term.open(box.current);
        fit.fit();
        // Tab belongs to the shell; Ctrl-Shift-Escape leaves the terminal.
        term.attachCustomKeyEventHandler(e => {
          if (e.key === 'Escape' && e.ctrlKey && e.shiftKey) {
            document.querySelector('.terminal-again')?.focus();
            return false;
          }
          return true;
        });
        const watch = new ResizeObserver(() => fit.fit());
        watch.observe(box.current);
        const stop = connect(term, process, index, said => {
          setEnd(said);
          announce('The terminal ended');
        });
        term.focus();
        close = () => {
          watch.disconnect();
          stop();
          term.dispose();
        };
      },
      e => setEnd({ error: e.message }),
    );
    return () => {
      gone = true;
      close();
    };
  }, [process, index, round]);
  return { box, end };
}

/** The tab Terminal. */
export default function TerminalTab({ app, processes }) {
  const query = place.value.query;
  const usable = processes.filter(p => p.instances > 0);
  const process = usable.find(p => p.type === query.get('process')) ?? usable.find(p => p.type === 'web') ?? usable[0];
  const index = Math.min(Number(query.get('instance') ?? 0), Math.max(0, (process?.instances ?? 1) - 1));
  const line =
    `cf ssh ${quoted(app.name)}${process && process.type !== 'web' ? ' --process ' + quoted(process.type) : ''}` +
    `${index ? ' -i ' + index : ''}`;
  if (app.state !== 'STARTED' || !process) return html`<p class="muted">Start the app to open a terminal in one of its instances.</p>`;
  if (hello.value?.ssh === false) return html`<p class="muted">The daemon runs without SSH: start it with --ssh.</p>`;
  return html`
    <div class="toolbar">
      <label class="check">
        Process <select value=${process.type} onChange=${e => setQuery({ process: e.currentTarget.value, instance: null })}>
          ${usable.map(p => html`<option key=${p.type}>${p.type}</option>`)}
        </select>
      </label>
      <label class="check">
        Instance <select value=${String(index)} onChange=${e => setQuery({ instance: e.currentTarget.value })}>
          ${Array.from({ length: Math.min(process.instances, 100) }, (_, n) => html`<option key=${n} value=${String(n)}>${n}</option>`)}
        </select>
      </label>
    </div>
    <${Session} key=${process.guid + index} process=${process.guid} index=${index} name=${app.name} line=${line} />
    <${Lines} lines=${[line]} />
  `;
}

function Session({ process, index, name, line }) {
  const [round, setRound] = useState(0);
  const { box, end } = useTerminal(process, index, round);
  return html`
    <div class="shell" role="group" aria-label=${`Terminal in instance ${index} of ${name}`} ref=${box}></div>
    <div class="toolbar">
      <button type="button" class="terminal-again" onClick=${() => setRound(round + 1)}>${end ? 'Connect again' : 'New session'}</button>
      <${Commands} of=${`a terminal in instance ${index} of ${name}`} lines=${[[end ? 'Connect again' : 'New session', line]]} />
      ${end &&
      (end.error
        ? html`<${Problem} error=${new Error(end.error)} />`
        : html`<span role="status" class="muted">The shell ended with status ${end.exit}.</span>`)}
      <span class="muted">Ctrl-Shift-Esc leaves the terminal.</span>
    </div>
  `;
}
