package offline

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"

	"cupola/rootfs/unpack"
	"cupola/server/bosh/manifest"
	"cupola/server/bosh/release"
)

// Bounds of what is unpacked of one release.
const (
	maxEntries = 50_000
	maxBytes   = 512 << 20 // of all its jobs; packages are not unpacked
	maxRelease = 8 << 30   // as it is sent
)

// limits bound what an archive of jobs becomes.
var limits = unpack.Limits{Entries: maxEntries, Bytes: maxBytes}

// download gets a release's tarball from its URL.
func (l *Library) download(ctx context.Context, a manifest.Archive) (*jobs, error) {
	l.say("Downloading release %s/%s", a.Name, a.Version)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.URL, nil)
	if err != nil {
		return nil, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, fmt.Errorf("release '%s/%s': %w", a.Name, a.Version, err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("release '%s/%s': %s answers %s", a.Name, a.Version, a.URL, res.Status)
	}
	j, m, err := l.tarball(ctx, a.URL, res.Body, a.Digest)
	if err == nil && (m.Name != a.Name || m.Version != a.Version) {
		err = fmt.Errorf("the tarball has the release '%s/%s'", m.Name, m.Version)
	}
	if err != nil {
		return nil, fmt.Errorf("release '%s/%s': %w", a.Name, a.Version, err)
	}
	return j, nil
}

// tarball unpacks the jobs of a release's tarball, and compares the digest of all of it.
func (l *Library) tarball(ctx context.Context, key string, from io.Reader, digest string) (*jobs, *release.Manifest, error) {
	want, err := release.ParseDigests(digest)
	if err != nil {
		return nil, nil, err
	}
	dir, err := os.MkdirTemp(l.dir, "release-")
	if err != nil {
		return nil, nil, err
	}
	sums := release.NewSums()
	from = io.TeeReader(io.LimitReader(from, maxRelease), sums)
	text, err := unpackRelease(ctx, dir, from)
	if err != nil {
		return nil, nil, err
	}
	if len(want) > 0 {
		if _, err = io.Copy(io.Discard, from); err == nil {
			err = sums.Check(want)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("Release SHA1 does not match the expected SHA1: %w", err) //nolint:staticcheck // the director's words
		}
	}
	m, err := release.ParseManifest(text)
	if err != nil {
		return nil, nil, err
	}
	j, err := l.opened(key, dir, ".")
	return j, m, err
}

// unpackRelease unpacks the archive of each job, and returns the release's manifest.
func unpackRelease(ctx context.Context, dir string, from io.Reader) (text []byte, err error) {
	plain, err := unpack.Decompress(from)
	if err != nil {
		return nil, err
	}
	defer plain.Close()
	t := tar.NewReader(plain)
	for range maxEntries {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			if text == nil {
				return nil, fmt.Errorf("Release manifest not found: the tarball has no %s", release.ManifestFile) //nolint:staticcheck // the director's words
			}
			return text, nil
		}
		if err != nil {
			return nil, fmt.Errorf("the release is not a whole tarball: %w", err)
		}
		name := path.Clean(h.Name)
		of, isArchive := strings.CutSuffix(name, ".tgz")
		job, isJob := strings.CutPrefix(of, "jobs/")
		switch {
		case h.Typeflag != tar.TypeReg:
		case name == release.ManifestFile:
			text, err = io.ReadAll(io.LimitReader(t, release.MaxManifest+1))
		case isArchive && isJob && filepath.IsLocal(job) && !strings.Contains(job, "/"):
			err = unpackJob(ctx, filepath.Join(dir, job), t)
		}
		if err = errors.Join(err, ctx.Err()); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("the release has more than %d files", maxEntries)
}

func unpackJob(ctx context.Context, dir string, from io.Reader) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	return unpackInto(ctx, dir, from, unpack.Options{Limits: limits})
}

// unpackInto unpacks what a reader gives; archives are read in place, so it goes
// through a file.
func unpackInto(ctx context.Context, dir string, from io.Reader, o unpack.Options) error {
	file, err := os.CreateTemp(filepath.Dir(dir), "archive-")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	if _, err := io.Copy(file, io.LimitReader(from, maxBytes)); err != nil {
		return err
	}
	section, err := unpack.Section(file)
	if err != nil {
		return err
	}
	to, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer to.Close()
	_, err = unpack.Into(ctx, to, section, o)
	return err
}
