// Writes YAML: what a manifest needs of it.

const safe = /^[A-Za-z_][A-Za-z0-9_./-]*$/;
const special = /^(true|false|null|yes|no|on|off|~|y|n)$/i;

/** A scalar as YAML reads it back. @param {string|number|boolean} v */
export const scalar = v => (typeof v !== 'string' ? String(v) : safe.test(v) && !special.test(v) ? v : JSON.stringify(v));

/** A value as YAML. undefined and empty values are left out of maps. */
export function yaml(value, indent = '') {
  if (Array.isArray(value)) return value.map(v => indent + '- ' + yaml(v, indent + '  ').trimStart()).join('');
  if (value === null || typeof value !== 'object') return indent + scalar(value) + '\n';
  return Object.entries(value)
    .filter(([, v]) => v !== undefined && v !== '' && !(Array.isArray(v) && !v.length))
    .map(
      ([k, v]) =>
        indent +
        scalar(k) +
        ':' +
        (v !== null && typeof v === 'object' ? '\n' + yaml(v, Array.isArray(v) ? indent : indent + '  ') : ' ' + scalar(v) + '\n'),
    )
    .join('');
}

/** A manifest of one app. @param {any} app */
export const manifest = app => '---\n' + yaml({ applications: [app] });

/** The name of the first application of a manifest, as far as plain text shows it. @param {string} text */
export const nameIn = text => /^\s*(?:-\s+)?name:\s*["']?([^"'\n#]+?)["']?\s*(?:#.*)?$/m.exec(text)?.[1] ?? '';

/** A manifest of one app with what cf push adds where it names no route (cli: util/pushmanifestparser). @param {string} text */
export function withRoute(text) {
  const names = [...text.matchAll(/^(\s*(?:-\s+)?)name:.*$/gm)].filter(m => m[1].trim() === '-' || !text.includes('- name:'));
  if (/^\s*(?:-\s+)?(routes|no-route|random-route|default-route):/m.test(text) || names.length !== 1) return text;
  const at = names[0].index + names[0][0].length;
  return text.slice(0, at) + '\n' + names[0][1].replace(/\n/g, '').replace('-', ' ') + 'default-route: true' + text.slice(at);
}
