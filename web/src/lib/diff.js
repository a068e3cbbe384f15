// What differs between two sets of values, and between two texts by line.

/**
 * Differences of two maps: [{key, old, new}], by key; what is only in one has undefined in the other.
 * @param {Record<string, any>} a @param {Record<string, any>} b
 */
export function changed(a, b) {
  const keys = [...new Set([...Object.keys(a ?? {}), ...Object.keys(b ?? {})])].sort();
  const same = (x, y) => JSON.stringify(x) === JSON.stringify(y);
  return keys.filter(k => !same(a?.[k], b?.[k])).map(key => ({ key, old: a?.[key], new: b?.[key] }));
}

/** KEY=VALUE lines as in .env files; error names the first line that is neither. @param {string} text */
export function parseEnv(text) {
  const vars = {};
  for (const [n, line] of text.split(/\r?\n/).entries()) {
    if (!line.trim() || line.trim().startsWith('#')) continue;
    const m = /^\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_.-]*)=(.*)$/.exec(line);
    if (!m) return { vars, error: `Line ${n + 1} is not NAME=VALUE: ${line.slice(0, 60)}` };
    const q = /^(["'])(.*)\1$/.exec(m[2].trim());
    vars[m[1]] = q ? (q[1] === '"' ? q[2].replaceAll('\\n', '\n').replaceAll('\\"', '"') : q[2]) : m[2].trim();
  }
  return { vars };
}
