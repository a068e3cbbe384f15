// Long lists: only the rows on the screen are in the page.
import { useState, useEffect, useRef } from '../lib/html.js';

/**
 * Which rows of the page's scroll are visible. ref goes to the element that holds them.
 * @param {number} count @param {number} height of a row, in pixels
 * @returns {{ref: any, from: number, to: number, before: number, after: number}}
 */
export function useWindow(count, height) {
  const ref = useRef();
  const [range, setRange] = useState([0, 40]);
  useEffect(() => {
    const measure = () => {
      if (!ref.current) return;
      const top = ref.current.getBoundingClientRect().top;
      const from = Math.max(0, Math.floor(-top / height) - 8);
      const to = Math.min(count, from + Math.ceil(innerHeight / height) + 16);
      setRange(r => (r[0] === from && r[1] === to ? r : [from, to]));
    };
    measure();
    addEventListener('scroll', measure, { passive: true });
    addEventListener('resize', measure);
    return () => {
      removeEventListener('scroll', measure);
      removeEventListener('resize', measure);
    };
  }, [count, height]);
  const from = Math.min(range[0], count),
    to = Math.min(Math.max(range[1], from), count);
  return { ref, from, to, before: from * height, after: (count - to) * height };
}

/** Whether a media query holds. @param {string} query */
export function useMedia(query) {
  const [holds, setHolds] = useState(() => matchMedia(query).matches);
  useEffect(() => {
    const m = matchMedia(query);
    const change = () => setHolds(m.matches);
    m.addEventListener('change', change);
    return () => m.removeEventListener('change', change);
  }, [query]);
  return holds;
}
