// Queries of the log cache's metrics, in PromQL.
import { call } from './api.js';

const form = params => new URLSearchParams(params).toString();

/** A query at a time: [{metric, value: [seconds, text]}]. @param {string} query */
export async function instant(query, o) {
  const answer = await call('POST', '/api/v1/query', { ...o, body: form({ query }), type: 'application/x-www-form-urlencoded' });
  return answer.data.result;
}

/**
 * A query over a range of time: [{metric, values: [[seconds, text]]}].
 * @param {string} query @param {number} start in seconds @param {number} end @param {number} step
 */
export async function range(query, start, end, step, o) {
  const params = form({ query, start: String(start), end: String(end), step: step + 's' });
  const answer = await call('POST', '/api/v1/query_range', { ...o, body: params, type: 'application/x-www-form-urlencoded' });
  return answer.data.result;
}

/** A selector of all the sources. @param {string[]} guids */
export const sources = guids => (guids.length === 1 ? `source_id="${guids[0]}"` : `source_id=~"${guids.join('|')}"`);

/**
 * CPU and memory of apps over the last minutes, summed over their instances: by app {cpu: number[], memory: number[]}.
 * @param {string[]} guids
 */
export async function usage(guids, minutes = 15, o = {}) {
  const end = Math.floor(Date.now() / 15000) * 15,
    start = end - minutes * 60;
  const [cpu, memory] = await Promise.all(
    ['cpu', 'memory'].map(name => range(`sum by (source_id) (${name}{${sources(guids)}})`, start, end, 30, o)),
  );
  const by = {};
  const fill = (name, series, scale) =>
    series.forEach(s => {
      (by[s.metric.source_id] ??= {})[name] = s.values.map(v => Number(v[1]) * scale);
    });
  fill('cpu', cpu, 0.01);
  fill('memory', memory, 1);
  return by;
}

/** The times of an axis that ends now, in seconds. @param {{length: number, step: number}} span */
export function axisOf({ length, step }) {
  const end = Math.floor(Date.now() / 15000) * 15; // whatever the step: the newest metrics are never beyond the axis
  return Array.from({ length: length / step + 1 }, (_, n) => end - length + n * step);
}

/** Values of a series on an axis of time. */
export function onAxis(series, times, step, scale = 1, values = times.map(() => null)) {
  for (const [t, v] of series.values) {
    const n = Math.round((t - times[0]) / step);
    if (n >= 0 && n < values.length && v !== 'NaN') values[n] = Number(v) * scale;
  }
  return values;
}

/** A query of a gauge for an axis: a sample holds for five minutes, of longer steps it is the mean. @param {string} selector */
export const smoothed = (selector, step) => (step > 300 ? `avg_over_time(${selector}[${step}s])` : selector);
