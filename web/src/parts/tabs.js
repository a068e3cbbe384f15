// The tabs of a screen: links, of which the current one shows below.
import { html, useRef, useEffect } from '../lib/html.js';
import { Link } from '../lib/router.js';

/** @param {{label: string, tabs: Array<{to: string, title: string, on: boolean}>}} p */
export function Tabs({ label, tabs }) {
  const ref = useRef(),
    current = tabs.find(t => t.on)?.to;
  useEffect(() => {
    ref.current.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'nearest' });
  }, [current]); // on narrow screens
  return html`
    <nav ref=${ref} class="tabs" aria-label=${label}>
      ${tabs.map(t => html`<${Link} key=${t.to} to=${t.to} aria-current=${t.on ? 'page' : undefined}>${t.title}<//>`)}
    </nav>
  `;
}
