// Zip archives, made in the browser: of files that were dropped or chosen.

const table = Uint32Array.from({ length: 256 }, (_, n) => {
  for (let k = 0; k < 8; k++) n = n & 1 ? 0xedb88320 ^ (n >>> 1) : n >>> 1;
  return n >>> 0;
});

function crc32(bytes) {
  let c = ~0;
  for (let i = 0; i < bytes.length; i++) c = table[(c ^ bytes[i]) & 255] ^ (c >>> 8);
  return ~c >>> 0;
}

async function deflate(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new CompressionStream('deflate-raw'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** The mode of a file by its first bytes: browsers do not tell it; scripts and programs are executable. @param {Uint8Array} bytes */
export function modeOf(bytes) {
  const script = bytes[0] === 0x23 && bytes[1] === 0x21;
  const elf = bytes[0] === 0x7f && bytes[1] === 0x45 && bytes[2] === 0x4c && bytes[3] === 0x46;
  return script || elf ? 0o100755 : 0o100644;
}

const utf8 = new TextEncoder();

// The header that both the entry and the directory have from the version on.
function fields(view, at, e) {
  view.setUint16(at, 20, true);
  view.setUint16(at + 2, 0x800, true); // names are UTF-8
  view.setUint16(at + 4, 8, true); // deflated
  view.setUint16(at + 6, 0, true);
  view.setUint16(at + 8, 0x21, true); // 1980-01-01: the same files give the same archive
  view.setUint32(at + 10, e.crc, true);
  view.setUint32(at + 14, e.packed.length, true);
  view.setUint32(at + 18, e.size, true);
  view.setUint16(at + 22, e.name.length, true);
}

function local(e) {
  const b = new Uint8Array(30 + e.name.length),
    view = new DataView(b.buffer);
  view.setUint32(0, 0x04034b50, true);
  fields(view, 4, e);
  b.set(e.name, 30);
  return b;
}

function central(e) {
  const b = new Uint8Array(46 + e.name.length),
    view = new DataView(b.buffer);
  view.setUint32(0, 0x02014b50, true);
  view.setUint16(4, 0x0314, true); // by a Unix
  fields(view, 6, e);
  view.setUint32(38, e.mode * 65536, true);
  view.setUint32(42, e.at, true);
  b.set(e.name, 46);
  return b;
}

/**
 * A zip of files. @param {Array<{path: string, file: Blob}>} files
 * @param {(done: number) => void} [progress] gets how many files are in it
 * @returns {Promise<Blob>}
 */
export async function zip(files, progress = () => {}) {
  const parts = [],
    directory = [];
  let at = 0;
  for (const [n, { path, file }] of files.entries()) {
    const bytes = new Uint8Array(await file.arrayBuffer());
    const e = { name: utf8.encode(path), crc: crc32(bytes), size: bytes.length, packed: await deflate(bytes), mode: modeOf(bytes), at };
    const head = local(e);
    parts.push(head, e.packed);
    directory.push(central(e));
    at += head.length + e.packed.length;
    progress(n + 1);
  }
  const size = directory.reduce((sum, d) => sum + d.length, 0);
  const end = new Uint8Array(22),
    view = new DataView(end.buffer);
  view.setUint32(0, 0x06054b50, true);
  view.setUint16(8, files.length, true);
  view.setUint16(10, files.length, true);
  view.setUint32(12, size, true);
  view.setUint32(16, at, true);
  return new Blob([...parts, ...directory, end], { type: 'application/zip' });
}

/** The files of a drop: folders are read whole. @param {DataTransfer} data @returns {Promise<Array<{path: string, file: File}>>} */
export async function dropped(data) {
  const out = [];
  const walk = async (entry, at) => {
    if (entry.isFile) {
      out.push({
        path: at + entry.name,
        file: await new Promise((ok, bad) => {
          entry.file(ok, bad);
        }),
      });
      return;
    }
    const reader = entry.createReader();
    for (;;) {
      // it answers a hundred at a time
      const some = await new Promise((ok, bad) => {
        reader.readEntries(ok, bad);
      });
      if (!some.length) return;
      for (const e of some) await walk(e, at + entry.name + '/');
    }
  };
  const entries = [...data.items].map(i => i.webkitGetAsEntry?.()).filter(Boolean);
  for (const e of entries) await walk(e, '');
  return entries.length === 1 && entries[0].isDirectory ? rooted(out) : out;
}

/** The files of an <input webkitdirectory>. @param {FileList} list */
export const chosen = list => rooted([...list].map(file => ({ path: file.webkitRelativePath || file.name, file })));

// Without the folder that all are in.
function rooted(files) {
  const root = files[0]?.path.split('/')[0] + '/';
  return files.every(f => f.path.startsWith(root)) ? files.map(f => ({ ...f, path: f.path.slice(root.length) })) : files;
}

// What cf push never uploads (cli: actor/sharedaction/resource.go), and what .cfignore names.
const always = ['.cfignore', '_darcs', '.DS_Store', '.git', '.gitignore', '.hg', '.svn', 'manifest.yml'];

function ignoring(pattern) {
  const rooted = pattern.startsWith('/') || pattern.slice(0, -1).includes('/');
  const body = pattern
    .replace(/^\/|\/$/g, '')
    .replace(/[.+^${}()|[\]\\]/g, '\\$&')
    .replaceAll('**', '\u0000')
    .replaceAll('*', '[^/]*')
    .replaceAll('?', '[^/]')
    .replaceAll('\u0000', '.*');
  return new RegExp((rooted ? '^' : '(^|/)') + body + '(/|$)');
}

/** The files that cf push would upload. @param {Array<{path: string, file: File}>} files */
export async function wanted(files) {
  const own = files.find(f => f.path === '.cfignore');
  const lines = (own ? await own.file.text() : '')
    .split(/\r?\n/)
    .map(l => l.trim())
    .filter(l => l && !l.startsWith('#'));
  const rules = [...always, ...lines].map(l =>
    l.startsWith('!') ? { keep: true, re: ignoring(l.slice(1)) } : { keep: false, re: ignoring(l) },
  );
  return files.filter(f => !rules.reduce((ignored, r) => (r.re.test(f.path) ? !r.keep : ignored), false));
}
