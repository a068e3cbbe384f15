// Reads a compressed tar, such as a droplet, in the browser.

const text = new TextDecoder();
const field = (b, at, n) => {
  const s = text.decode(b.subarray(at, at + n));
  const end = s.indexOf('\0');
  return end < 0 ? s : s.slice(0, end);
};
const kinds = { 0: 'file', '': 'file', '\0': 'file', 1: 'link', 2: 'symlink', 5: 'folder' };

// The path=… records of a pax header.
function pax(b) {
  const out = {};
  let at = 0;
  while (at < b.length) {
    const space = b.indexOf(32, at),
      size = Number(text.decode(b.subarray(at, space)));
    if (!size) break;
    const [name, ...value] = text.decode(b.subarray(space + 1, at + size - 1)).split('=');
    out[name] = value.join('=');
    at += size;
  }
  return out;
}

/**
 * The entries of a tar: [{path, kind, size, mode, target, data}], where data is the part of the buffer.
 * @param {Uint8Array} b
 */
export function entries(b) {
  const out = [];
  let next = {};
  for (let at = 0; at + 512 <= b.length;) {
    const head = at,
      name = field(b, head, 100);
    if (!name && !b[at + 156]) break;
    const size = next.size ? Number(next.size) : parseInt(field(b, at + 124, 12).trim() || '0', 8);
    const type = field(b, at + 156, 1),
      data = b.subarray(at + 512, at + 512 + size);
    at += 512 + Math.ceil(size / 512) * 512;
    if (type === 'x') {
      next = pax(data);
      continue;
    }
    if (type === 'L') {
      next = { path: field(data, 0, size) };
      continue;
    }
    if (type === 'g') continue;
    const prefix = field(b, head + 345, 155);
    const path = (next.path ?? (prefix ? prefix + '/' : '') + name).replace(/^\.\//, '').replace(/\/$/, '');
    if (path && path !== '.')
      out.push({
        path,
        kind: kinds[type] ?? 'other',
        size,
        mode: parseInt(field(b, head + 100, 8).trim() || '0', 8),
        target: next.linkpath ?? field(b, head + 157, 100),
        data,
      });
    next = {};
  }
  return out;
}

/**
 * Reads a stream that is compressed with gzip, at most max bytes of content.
 * @param {ReadableStream} stream @param {number} max @param {(bytes: number) => void} progress
 */
export async function unzipped(stream, max, progress) {
  const reader = stream.pipeThrough(new DecompressionStream('gzip')).getReader();
  const parts = [];
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    parts.push(value);
    size += value.length;
    progress(size);
    if (size > max) {
      reader.cancel();
      throw new Error('The droplet is too large to show here: download it.');
    }
  }
  const all = new Uint8Array(size);
  let at = 0;
  for (const p of parts) {
    all.set(p, at);
    at += p.length;
  }
  return all;
}
