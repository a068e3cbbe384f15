// Numbers and times as people read them.
import { utc } from './settings.js';

const units = ['B', 'K', 'M', 'G', 'T'];

/** Bytes as cf writes them: 1.5G. @param {number|null|undefined} n */
export function bytes(n) {
  if (n === null || n === undefined || Number.isNaN(n)) return '–';
  let unit = 0;
  while (n >= 1024 && unit < units.length - 1) {
    n /= 1024;
    unit++;
  }
  return (n >= 100 || Number.isInteger(n) ? Math.round(n) : n.toFixed(1)) + units[unit];
}

/** Megabytes, as the API has limits. */
export const megabytes = n => (n === null || n === undefined ? '–' : n < 0 ? 'unlimited' : bytes(n * 1024 * 1024));

/** A share of one core, as a percentage. @param {number} share */
export const percent = share =>
  share === null || share === undefined || Number.isNaN(share) ? '–' : (share * 100).toFixed(share < 0.0995 ? 1 : 0) + ' %';

const pad = (n, width = 2) => String(n).padStart(width, '0');

/** A time of day, to the millisecond. @param {number} ms */
export function clock(ms) {
  const d = new Date(ms);
  const [h, m, s] = utc.value ? [d.getUTCHours(), d.getUTCMinutes(), d.getUTCSeconds()] : [d.getHours(), d.getMinutes(), d.getSeconds()];
  return `${pad(h)}:${pad(m)}:${pad(s)}.${pad(d.getMilliseconds(), 3)}`;
}

/** A date and time. @param {string|number} t */
export function stamp(t) {
  const d = new Date(t);
  if (Number.isNaN(d.getTime())) return '–';
  const u = utc.value;
  return (
    `${u ? d.getUTCFullYear() : d.getFullYear()}-${pad((u ? d.getUTCMonth() : d.getMonth()) + 1)}` +
    `-${pad(u ? d.getUTCDate() : d.getDate())} ` +
    `${pad(u ? d.getUTCHours() : d.getHours())}:${pad(u ? d.getUTCMinutes() : d.getMinutes())}` +
    `:${pad(u ? d.getUTCSeconds() : d.getSeconds())}`
  );
}

/** A duration in seconds, in at most two units: 3m 12s. @param {number} s */
export function duration(s) {
  if (s === null || s === undefined || Number.isNaN(s)) return '–';
  s = Math.max(0, Math.round(s));
  if (s < 60) return s + 's';
  if (s < 3600) return Math.floor(s / 60) + 'm ' + (s % 60) + 's';
  if (s < 86400) return Math.floor(s / 3600) + 'h ' + Math.floor((s % 3600) / 60) + 'm';
  return Math.floor(s / 86400) + 'd ' + Math.floor((s % 86400) / 3600) + 'h';
}

/** How long ago a time was, in one unit. @param {string|number} t */
export function ago(t, now = Date.now()) {
  const s = (now - new Date(t).getTime()) / 1000;
  if (Number.isNaN(s)) return '–';
  if (s < 5) return 'just now';
  if (s < 60) return Math.floor(s) + 's ago';
  if (s < 3600) return Math.floor(s / 60) + 'm ago';
  if (s < 86400) return Math.floor(s / 3600) + 'h ago';
  return Math.floor(s / 86400) + 'd ago';
}

/** The first characters of a GUID. */
export const short = guid => (guid ?? '').slice(0, 8);

/** n things, with the plural's s. */
export const count = (n, noun) => `${n} ${noun}${n === 1 ? '' : 's'}`;

/** A word as a shell reads it back. @param {string} word */
export const quoted = word => (/^[A-Za-z0-9_.,:/@%+=-]+$/.test(word) ? word : "'" + String(word).replaceAll("'", "'\\''") + "'");
