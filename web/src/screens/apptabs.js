// The tabs of an app. needs is what the user must be allowed to, to see one; key follows "t" on the keyboard.

export const tabs = [
  { slug: '', title: 'Overview', key: 'o', load: () => import('./overview.js') },
  { slug: 'logs', title: 'Logs', key: 'l', load: () => import('./logs.js') },
  { slug: 'tasks', title: 'Tasks', key: 't', load: () => import('./tasks.js') },
  { slug: 'events', title: 'Events', key: 'v', load: () => import('./appevents.js') },
];
