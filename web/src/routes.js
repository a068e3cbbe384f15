// The screens by path, each loaded when it is first shown, and the sections of the navigation.

/** The navigation: key is what follows g on the keyboard. admin sections are shown to administrators alone. */
export const sections = [
  { path: '/apps', title: 'Apps', icon: 'apps', key: 'a' },
];

/** What each path shows: the first pattern that matches. Module's default export gets the parameters. */
export const routes = [
  { path: '/apps', load: () => import('./screens/apps.js') },
  { path: '/new', load: () => import('./screens/newapp.js') },
  { path: '/apps/:guid/:tab?', load: () => import('./screens/app.js') },
];
