import {html} from '../lib/html.js'; export default () => html`<h1>Apps</h1>`;
