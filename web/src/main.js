// The console: opens the stream, loads the user's roles, and shows the screen that the path names.
import './style/base.css';
import './style/parts.css';
import './style/screens.css';
import './style/platform.css';
import { html, render, useState, useEffect } from './lib/html.js';
import { place, match, go } from './lib/router.js';
import { connect, hello } from './lib/events.js';
import { roles, loadRoles } from './lib/roles.js';
import './lib/settings.js';
import { routes } from './routes.js';
import { Shell } from './parts/shell.js';
import { Skeleton, Problem, Empty } from './parts/basic.js';

const loaded = new Map();

function find(path) {
  for (const route of routes) {
    const params = match(route.path, path);
    if (params) return { route, params };
  }
  return null;
}

function Screen() {
  const [, again] = useState(0);
  const [error, setError] = useState(null);
  const found = find(place.value.path);
  const Content = found && loaded.get(found.route);
  useEffect(() => {
    if (!found || Content) return;
    found.route.load().then(m => {
      loaded.set(found.route, m.default);
      again(n => n + 1);
    }, setError);
  }, [found?.route]);
  if (!found) return html`<${Empty} title="There is no such page.">Choose a section of the navigation.<//>`;
  if (error) return html`<${Problem} error=${error} what="The page could not be loaded." />`;
  if (!Content || !hello.value || !roles.value) return html`<${Skeleton} />`;
  return html`<${Content} key=${found.route.path} params=${found.params} />`;
}

hello.subscribe(h => {
  if (h && !roles.value)
    loadRoles().catch(() => {
      roles.value = {};
    });
});
if (place.value.path === '/') go('/apps', { replace: true });
connect();
render(html`<${Shell}><${Screen} /><//>`, document.getElementById('app'));
