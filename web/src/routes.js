// The screens by path, each loaded when it is first shown, and the sections of the navigation.

import { readsAll, readsMachine } from './lib/roles.js';

/** The navigation: key is what follows g on the keyboard; of says who sees a section, without it all. */
const sections = [
  { path: '/apps', title: 'Apps', icon: 'apps', key: 'a' },
  { path: '/services', title: 'Services', icon: 'services', key: 's' },
  { path: '/orgs', title: 'Orgs', icon: 'orgs', key: 'o', also: ['/spaces'] },
  { path: '/audit', title: 'Audit', icon: 'audit', key: 'u' },
  { path: '/machine', title: 'Machine', icon: 'machine', key: 'm', of: readsMachine },
  { path: '/stacks', title: 'Stacks', icon: 'stacks', key: 'i', of: readsMachine },
  { path: '/cells', title: 'Cells', icon: 'cells', key: 'c', of: readsAll },
  { path: '/bosh', title: 'Deployments', icon: 'bosh', key: 'b', of: readsAll },
  { path: '/platform', title: 'Platform', icon: 'platform', key: 'p', of: readsAll },
];

/** The sections that the user sees. */
export const visible = () => sections.filter(s => !s.of || s.of());

/** What each path shows: the first pattern that matches. Module's default export gets the parameters. */
export const routes = [
  { path: '/apps', load: () => import('./screens/apps.js') },
  { path: '/new', load: () => import('./screens/newapp.js') },
  { path: '/apps/:guid/:tab?', load: () => import('./screens/app.js') },
  { path: '/services/instances/:guid/:tab?', load: () => import('./screens/service.js') },
  { path: '/services/:tab?', load: () => import('./screens/services.js') },
  { path: '/orgs', load: () => import('./screens/orgs.js') },
  { path: '/orgs/:guid/:tab?', load: () => import('./screens/org.js') },
  { path: '/spaces/:guid/:tab?', load: () => import('./screens/space.js') },
  { path: '/audit', load: () => import('./screens/audit.js') },
  { path: '/machine', load: () => import('./screens/machine.js') },
  { path: '/stacks', load: () => import('./screens/stacks.js') },
  { path: '/cells', load: () => import('./screens/cells.js') },
  { path: '/bosh', load: () => import('./screens/bosh.js') },
  { path: '/bosh/deployments/:name', load: () => import('./screens/boshdeployment.js') },
  { path: '/bosh/tasks/:id', load: () => import('./screens/boshtask.js') },
  { path: '/platform/:tab?', load: () => import('./screens/platform.js') },
];
