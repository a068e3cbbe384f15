package tarball

import (
	"archive/tar"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"cupola/rootfs/unpack"
	"cupola/server/bosh/release"
	"cupola/server/uploads"
	"cupola/store/blob"
	"cupola/store/cf"
)

// Bounds of a tarball; the largest public releases stay below.
const (
	maxBytes   = 8 << 30 // as it is sent
	maxEntries = 10_000
	maxTotal   = 16 << 30 // of all its files
)

// refusal is an error of the tarball, which a retry does not mend.
type refusal struct{ error }

func (r refusal) Unwrap() error { return r.error }

func refuse(format string, args ...any) error { return refusal{fmt.Errorf(format, args...)} }

// IsRefusal reports whether the tarball is at fault.
func IsRefusal(err error) bool {
	_, is := errors.AsType[refusal](err)
	return is
}

// Want is what a tarball must be; empty fields accept any.
type Want struct {
	Digest        string // as release.ParseDigests reads it
	Name, Version string
}

// Read reads a release's tarball and keeps the archives of its jobs and packages.
// If the tarball is at fault, the error is a Refusal, and nothing is kept.
func Read(ctx context.Context, from io.Reader, want Want, blobs *blob.Store) (*cf.BOSHRelease, error) {
	digests, err := release.ParseDigests(want.Digest)
	if err != nil {
		return nil, refusal{err}
	}
	r := &reader{ctx: ctx, blobs: blobs, archives: map[string]*archive{}}
	defer r.discard()
	if err := r.readChecked(from, digests); err != nil {
		return nil, blame(err)
	}
	m, err := release.ParseManifest(r.manifest)
	if err != nil {
		return nil, refusal{err}
	}
	if want.Name != "" && want.Name != m.Name || want.Version != "" && want.Version != m.Version {
		return nil, refuse("the tarball has the release '%s/%s', and '%s/%s' was expected", m.Name, m.Version, cmp.Or(want.Name, m.Name), cmp.Or(want.Version, m.Version))
	}
	of := &cf.BOSHRelease{Name: m.Name, Version: m.Version, CommitHash: m.CommitHash, Uncommitted: m.Uncommitted}
	for _, step := range []func(*release.Manifest, *cf.BOSHRelease) error{r.jobs, r.packages, r.compiled} {
		if err := step(m, of); err != nil {
			return nil, blame(err)
		}
	}
	return of, r.commit()
}

// blame makes the faults of archives Refusals.
func blame(err error) error {
	if _, entry := errors.AsType[*unpack.EntryError](err); entry || errors.Is(err, io.ErrUnexpectedEOF) || uploads.IsInvalid(err) {
		return refusal{err}
	}
	return err
}

type reader struct {
	ctx      context.Context
	blobs    *blob.Store
	manifest []byte
	archives map[string]*archive // by their names in the tarball, without .tgz
	keep     []*archive
	total    int64
}

// archive is the archive of a job or package.
type archive struct {
	file *blob.Temp
	sums *release.Sums
}

func (r *reader) discard() {
	for _, a := range r.archives {
		a.file.Discard()
	}
}

// commit makes the archives that the release names blobs.
func (r *reader) commit() error {
	for _, a := range r.keep {
		if _, err := a.file.Commit(); err != nil {
			return err
		}
	}
	return nil
}

// readChecked reads the tarball to its last byte, and compares its digests.
func (r *reader) readChecked(from io.Reader, want release.Digests) error {
	sums := release.NewSums()
	from = &bounded{io.TeeReader(from, sums), maxBytes}
	err := r.read(from)
	if len(want) == 0 {
		return err
	}
	if _, rest := io.Copy(io.Discard, from); rest != nil {
		return errors.Join(err, rest)
	}
	if wrong := sums.Check(want); wrong != nil {
		return refuse("Release SHA1 does not match the expected SHA1: %w", wrong)
	}
	return err
}

// bounded refuses to read more than some bytes.
type bounded struct {
	io.Reader
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, refuse("the release is larger than %d bytes", int64(maxBytes))
	}
	return n, err
}

// read takes the tarball apart.
func (r *reader) read(from io.Reader) error {
	plain, err := unpack.Decompress(from)
	if err != nil {
		return err
	}
	defer plain.Close()
	t := tar.NewReader(plain)
	for n := 0; ; n++ {
		h, err := t.Next()
		if err == io.EOF {
			break
		}
		if err := errors.Join(err, r.ctx.Err()); err != nil {
			if errors.Is(err, tar.ErrHeader) || errors.Is(err, io.ErrUnexpectedEOF) {
				return refuse("the release is not a whole tarball: %w", err)
			}
			return fmt.Errorf("read the release: %w", err)
		}
		if n == maxEntries {
			return refuse("the release has more than %d files", maxEntries)
		}
		if err := r.entry(h, t); err != nil {
			return err
		}
	}
	if r.manifest == nil {
		return refuse("Release manifest not found: the tarball has no %s", release.ManifestFile)
	}
	return nil
}

func (r *reader) entry(h *tar.Header, content io.Reader) error {
	name := path.Clean(h.Name)
	dir, file := path.Split(name)
	of, isArchive := strings.CutSuffix(name, ".tgz")
	isArchive = isArchive && (dir == "jobs/" || dir == "packages/" || dir == "compiled_packages/")
	if !isArchive && name != release.ManifestFile {
		return nil
	}
	if h.Typeflag != tar.TypeReg {
		return refuse("%s in the release is not a regular file", file)
	}
	if r.total += h.Size; r.total > maxTotal {
		return refuse("the release has more than %d bytes", int64(maxTotal))
	}
	if isArchive {
		return r.archive(of, content)
	}
	if r.manifest != nil {
		return refuse("%s is there twice", name)
	}
	text, err := io.ReadAll(io.LimitReader(content, release.MaxManifest+1))
	r.manifest = text
	return err
}

func (r *reader) archive(name string, content io.Reader) error {
	if r.archives[name] != nil {
		return refuse("%s.tgz is there twice", name)
	}
	t, err := r.blobs.Temp()
	if err != nil {
		return err
	}
	a := &archive{t, release.NewSums()}
	r.archives[name] = a
	if _, err := io.Copy(io.MultiWriter(t, a.sums), content); err != nil {
		return err
	}
	return t.Rest()
}

// take finds and checks the archive of a job or package, and returns its digest.
// check reads it.
func (r *reader) take(kind, dir string, of release.Archived, check func(*openArchive) error) (string, error) {
	a := r.archives[dir+"/"+of.Name]
	if a == nil {
		return "", refuse("%s '%s' is not in the tarball: it has no %s/%s.tgz", kind, of.Name, dir, of.Name)
	}
	want, err := release.ParseDigests(of.Digest)
	if err == nil {
		err = a.sums.Check(want)
	}
	if err != nil {
		return "", refuse("%s '%s': %w", kind, of.Name, err)
	}
	f, err := openRested(a.file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if err := check(f); err != nil {
		return "", fmt.Errorf("%s '%s': %w", kind, of.Name, err)
	}
	r.keep = append(r.keep, a)
	return a.sums.SHA256(), nil
}
