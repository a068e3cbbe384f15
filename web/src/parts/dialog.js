// Dialogs: <dialog>, one at a time. Esc closes; the focus returns to what opened it.
import { html, signal, useLayoutEffect, useRef, useState, useId, cls } from '../lib/html.js';
import { Icon, Problem, Same } from './basic.js';

const shown = signal(null);

/** Opens a dialog whose content is a component; it gets close. */
export function open(Content, props = {}) {
  shown.value = { Content, props };
}
/** Closes the dialog. */
export function close() {
  shown.value = null;
}

/** Where the dialog is; the page has one. */
export function Dialogs() {
  const current = shown.value;
  return current && html`<${Frame} key=${current} ...${current} />`;
}

function Frame({ Content, props }) {
  const ref = useRef();
  // A layout's effect ends before the next key is handled; closing gives the focus back.
  useLayoutEffect(() => {
    const dialog = ref.current;
    dialog.onclose = close;
    dialog.showModal();
    return () => {
      dialog.onclose = null;
      dialog.close();
    };
  }, []);
  const backdrop = e => {
    if (e.target === ref.current) close();
  };
  return html`
    <dialog ref=${ref} class=${cls(props.wide && 'wide')} aria-label=${props.title} onMouseDown=${backdrop}>
      <${Content} ...${props} close=${close} />
    </dialog>
  `;
}

/** The frame of most dialogs: title, content, and a form whose submit runs. It closes then, unless run answers false. */
export function Sheet({ title, children, close, submit, run, danger, lines, disabled }) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(null);
  const id = useId();
  const go = async e => {
    e.preventDefault();
    if (busy || disabled) return;
    setBusy(true);
    setError(null);
    try {
      if ((await run()) === false) setBusy(false);
      else close();
    } catch (failed) {
      setError(failed);
      setBusy(false);
    }
  };
  return html`
    <form class="sheet" onSubmit=${go} aria-labelledby=${id}>
      <header>
        <h2 id=${id}>${title}</h2>
        <button type="button" class="quiet" aria-label="Close" onClick=${close}><${Icon} name="close" /></button>
      </header>
      <div class="body">${children}<${Problem} error=${error} />${lines && html`<${Same} lines=${lines} />`}</div>
      <footer>
        <button type="button" onClick=${close}>${submit ? 'Cancel' : 'Close'}</button>
        ${submit &&
        html`<button type="submit" class=${danger ? 'danger' : 'primary'} disabled=${disabled} aria-busy=${busy}>${submit}</button>`}
      </footer>
    </form>
  `;
}

/** Asks before something that cannot be undone. name is what goes. */
export function confirm({ title, text, submit, run, lines, danger = true }) {
  open(
    ({ close }) => html`
      <${Sheet} title=${title} close=${close} submit=${submit} run=${run} danger=${danger} lines=${lines}><p class="pre">${text}</p><//>
    `,
    { title },
  );
}
