// What screen readers say when a state changes: one polite live region.
import { html, signal } from '../lib/html.js';

const said = signal('');

/** Has a text read out. @param {string} text */
export function announce(text) {
  said.value = said.value === text ? text + ' ' : text;
}

/** The region; the page has one. */
export function Live() {
  return html`<div class="hidden" role="status" aria-live="polite">${said.value}</div>`;
}
