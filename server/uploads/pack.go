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
	"slices"
	"strconv"
	"strings"

	"cupola/runtime/durable"
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
	Zip       *blob.Temp // becomes the package, or its files do, if it holds all; nil: all files are known
	Resources []Resource
	Pool      func(sha1 string, size int64) (Known, bool)
	Last      string // digest of the app's last package, which has most files, too; "" of none
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

// Pack checks an upload and stores it as one zip, or as the files that a zip will
// be made of. It stores nothing of an invalid upload, and removes the uploaded zip.
func Pack(ctx context.Context, blobs *blob.Store, u Upload) (*Packed, error) {
	if u.Limits == (Limits{}) {
		u.Limits = defaultLimits
	}
	p := &packer{ctx: ctx, blobs: blobs, upload: u, check: newChecker(u.Limits), like: []string{u.Last}, out: &Packed{}}
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
		p.out.Blob, err = p.store(p.upload.Zip)
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
	like   []string // digests of earlier packages that files are taken from, and of the app's last one
	out    *Packed
}

// store makes a zip with all files the package, or the files themselves: they are on the disk once then, together with the
// droplet, which has most of them. Not where the zip is small beside them, nor where many are small, as it takes long until all are
// on the disk.
func (p *packer) store(t *blob.Temp) (blob.Blob, error) {
	info, err := t.Stat()
	if err != nil {
		return blob.Blob{}, err
	}
	unpacked := p.check.limits.Bytes - p.check.left + int64(len(p.check.kinds))*fileCost
	if unpacked > 2*info.Size() || unpacked > maxUnpacked {
		return t.Commit()
	}
	return t.CommitUnpacked(p.ctx, p.like...)
}

// fileCost is what each file counts besides its content when it is stored unpacked; bytes.
const fileCost = 64 << 10

// maxUnpacked is the size from which zips have another form; bytes.
const maxUnpacked = 1<<32 - 1

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
	return p.store(t)
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
	} else if err = p.addFile(w, h, known, r); errors.Is(err, fs.ErrNotExist) {
		err = p.addEntry(w, h, known)
	}
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, durable.ErrDamaged) {
		return &lostError{&refusal{r.Path, "is not known here any longer: push again to upload it"}, known.Digest, err}
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

// addFile adds a file of an earlier package that is kept unpacked.
func (p *packer) addFile(w *zip.Writer, h zip.FileHeader, known Known, r Resource) error {
	f, err := p.blobs.OpenFile(known.Digest, known.Entry)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	h.Method, h.Modified = zip.Store, info.ModTime() // with its time, it can be stored as the same file
	to, err := w.CreateHeader(&h)
	if err != nil {
		return err
	}
	sum := sha1.New()
	if _, err := io.Copy(io.MultiWriter(to, sum), &ctxReader{p.ctx, f}); err != nil {
		return err
	}
	if is := hex.EncodeToString(sum.Sum(nil)); is != strings.ToLower(r.SHA1) {
		return fmt.Errorf("file %s of blob %s: %w: it has the SHA-1 %s", known.Entry, known.Digest, durable.ErrDamaged, is)
	}
	if !slices.Contains(p.like, known.Digest) {
		p.like = append(p.like, known.Digest)
	}
	return nil
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
