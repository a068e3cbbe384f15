// What each screen and part is written with: Preact's hooks, signals, and html, which makes elements of
// tagged templates. htm escapes nothing because it sets no HTML: texts become text nodes.
import { h, render, Fragment } from 'preact';
import htm from 'htm';

export const html = htm.bind(h);
export { render, Fragment };
export { useState, useEffect, useLayoutEffect, useMemo, useRef, useCallback, useId } from 'preact/hooks';
export { signal, computed, effect, batch, useSignal, useComputed, useSignalEffect } from '@preact/signals';

/** Joins the class names that are true. @param {...(string|false|null|undefined)} names */
export const cls = (...names) => names.filter(Boolean).join(' ');
