package uploads

import (
	"archive/zip"
	"errors"
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

// lostError is the refusal of a known file whose blob is gone or damaged.
type lostError struct {
	*refusal
	digest string
	cause  error
}

func (e *lostError) Unwrap() []error { return []error{e.refusal, e.cause} }

// Lost is the digest of a blob that has not all files that are known of it, and what is
// wrong with it, if err is due to that: those files should be forgotten. Else it is "".
func Lost(err error) (digest string, cause error) {
	if e, ok := errors.AsType[*lostError](err); ok {
		return e.digest, e.cause
	}
	return "", nil
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
