// Files that the browser makes and saves.

/** Saves what parts hold as a file. @param {string} name @param {BlobPart[]} parts @param {string} [type] */
export function save(name, parts, type) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob(parts, { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
