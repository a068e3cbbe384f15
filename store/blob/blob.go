// Package blob keeps packages, droplets, buildpacks, build caches and backups of service instances as files
// that are named by their SHA-256. A file is written aside, synced and then
// renamed, so that a name never stands for half of its content. Droplets that were
// staged here, and packages that hardly compress, are kept unpacked instead,
// elsewhere: their archives are made on demand.
package blob

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"time"

	"cupola/runtime/durable"
	"cupola/runtime/pattern"
)

// Store is a directory of blobs. It is safe for concurrent use.
type Store struct {
	// Unpacked has blobs that have no file; nil: none. It is set before the Store is used.
	Unpacked Unpacked

	dir    string
	opened time.Time
	sound  durable.Proofs[identity]

	mu   sync.Mutex           // held while a name is given or taken away
	kept map[string]time.Time // when blobs were kept, by digest; of those of the last grace
}

// Unpacked keeps archives unpacked, whose bytes it can make again.
type Unpacked interface {
	Kept(digest string) (dir string, ok bool)
	// WriteArchive writes an archive; an error at its end may say that it is another.
	WriteArchive(ctx context.Context, digest string, w io.Writer) error
	// OpenFile opens a file in an archive; fs.ErrNotExist when there is none.
	OpenFile(digest, name string) (*os.File, error)
	// KeepZip keeps the files in a zip, and returns the digest of the zip that it will make of them; "" if it cannot.
	// Files that the archives like have, too, are not stored again.
	KeepZip(ctx context.Context, zip *os.File, like ...string) (digest string, size int64, err error)
}

// Blob names a blob.
type Blob struct {
	Digest string // sha256, hex
	Size   int64  // bytes
}

var digestPattern = pattern.Lazy(`^[0-9a-f]{64}$`)

// Open opens the store in dir, makes it when absent, and removes what an
// interrupted Put left.
func Open(dir string) (*Store, error) {
	tmp := filepath.Join(dir, "tmp")
	if err := durable.EmptyDir(tmp); err != nil {
		return nil, err
	}
	return &Store{dir: dir, opened: time.Now(), kept: map[string]time.Time{}}, nil
}

// Temp opens a file of the store that becomes a blob by Commit, or goes by
// Discard.
func (s *Store) Temp() (*Temp, error) {
	f, err := os.CreateTemp(filepath.Join(s.dir, "tmp"), "blob-")
	if err != nil {
		return nil, err
	}
	return &Temp{File: f, store: s}, nil
}

// Temp is a file on its way into the store.
type Temp struct {
	*os.File
	store   *Store
	resting bool
}

// Rest closes the file until Commit, so that many can wait for theirs.
func (t *Temp) Rest() error {
	t.resting = true
	return t.Close()
}

// Discard removes the file; after Commit it does nothing.
func (t *Temp) Discard() {
	t.Close()
	os.Remove(t.Name())
}

// Commit makes the file a blob.
func (t *Temp) Commit() (Blob, error) {
	if t.resting {
		f, err := os.Open(t.Name())
		if err != nil {
			return Blob{}, err
		}
		t.File = f
	}
	if _, err := t.Seek(0, io.SeekStart); err != nil {
		return Blob{}, err
	}
	h := sha256.New()
	n, err := io.Copy(h, t)
	if err != nil {
		return Blob{}, err
	}
	b := Blob{Digest: hex.EncodeToString(h.Sum(nil)), Size: n}
	return b, t.store.keep(t.File, b)
}

// CommitUnpacked is Commit of a zip that may become another one of the same files.
// Those that the blobs like have, too, are not stored again.
func (t *Temp) CommitUnpacked(ctx context.Context, like ...string) (Blob, error) {
	if t.store.Unpacked == nil {
		return t.Commit()
	}
	digest, size, err := t.store.Unpacked.KeepZip(ctx, t.File, like...)
	if digest == "" && err == nil {
		return t.Commit()
	}
	return Blob{digest, size}, err
}

func (s *Store) keep(f *os.File, b Blob) error {
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	to := s.path(b.Digest)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), to); err != nil {
		return err
	}
	s.kept[b.Digest] = time.Now()
	// A row that names the blob must not outlive the name.
	return errors.Join(durable.Sync(filepath.Dir(to)), durable.Sync(s.dir))
}

// Put keeps what r gives, until it ends or ctx does.
func (s *Store) Put(ctx context.Context, r io.Reader) (Blob, error) {
	t, err := s.Temp()
	if err != nil {
		return Blob{}, err
	}
	defer t.Discard()
	if _, err := io.Copy(t, &reader{ctx, r}); err != nil {
		return Blob{}, err
	}
	return t.Commit()
}

// Ensure is Put of what may well be there: then nothing is written.
func (s *Store) Ensure(ctx context.Context, content []byte) (Blob, error) {
	sum := sha256.Sum256(content)
	b := Blob{Digest: hex.EncodeToString(sum[:]), Size: int64(len(content))}
	if have, err := os.ReadFile(s.path(b.Digest)); err == nil && bytes.Equal(have, content) {
		return b, nil
	}
	return s.Put(ctx, bytes.NewReader(content))
}

// reader stops reading when its context ends.
type reader struct {
	ctx context.Context
	io.Reader
}

func (r *reader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.Reader.Read(p)
}

// Has reports whether there is a blob, whatever it holds.
func (s *Store) Has(digest string) bool {
	if !digestPattern().MatchString(digest) {
		return false
	}
	_, err := os.Stat(s.path(digest))
	return err == nil || s.isUnpacked(digest)
}

// unpacked finds the directory of a blob that has no file.
func (s *Store) unpacked(digest string) (dir string, ok bool) {
	if s.Unpacked == nil || !digestPattern().MatchString(digest) {
		return "", false
	}
	return s.Unpacked.Kept(digest)
}

func (s *Store) isUnpacked(digest string) bool {
	_, ok := s.unpacked(digest)
	return ok
}

// Path gives the file of a blob, whose content is right, or the directory where it
// is unpacked; fs.ErrNotExist when there is none, durable.ErrDamaged when the file
// has other content.
func (s *Store) Path(digest string) (string, error) {
	f, err := s.openFile(digest)
	if errors.Is(err, fs.ErrNotExist) {
		if dir, ok := s.unpacked(digest); ok {
			return dir, nil
		}
	}
	if err != nil {
		return "", err
	}
	return f.Name(), f.Close()
}

// Link gives a blob's file a further name. The errors are those of Open.
func (s *Store) Link(digest, name string) error {
	f, err := s.openFile(digest)
	if errors.Is(err, fs.ErrNotExist) && s.isUnpacked(digest) {
		return s.packInto(digest, name)
	}
	if err != nil {
		return err
	}
	return errors.Join(os.Link(f.Name(), name), f.Close())
}

// packInto writes the archive of an unpacked blob to a new file.
func (s *Store) packInto(digest, name string) error {
	f, err := s.pack(digest)
	if err != nil {
		return err
	}
	defer f.Discard()
	return os.Rename(f.Name(), name)
}

// pack writes the archive of an unpacked blob.
func (s *Store) pack(digest string) (*Temp, error) {
	t, err := s.Temp()
	if err != nil {
		return nil, err
	}
	if err := s.Unpacked.WriteArchive(context.Background(), digest, t); err != nil {
		t.Discard()
		return nil, fmt.Errorf("blob %s: %w", digest, err)
	}
	return t, nil
}

// Open opens a blob for reading. Its content is right; the errors are those of
// Path. The file of an unpacked blob has no name.
func (s *Store) Open(digest string) (*os.File, error) {
	f, err := s.openFile(digest)
	if !errors.Is(err, fs.ErrNotExist) || !s.isUnpacked(digest) {
		return f, err
	}
	t, err := s.pack(digest)
	if err != nil {
		return nil, err
	}
	_, err = t.Seek(0, io.SeekStart)
	if err := errors.Join(err, os.Remove(t.Name())); err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t.File, nil
}

func (s *Store) openFile(digest string) (*os.File, error) {
	if !digestPattern().MatchString(digest) {
		return nil, fmt.Errorf("blob %q: %w", digest, fs.ErrNotExist)
	}
	f, err := os.Open(s.path(digest))
	if err != nil {
		return nil, err
	}
	if err := s.verify(digest, f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// OpenFile opens a file in an archive that is kept unpacked. The error is
// fs.ErrNotExist when there is none, or the archive is not kept so.
func (s *Store) OpenFile(digest, name string) (*os.File, error) {
	if s.Unpacked == nil {
		return nil, fmt.Errorf("unpacked blob %q: %w", digest, fs.ErrNotExist)
	}
	return s.Unpacked.OpenFile(digest, name)
}

// Prune removes every blob that keep does not name, but for those that were kept
// within the grace: a transaction may be about to name them. Blobs of before
// Open count as kept then. The machine's clock may jump meanwhile.
func (s *Store) Prune(ctx context.Context, keep map[string]bool, grace time.Duration) (removed int, err error) {
	err = filepath.WalkDir(s.dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		if d.IsDir() || !digestPattern().MatchString(d.Name()) || keep[d.Name()] {
			return nil
		}
		gone, err := s.removeOld(p, grace, s.opened)
		if gone {
			removed++
		}
		return err
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.kept, func(_ string, at time.Time) bool { return time.Since(at) > grace })
	return removed, err
}

// Stat describes the file of a blob, whatever it holds. Its time is when the blob was
// kept last, by the machine's clock.
func (s *Store) Stat(digest string) (fs.FileInfo, error) {
	if !digestPattern().MatchString(digest) {
		return nil, fmt.Errorf("blob %q: %w", digest, fs.ErrNotExist)
	}
	return os.Stat(s.path(digest))
}

// Remove removes a blob that no row names any longer and that may be lost at any time,
// unless this Store kept it within the grace. Unlike Prune it takes no account of what
// was kept before Open.
func (s *Store) Remove(digest string, grace time.Duration) (bool, error) {
	if !digestPattern().MatchString(digest) {
		return false, nil
	}
	gone, err := s.removeOld(s.path(digest), grace, time.Time{})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return gone, err
}

// removeOld removes a file, unless it was put there within the grace. before is when
// those count as kept that are not known to be.
func (s *Store) removeOld(p string, grace time.Duration, before time.Time) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, ok := s.kept[filepath.Base(p)]
	if !ok {
		at = before
	}
	if time.Since(at) <= grace {
		return false, nil
	}
	if err := os.Remove(p); err != nil {
		return false, err
	}
	s.sound.Forget(filepath.Base(p))
	return true, nil
}

func (s *Store) path(digest string) string {
	return filepath.Join(s.dir, digest[:2], digest)
}
