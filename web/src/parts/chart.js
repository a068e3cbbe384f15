// A plot over time, with uPlot, which is loaded with the first one.
import { html, useRef, useEffect, useState } from '../lib/html.js';
import { Problem } from './basic.js';
import { bytes, clock, stamp } from '../lib/format.js';
import { theme } from '../lib/settings.js';

const colours = ['--accent', '--ok', '--wait', '--bad', '--muted', '--strong'];
const css = name => {
  const probe = document.createElement('i');
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const c = getComputedStyle(probe).color;
  probe.remove();
  return c;
};

// Of more than a day, dates are shown.
const days = times => times.at(-1) - times[0] > 86400;

// Steps of an axis of bytes: 1, 2 and 5 of each unit.
const binary = [1, 1024, 1024 ** 2, 1024 ** 3].flatMap(u => [1, 2, 5, 10, 20, 50, 100, 200, 500].map(n => n * u));

/** How many there are: a mean of some minutes may be between two numbers, the steps of an axis are not. @param {number} n */
export const number = n => (Number.isInteger(n) ? String(n) : n.toFixed(1));

const steps = new Map([
  [bytes, binary],
  [number, [1, 10, 100, 1000, 10000].flatMap(u => [u, 2 * u, 5 * u])],
]);

function options(box, series, format, sparse) {
  const grid = { stroke: css('--line'), width: 1 },
    axis = { stroke: css('--muted'), grid, ticks: grid, font: '11px system-ui' },
    incrs = steps.get(format);
  return {
    width: box.clientWidth,
    height: 180,
    cursor: { y: false, sync: { key: 'time' } },
    legend: { live: true },
    scales: { y: { range: (_, min, max) => [0, max > 0 ? max * 1.1 : 1] } },
    axes: [
      { ...axis, values: (_, all) => all.map(t => (days(all) ? stamp(t * 1000).slice(5, 10) : clock(t * 1000).slice(0, 5))) },
      { ...axis, size: 64, values: (_, all) => all.map(format), ...(incrs && { incrs }) },
    ],
    series: [
      { value: (u, t) => (!t ? '–' : days(u.data[0]) ? stamp(t * 1000).slice(0, 16) : clock(t * 1000).slice(0, 8)) },
      ...series.map((s, n) => ({
        label: s.label,
        stroke: css(s.colour ?? colours[n % colours.length]),
        width: 1.5,
        points: { show: Boolean(sparse), size: 5 },
        spanGaps: Boolean(sparse),
        value: (_, v) => (v === null || v === undefined ? '–' : format(v)),
      })),
    ],
  };
}

/**
 * @param {{label: string, times: number[], series: Array<{label: string, values: (number|null)[], colour?: string}>,
 *   format: (n: number) => string, sparse?: boolean}} p
 * times in seconds; label names the plot; sparse series have points, joined over gaps
 */
export function Chart({ label, times, series, format, sparse }) {
  const box = useRef(),
    plot = useRef();
  const [error, setError] = useState(null);
  const data = [times, ...series.map(s => s.values)];
  const names = series.map(s => s.label + s.colour).join();
  const latest = useRef(data);
  latest.current = data;
  useEffect(() => {
    let gone = false;
    const watch = new ResizeObserver(() => box.current && plot.current?.setSize({ width: box.current.clientWidth, height: 180 }));
    import('uplot').then(({ default: Plot }) => {
      if (gone || !box.current) return; // the screen was left meanwhile
      plot.current = new Plot(options(box.current, series, format, sparse), latest.current, box.current);
      watch.observe(box.current);
    }, setError);
    return () => {
      gone = true;
      watch.disconnect();
      plot.current?.destroy();
      plot.current = null;
    };
  }, [names, theme.value]);
  useEffect(() => {
    plot.current?.setData(data);
  }, [times, names]);
  const newest = series
    .map(s => `${s.label} ${s.values.at(-1) === null || s.values.at(-1) === undefined ? 'none' : format(s.values.at(-1))}`)
    .join(', ');
  return html`
    <figure class="chart panel">
      <figcaption><strong>${label}</strong> <span class="hidden">${newest}</span></figcaption>
      <div ref=${box}></div>
      <${Problem} error=${error} />
    </figure>
  `;
}
