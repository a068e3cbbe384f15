// The tabs of an app. needs is what the user must be allowed to, to see one.

export const tabs = [
  { slug: '', title: 'Overview', key: 'o' },
  { slug: 'logs', title: 'Logs', key: 'l' },
];
