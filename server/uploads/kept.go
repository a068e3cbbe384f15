package uploads

import (
	"archive/zip"
	"fmt"
	"io/fs"
	"os"
	"path"

	"cupola/store/blob"
)

// keptZips are the zips of earlier packages that an upload takes files from, by digest.
type keptZips map[string]*keptZip

type keptZip struct {
	file    *os.File
	entries map[string]*zip.File // by clean path
}

// find is a file of an earlier package; fs.ErrNotExist if that is gone.
func (k *keptZips) find(blobs *blob.Store, known Known) (*zip.File, error) {
	z := (*k)[known.Digest]
	if z == nil {
		var err error
		if z, err = openKept(blobs, known.Digest); err != nil {
			return nil, err
		}
		if *k == nil {
			*k = keptZips{}
		}
		(*k)[known.Digest] = z
	}
	f := z.entries[path.Clean(known.Entry)]
	if f == nil {
		return nil, fmt.Errorf("entry %s of blob %s: %w", known.Entry, known.Digest, fs.ErrNotExist)
	}
	return f, nil
}

func openKept(blobs *blob.Store, digest string) (*keptZip, error) {
	f, err := blobs.Open(digest)
	if err != nil {
		return nil, err
	}
	r, err := openZip(f)
	if err != nil {
		f.Close()
		return nil, err
	}
	z := &keptZip{f, map[string]*zip.File{}}
	for _, entry := range r.File {
		z.entries[path.Clean(entry.Name)] = entry
	}
	return z, nil
}

func (k keptZips) close() {
	for _, z := range k {
		z.file.Close()
	}
}
