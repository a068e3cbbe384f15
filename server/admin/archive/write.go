package archive

import (
	"archive/tar"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// The members besides those of the manifest: the first and the last.
const (
	manifestName = "manifest.json"
	endName      = "manifest.sha256"
)

const block = 512 // of a tar

// Source is a directory whose files, laid out as in a backup, become one.
type Source struct {
	dir      string
	manifest []byte
	members  []Member
}

// NewSource describes the files of dir, which must not change any more. m says
// the rest. It leaves out the files whose IDs are had, if has is not nil.
func NewSource(ctx context.Context, dir string, m Manifest, has func(id string) bool) (*Source, error) {
	m.Format, m.Members = format, nil
	err := filepath.WalkDir(dir, func(file string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return errors.Join(err, ctx.Err())
		}
		member, err := describe(ctx, dir, file)
		if has == nil || !has(member.ID()) {
			m.Members = append(m.Members, member)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(m.Members, func(a, b Member) int { return cmp.Compare(a.Name, b.Name) })
	if err := m.check(); err != nil {
		return nil, err
	}
	text, err := json.Marshal(m)
	return &Source{dir: dir, manifest: text, members: m.Members}, err
}

func describe(ctx context.Context, dir, file string) (Member, error) {
	name, err := filepath.Rel(dir, file)
	if err != nil {
		return Member{}, err
	}
	info, err := os.Lstat(file)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", file)
	}
	if err != nil {
		return Member{}, err
	}
	m := Member{Name: filepath.ToSlash(name), Size: info.Size()}
	if m.SHA256 = m.addressed(); m.SHA256 != "" {
		return m, nil // and compared when it is written
	}
	m.SHA256, err = digestFile(ctx, file)
	return m, err
}

func digestFile(ctx context.Context, file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	_, err = io.Copy(h, &reader{ctx: ctx, Reader: f})
	return hex.EncodeToString(h.Sum(nil)), err
}

// reader ends with its context.
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

// Members are the files.
func (s *Source) Members() []Member { return s.members }

// Size is how many bytes WriteTo writes.
func (s *Source) Size() int64 {
	size := padded(int64(len(s.manifest))) + padded(2*sha256.Size) + 2*block
	for _, m := range s.members {
		size += padded(m.Size)
	}
	return size
}

// padded is what a member takes of a tar.
func padded(size int64) int64 { return block + (size+block-1)/block*block }

// WriteTo writes the tar, not compressed. A file that is not what its name says
// is an error: what is damaged here would be so in the backup.
func (s *Source) WriteTo(ctx context.Context, w io.Writer) error {
	t := tar.NewWriter(w)
	if err := writeMember(t, manifestName, int64(len(s.manifest)), strings.NewReader(string(s.manifest))); err != nil {
		return err
	}
	for _, m := range s.members {
		if err := s.copy(ctx, t, m); err != nil {
			return fmt.Errorf("%s: %w", m.Name, err)
		}
	}
	end := endOf(s.manifest)
	if err := writeMember(t, endName, int64(len(end)), strings.NewReader(end)); err != nil {
		return err
	}
	return t.Close()
}

func (s *Source) copy(ctx context.Context, t *tar.Writer, m Member) error {
	f, err := os.Open(filepath.Join(s.dir, filepath.FromSlash(m.Name)))
	if err != nil {
		return err
	}
	defer f.Close()
	h := sha256.New()
	if err := writeMember(t, m.Name, m.Size, io.TeeReader(&reader{ctx: ctx, Reader: f}, h)); err != nil {
		return err
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != m.SHA256 {
		return fmt.Errorf("it is damaged on this machine: its SHA-256 is %s", got)
	}
	return nil
}

func writeMember(t *tar.Writer, name string, size int64, r io.Reader) error {
	// GNU's headers have room for any size: one block each.
	if err := t.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o600, Size: size, Format: tar.FormatGNU}); err != nil {
		return err
	}
	_, err := io.CopyN(t, r, size)
	return err
}

// endOf is what the last member says.
func endOf(manifest []byte) string {
	sum := sha256.Sum256(manifest)
	return hex.EncodeToString(sum[:])
}

// Compress makes a backup of a tar that a Source wrote. Close ends it.
func Compress(w io.Writer) (io.WriteCloser, error) {
	return zstd.NewWriter(w, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(2), zstd.WithEncoderCRC(true))
}
