// Terminal colours in log lines: SGR sequences become spans; all other sequences are left out.

// eslint-disable-next-line no-control-regex
const sequence = /\x1b(?:\[([0-9;:]*)([@-~])|[@-Z\\-_])|[\x00-\x08\x0b-\x1f\x7f]/g;

/** A text without its control sequences. @param {string} text */
export const plain = text => (/[\x00-\x1f\x7f]/.test(text) ? text.replaceAll('\t', '    ').replace(sequence, '') : text);

const fresh = () => ({ fg: '', bg: '', bold: false, dim: false, italic: false, underline: false });

function apply(style, codes) {
  for (let n = 0; n < codes.length; n++) {
    const c = codes[n];
    if (c === 0) Object.assign(style, fresh());
    else if (c === 1) style.bold = true;
    else if (c === 2) style.dim = true;
    else if (c === 3) style.italic = true;
    else if (c === 4) style.underline = true;
    else if (c === 22) style.bold = style.dim = false;
    else if (c === 23) style.italic = false;
    else if (c === 24) style.underline = false;
    else if (c >= 30 && c <= 37) style.fg = 'c' + (c - 30);
    else if (c >= 90 && c <= 97) style.fg = 'c' + (c - 82);
    else if (c === 39) style.fg = '';
    else if (c >= 40 && c <= 47) style.bg = 'b' + (c - 40);
    else if (c >= 100 && c <= 107) style.bg = 'b' + (c - 92);
    else if (c === 49) style.bg = '';
    else if (c === 38 || c === 48) n += extended(style, c === 38 ? 'fg' : 'bg', codes.slice(n + 1));
  }
}

// 38;5;N of the first 16 colours has a class; others are shown without colour, readable in both themes.
function extended(style, which, rest) {
  if (rest[0] === 5) {
    style[which] = rest[1] < 16 ? (which === 'fg' ? 'c' : 'b') + rest[1] : '';
    return 2;
  }
  if (rest[0] === 2) {
    style[which] = '';
    return 4;
  }
  return 0;
}

const classes = s => [s.fg, s.bg, s.bold && 'bold', s.dim && 'dim', s.italic && 'italic', s.underline && 'under'].filter(Boolean).join(' ');

/**
 * The spans of a text: [{text, cls}], where cls names the classes of its style.
 * @param {string} text
 */
export function spans(text) {
  if (!text.includes('\x1b')) return [{ text: plain(text), cls: '' }];
  const out = [],
    style = fresh();
  let from = 0;
  const add = to => {
    const t = plain(text.slice(from, to));
    if (t) out.push({ text: t, cls: classes(style) });
  };
  for (const m of text.matchAll(sequence)) {
    add(m.index);
    from = m.index + m[0].length;
    if (m[2] === 'm') apply(style, (m[1] || '0').split(/[;:]/).map(Number));
  }
  add(text.length);
  return out;
}
