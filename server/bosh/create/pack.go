package create

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"cupola/server/bosh/release"
)

// sign computes the fingerprint of a part: of the names, contents and modes of its
// files, and of the names that a package depends on.
func (p *part) sign() error {
	chunks := []string{"v2"}
	for _, f := range p.files {
		chunk, err := f.chunk()
		if err != nil {
			return fmt.Errorf("%s '%s': %w", strings.TrimSuffix(p.kind, "s"), p.name, err)
		}
		chunks = append(chunks, chunk)
	}
	if len(p.on) > 0 {
		chunks = append(chunks, strings.Join(slices.Sorted(slices.Values(p.on)), ","))
	}
	p.fingerprint = strings.TrimPrefix(digest([]byte(strings.Join(chunks, ""))), "sha256:")
	return nil
}

func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func (f file) chunk() (string, error) {
	info, target, err := f.stat()
	if err != nil {
		return "", err
	}
	chunk := f.at
	if target != "" {
		chunk += digest([]byte(target))
	} else {
		content, err := os.Open(f.path)
		if err != nil {
			return "", err
		}
		defer content.Close()
		sum := sha256.New()
		if _, err := io.Copy(sum, content); err != nil {
			return "", err
		}
		chunk += "sha256:" + hex.EncodeToString(sum.Sum(nil))
	}
	switch {
	case f.modeless:
	case target != "":
		chunk += "symlink"
	case info.Mode()&0o111 != 0:
		chunk += "100755"
	default:
		chunk += "100644"
	}
	return chunk, nil
}

// stat is the file, and where it leads if it is packed as a symbolic link.
func (f file) stat() (info fs.FileInfo, target string, err error) {
	if f.follow {
		info, err = os.Stat(f.path)
		return info, "", err
	}
	if info, err = os.Lstat(f.path); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		return info, "", err
	}
	target, err = os.Readlink(f.path)
	return info, target, err
}

// Fingerprints are those of the jobs and packages, by "jobs/NAME" and "packages/NAME".
func (d *Directory) Fingerprints() map[string]string {
	all := map[string]string{}
	for _, p := range slices.Concat(d.jobs, d.packages) {
		all[p.kind+"/"+p.name] = p.fingerprint
	}
	return all
}

// Identity is what a tarball says of itself.
type Identity struct {
	Name, Version string
	CommitHash    string
	Uncommitted   bool
}

// Write writes the tarball of a release. Archives are made in a temporary file each.
func (d *Directory) Write(id Identity, to io.Writer) error {
	m := release.Manifest{Name: id.Name, Version: id.Version, CommitHash: id.CommitHash, Uncommitted: id.Uncommitted, Jobs: []release.Archived{}, Packages: []release.Archived{}}
	z := gzip.NewWriter(to)
	out := tar.NewWriter(z)
	for _, p := range slices.Concat(d.jobs, d.packages) {
		a, err := p.add(out)
		if err != nil {
			return fmt.Errorf("%s '%s': %w", strings.TrimSuffix(p.kind, "s"), p.name, err)
		}
		if p.kind == "jobs" {
			m.Jobs = append(m.Jobs, a)
		} else {
			m.Packages = append(m.Packages, a)
		}
	}
	var text bytes.Buffer
	if err := yaml.NewEncoder(&text).Encode(m); err != nil {
		return err
	}
	if err := out.WriteHeader(&tar.Header{Name: "./" + release.ManifestFile, Mode: 0o644, Size: int64(text.Len()), Typeflag: tar.TypeReg}); err != nil {
		return err
	}
	if _, err := out.Write(text.Bytes()); err != nil {
		return err
	}
	if err := out.Close(); err != nil {
		return err
	}
	return z.Close()
}

// add adds the archive of a part.
func (p *part) add(out *tar.Writer) (a release.Archived, err error) {
	tmp, err := os.CreateTemp("", "cupola-release-")
	if err != nil {
		return a, err
	}
	defer tmp.Close()
	if err := os.Remove(tmp.Name()); err != nil {
		return a, err
	}
	sum := sha256.New()
	if err := p.write(io.MultiWriter(tmp, sum)); err != nil {
		return a, err
	}
	size, err := tmp.Seek(0, io.SeekCurrent)
	if err == nil {
		_, err = tmp.Seek(0, io.SeekStart)
	}
	if err != nil {
		return a, err
	}
	if err := out.WriteHeader(&tar.Header{Name: "./" + p.kind + "/" + p.name + ".tgz", Mode: 0o644, Size: size, Typeflag: tar.TypeReg}); err != nil {
		return a, err
	}
	a = release.Archived{Name: p.name, Version: p.fingerprint, Fingerprint: p.fingerprint, Digest: "sha256:" + hex.EncodeToString(sum.Sum(nil)), Dependencies: p.on}
	_, err = io.Copy(out, tmp)
	return a, err
}

// write writes the archive of a part: the same bytes for the same files.
func (p *part) write(to io.Writer) error {
	z := gzip.NewWriter(to)
	out := tar.NewWriter(z)
	for _, f := range p.files {
		if err := f.add(out); err != nil {
			return err
		}
	}
	if err := out.Close(); err != nil {
		return err
	}
	return z.Close()
}

func (f file) add(out *tar.Writer) error {
	info, target, err := f.stat()
	if err != nil {
		return err
	}
	h := &tar.Header{Name: "./" + f.at, Mode: 0o644, Size: info.Size(), Typeflag: tar.TypeReg, ModTime: time.Unix(0, 0)}
	if info.Mode()&0o100 != 0 {
		h.Mode = 0o755
	}
	if target != "" {
		h.Typeflag, h.Linkname, h.Size = tar.TypeSymlink, target, 0
		return out.WriteHeader(h)
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", f.path)
	}
	if err := out.WriteHeader(h); err != nil {
		return err
	}
	content, err := os.Open(f.path)
	if err != nil {
		return err
	}
	defer content.Close()
	_, err = io.Copy(out, content)
	return err
}
