package archive

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"

	"cupola/rootfs/image"
	"cupola/rootfs/reference"
	"cupola/rootfs/stack"
	"cupola/store"
)

// Report is what a sound backup holds.
type Report struct {
	Manifest
	store.Contents
}

const maxDocument = 8 << 20 // of the record of an image or the description of a stack

// Verify reads a backup to its end and checks all that can be checked of it:
// every digest, the database's pages, references and schema, that the key opens
// what it sealed, that each blob, layer and image which the database names is
// there, and that the volumes can be unpacked. It writes below temp alone, a copy of the database, and removes it.
func Verify(ctx context.Context, r io.Reader, temp string) (Report, error) {
	dir, err := os.MkdirTemp(temp, "cupola-verify-")
	if err != nil {
		return Report{}, err
	}
	v := &verifier{dir: dir, records: map[string][]byte{}}
	report, err := v.run(ctx, r)
	return report, errors.Join(err, os.RemoveAll(dir))
}

type verifier struct {
	dir      string
	manifest Manifest
	members  map[string]bool
	records  map[string][]byte // of images and stacks, by member
}

func (v *verifier) run(ctx context.Context, r io.Reader) (Report, error) {
	if err := read(ctx, r, visitor{Manifest: v.begin, Member: v.member}); err != nil {
		return Report{}, err
	}
	return v.check(ctx)
}

// check compares the database with the members, once all have been read.
func (v *verifier) check(ctx context.Context) (Report, error) {
	contents, err := store.Inspect(ctx, v.dir)
	if err != nil {
		return Report{}, err
	}
	if contents.Schema != v.manifest.Schema {
		return Report{}, fmt.Errorf("the database has the schema %d; the manifest says %d", contents.Schema, v.manifest.Schema)
	}
	for _, digest := range contents.Blobs {
		if !v.members[BlobName(digest)] {
			return Report{}, fmt.Errorf("the database names the blob %s, which is not there", digest)
		}
	}
	images, err := v.images()
	if err != nil {
		return Report{}, err
	}
	return Report{v.manifest, contents}, errors.Join(v.needed(contents.Images, images), v.stacks(images))
}

// BlobName is the member of a blob.
func BlobName(digest string) string { return path.Join("blobs", digest[:min(2, len(digest))], digest) }

func (v *verifier) begin(m Manifest) error {
	if m.Pages != nil {
		return errors.New("it is a part of what changed since a backup, and no backup")
	}
	v.manifest, v.members = m, map[string]bool{}
	for _, f := range m.Members {
		v.members[f.Name] = true
	}
	return nil
}

// member keeps what is looked at when all has been read.
func (v *verifier) member(m Member, r io.Reader) error {
	switch {
	case m.Name == "db/"+store.DatabaseFile || m.Name == "db/"+store.KeyFile:
		return writeFile(filepath.Join(v.dir, path.Base(m.Name)), r)
	case strings.HasPrefix(m.Name, TreesDir+"/"):
		return readTree(r)
	case strings.HasPrefix(m.Name, ImagesDir+"/"), path.Base(m.Name) == "stack.json":
		if m.Size > maxDocument {
			return fmt.Errorf("it has %d bytes", m.Size)
		}
		text, err := io.ReadAll(r)
		v.records[m.Name] = text
		return err
	}
	return nil
}

// readTree sees that a volume's content can be unpacked.
func readTree(r io.Reader) error {
	for t := tar.NewReader(r); ; {
		_, err := t.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("its archive is damaged: %w", err)
		}
	}
}

// writeFile makes a file of root's of what r gives. What goes wrong in writing
// is not r's fault.
func writeFile(name string, r io.Reader) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return &visitError{err}
	}
	_, err = io.Copy(ownErrors{f}, r)
	if cerr := f.Close(); err == nil && cerr != nil {
		err = &visitError{cerr}
	}
	return err
}

// ownErrors distinguishes errors of writing from those of reading.
type ownErrors struct{ io.Writer }

func (w ownErrors) Write(p []byte) (int, error) {
	n, err := w.Writer.Write(p)
	if err != nil {
		err = &visitError{err}
	}
	return n, err
}

// images sees that the images are whole, and gives their digests.
func (v *verifier) images() (map[string]bool, error) {
	digests := map[string]bool{}
	for name, text := range v.records {
		if !strings.HasPrefix(name, ImagesDir+"/") {
			continue
		}
		digest, blobs, err := image.SavedBlobs(text)
		if err != nil {
			return nil, err
		}
		for _, sum := range blobs {
			if !v.members["rootfs/oci/"+sum] {
				return nil, fmt.Errorf("image %s lacks the layer or document %s", digest, sum)
			}
		}
		digests[digest] = true
	}
	for _, l := range v.manifest.Left {
		if r, err := reference.Parse(l.Name); l.Kind == "image" && err == nil {
			digests[r.Digest] = true
		}
	}
	return digests, nil
}

func (v *verifier) needed(references []string, have map[string]bool) error {
	for _, text := range references {
		r, err := reference.Parse(text)
		if err != nil {
			return err
		}
		if !have[r.Digest] {
			return fmt.Errorf("apps run on the image %s, which is not there", text)
		}
	}
	return nil
}

// stacks sees that the stacks are whole.
func (v *verifier) stacks(images map[string]bool) error {
	for name, text := range v.records {
		if !strings.HasPrefix(name, StacksDir+"/") {
			continue
		}
		var st stack.Saved
		if err := json.Unmarshal(text, &st); err != nil {
			return fmt.Errorf("%s does not parse: %v", name, err)
		}
		switch dir := path.Dir(name); {
		case st.Name != path.Base(dir):
			return fmt.Errorf("%s is of the stack %q", name, st.Name)
		case st.HasTree && !v.members[dir+"/fs.tar"]:
			return fmt.Errorf("stack %s lacks its files", st.Name)
		case !st.HasTree && !images[st.Digest]:
			return fmt.Errorf("stack %s lacks its image %s", st.Name, st.Digest)
		}
	}
	return nil
}
