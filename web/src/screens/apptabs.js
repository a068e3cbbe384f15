// The tabs of an app. needs is what the user must be allowed to, to see one; key follows "t" on the keyboard.

export const tabs = [
  { slug: '', title: 'Overview', key: 'o', load: () => import('./overview.js') },
  { slug: 'logs', title: 'Logs', key: 'l', load: () => import('./logs.js') },
  { slug: 'deployments', title: 'Deployments', key: 'd', load: () => import('./deployments.js') },
  { slug: 'metrics', title: 'Metrics', key: 'm', load: () => import('./metrics.js') },
  { slug: 'routes', title: 'Routes', key: 'r', load: () => import('./approutes.js') },
  { slug: 'environment', title: 'Environment', key: 'e', load: () => import('./environment.js'), needs: 'secrets' },
  { slug: 'tasks', title: 'Tasks', key: 't', load: () => import('./tasks.js') },
  { slug: 'jobs', title: 'Jobs', key: 'j', load: () => import('./jobs.js') },
  { slug: 'autoscaling', title: 'Autoscaling', key: 'a', load: () => import('./autoscaling.js') },
  { slug: 'terminal', title: 'Terminal', key: 's', load: () => import('./terminal.js'), needs: 'edit' },
  { slug: 'files', title: 'Files', key: 'f', load: () => import('./files.js'), needs: 'droplet' },
  { slug: 'events', title: 'Events', key: 'v', load: () => import('./appevents.js') },
];
