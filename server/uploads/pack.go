package uploads

import (
	"archive/zip"
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"

	"cupola/store/blob"
)

// Resource is a file of an app by its fingerprint.
type Resource struct {
	Path string
	Mode fs.FileMode // permissions
	SHA1 string      // hex
	Size int64       // bytes
}

// Only files of these sizes are remembered: smaller ones are sent faster than
// looked up. Cloud Foundry's resource_pool has the same bounds.
const (
	minPooled = 64 << 10
	maxPooled = 512 << 20
)

// pooled reports whether files of this size are remembered.
func pooled(size int64) bool { return size >= minPooled && size <= maxPooled }

// Upload is an app's files: those in a zip, and those the server already has.
type Upload struct {
	Zip       *blob.Temp // becomes the package if it holds all files; nil: all files are known
	Resources []Resource
	Pool      func(sha1 string, size int64) (Known, bool)
	Limits    Limits // zero: DefaultLimits
}

// Known is where the server has a file.
type Known struct {
	Digest string // of a blob
	Entry  string // the file's name in the zip that the blob is; "" if the blob is the file
}

// Packed is an upload that was checked and stored.
type Packed struct {
	blob.Blob
	Pool []Pooling // files to remember
}

// Pooling is a file to remember.
type Pooling struct {
	SHA1  string
	Size  int64
	Entry string // its name in the zip
}

// Pack checks an upload and stores it as one zip. It stores nothing of an
// invalid upload, and removes the uploaded zip.
func Pack(ctx context.Context, blobs *blob.Store, u Upload) (*Packed, error) {
	if u.Limits == (Limits{}) {
		u.Limits = defaultLimits
	}
	p := &packer{ctx: ctx, blobs: blobs, upload: u, check: newChecker(u.Limits), out: &Packed{}}
	defer p.close()
	if u.Zip != nil {
		if err := p.openZip(); err != nil {
			return nil, err
		}
	}
	if u.Zip == nil && len(u.Resources) == 0 {
		return nil, &refusal{"", "holds no files"}
	}
	if err := p.checkZip(); err != nil {
		return nil, err
	}
	var err error
	if len(u.Resources) == 0 {
		p.out.Blob, err = p.upload.Zip.Commit()
	} else {
		p.out.Blob, err = p.merge()
	}
	return p.out, err
}

type packer struct {
	ctx    context.Context
	blobs  *blob.Store
	upload Upload
	check  *checker
	zip    *zip.Reader
	kept   keptZips
	out    *Packed
}

func (p *packer) openZip() (err error) {
	p.zip, err = openZip(p.upload.Zip.File)
	return err
}

// checkZip reads every entry and notes the files to remember.
func (p *packer) checkZip() error {
	if p.zip == nil {
		return nil
	}
	if err := p.checkTree(); err != nil {
		return err
	}
	for _, f := range p.zip.File {
		if err := p.checkContent(f); err != nil {
			return err
		}
	}
	return nil
}

// checkTree checks the names, types, sizes and links of all entries before any
// content is read or stored.
func (p *packer) checkTree() error {
	if err := p.check.sizes(p.zip.File); err != nil {
		return err
	}
	for _, f := range p.zip.File {
		name, err := p.check.entry(f.Name, f.Mode())
		if err == nil && f.Mode()&fs.ModeSymlink != 0 {
			err = p.checkLink(f, name)
		}
		if err != nil {
			return err
		}
	}
	return p.check.linksStay()
}

func (p *packer) checkLink(f *zip.File, name string) error {
	to, err := p.target(f)
	if err != nil {
		return err
	}
	return p.check.link(name, to)
}

func (p *packer) checkContent(f *zip.File) error {
	switch {
	case !f.Mode().IsRegular():
		return nil
	case !pooled(int64(f.UncompressedSize64)):
		return p.check.content(p.ctx, f, io.Discard)
	}
	h := sha1.New()
	if err := p.check.content(p.ctx, f, h); err != nil {
		return err
	}
	p.out.Pool = append(p.out.Pool, Pooling{SHA1: hex.EncodeToString(h.Sum(nil)), Size: int64(f.UncompressedSize64), Entry: f.Name})
	return nil
}

// close removes the uploaded zip, unless it is the package.
func (p *packer) close() {
	p.kept.close()
	if p.upload.Zip != nil {
		p.upload.Zip.Discard()
	}
}

func (p *packer) target(f *zip.File) (string, error) {
	if f.UncompressedSize64 > maxLink {
		return "", &refusal{f.Name, "is a symbolic link that is too long"}
	}
	var s strings.Builder
	err := p.check.content(p.ctx, f, &s)
	return s.String(), err
}

// merge makes one zip of the uploaded and the known files.
func (p *packer) merge() (blob.Blob, error) {
	t, err := p.blobs.Temp()
	if err != nil {
		return blob.Blob{}, err
	}
	defer t.Discard()
	w := zip.NewWriter(t)
	if p.zip != nil {
		for _, f := range p.zip.File {
			if err := w.Copy(f); err != nil {
				return blob.Blob{}, err
			}
		}
	}
	for _, r := range p.upload.Resources {
		if err := p.add(w, r); err != nil {
			return blob.Blob{}, err
		}
	}
	if err := w.Close(); err != nil {
		return blob.Blob{}, err
	}
	return t.Commit()
}

func (p *packer) add(w *zip.Writer, r Resource) error {
	name, err := p.check.entry(r.Path, r.Mode)
	if err != nil {
		return err
	}
	known, ok := p.upload.Pool(r.SHA1, r.Size)
	if !ok || name == "" {
		return &refusal{r.Path, "is not known here: upload it"}
	}
	if p.check.left -= r.Size; p.check.left < 0 {
		return p.check.tooLarge()
	}
	h := zip.FileHeader{Name: name, Method: zip.Deflate}
	h.SetMode(r.Mode.Perm())
	if known.Entry == "" {
		err = p.addBlob(w, h, known.Digest)
	} else {
		err = p.addEntry(w, h, known)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return &refusal{r.Path, "is not known here any longer: upload it"}
	}
	if err != nil {
		return fmt.Errorf("add the known file %s: %w", r.Path, err)
	}
	p.out.Pool = append(p.out.Pool, Pooling{SHA1: r.SHA1, Size: r.Size, Entry: name})
	return nil
}

// addBlob adds a file that is a blob.
func (p *packer) addBlob(w *zip.Writer, h zip.FileHeader, digest string) error {
	f, err := p.blobs.Open(digest)
	if err != nil {
		return err
	}
	defer f.Close()
	to, err := w.CreateHeader(&h)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, &ctxReader{p.ctx, f})
	return err
}

// addEntry adds a file of an earlier package, as it is compressed there.
func (p *packer) addEntry(w *zip.Writer, h zip.FileHeader, known Known) error {
	f, err := p.kept.find(p.blobs, known)
	if err != nil {
		return err
	}
	h.Method, h.CRC32, h.CompressedSize64, h.UncompressedSize64 = f.Method, f.CRC32, f.CompressedSize64, f.UncompressedSize64
	from, err := f.OpenRaw()
	if err != nil {
		return err
	}
	to, err := w.CreateRaw(&h)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, &ctxReader{p.ctx, from})
	return err
}

// ParseMode parses a resource's octal mode; "" is 0644.
func ParseMode(s string) (fs.FileMode, error) {
	if s == "" {
		return 0o644, nil
	}
	n, err := strconv.ParseUint(s, 8, 32)
	if err != nil {
		return 0, &refusal{"", fmt.Sprintf("has a resource of the mode %q, which is not an octal number", s)}
	}
	return fs.FileMode(n).Perm(), nil
}
