package debian

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"cupola/runtime/fault"
)

// maxIndex bounds an index whose size no signature vouches for yet.
const maxIndex = 512 << 20

// An archive is one pocket on one mirror.
type archive struct {
	pocket   pocket
	base     string
	release  *release // nil: the mirrors do not have this pocket
	packages []*available
	warning  string
}

// resolveLock reads the indexes of all pockets and chooses the packages.
func (b *builder) resolveLock(ctx context.Context) (*Lock, error) {
	wanted, err := variantPackages(b.Variant)
	if err != nil {
		return nil, err
	}
	archives, err := b.openArchives(ctx)
	if err != nil {
		return nil, err
	}
	b.reporter.report(Progress{Step: stepResolve})
	var date time.Time
	var indexes [][]*available
	for _, a := range archives {
		indexes = append(indexes, a.packages)
		date = later(date, a.release.date)
	}
	c, err := newCatalog(indexes...)
	if err != nil {
		return nil, err
	}
	set, err := resolve(c, selection{slices.Concat(wanted, b.Packages), preferredPackages(), b.Without})
	if err != nil {
		return nil, fmt.Errorf("choose packages of %s: %w", b.suite.codename, err)
	}
	return newLock(b.Options, date, set), nil
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// openArchives opens the pockets that the mirrors have, in the suite's order. The
// first pocket's release comes alone, for it settles the keys.
func (b *builder) openArchives(ctx context.Context) ([]*archive, error) {
	keys, err := loadKeyring(b.suite.keys, b.Keyrings, hostKeyrings(b.host))
	if err != nil {
		return nil, err
	}
	all := make([]*archive, len(b.suite.pockets))
	group, gctx := fault.NewGroup(ctx)
	for i, p := range b.suite.pockets {
		if i == 0 {
			if all[0], err = b.openArchive(ctx, p, keys); err != nil {
				return nil, err
			}
		}
		group.Go(fault.ErrFunc("debian", func() (err error) {
			if i > 0 {
				if all[i], err = b.openArchive(gctx, p, keys); err != nil {
					return err
				}
			}
			if all[i].release != nil {
				all[i].packages, err = b.readIndexes(gctx, all[i])
			}
			return err
		}))
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(a *archive) bool {
		if a.warning != "" {
			b.warnings = append(b.warnings, a.warning)
		}
		return a.release == nil
	}), nil
}

// openArchive tries the mirrors of a pocket in turn. A pocket that no mirror has
// comes back without a release and with a warning, if a tree can do without it.
func (b *builder) openArchive(ctx context.Context, p pocket, keys *keyring) (*archive, error) {
	bases, err := mirrors(b.Options, b.suite, p, b.host)
	absent := true
	for _, base := range bases {
		a := &archive{pocket: p, base: base}
		tryErr := b.readRelease(ctx, a, keys)
		if tryErr == nil {
			return a, nil
		}
		absent = absent && errors.Is(tryErr, errNotFound)
		err = errors.Join(err, fmt.Errorf("read index of %s: %w", p.name, tryErr))
	}
	if p.needed || !absent {
		return nil, err
	}
	return &archive{warning: fmt.Sprintf("built without %s: %v", p.name, err)}, nil
}

// readRelease fills in a's release, from nothing but verified text.
func (b *builder) readRelease(ctx context.Context, a *archive, keys *keyring) error {
	url := a.base + "/dists/" + a.pocket.name + "/InRelease"
	b.reporter.report(Progress{Step: stepIndex, Detail: a.pocket.name})
	signed, err := b.fetcher.small(ctx, url, maxRelease)
	if err != nil {
		return err
	}
	text, err := keys.open(signed, b.now)
	if err != nil && a.pocket.needed {
		if text, err = nil, b.bootstrapKeys(ctx, a, signed, keys); err == nil {
			text, err = keys.open(signed, b.now)
		}
	}
	if err != nil {
		return fmt.Errorf("signature of %s by a key of %s: %w: install %s", url, b.suite.distro, err, b.suite.keyring)
	}
	if a.release, err = parseRelease(string(text)); err != nil {
		return fmt.Errorf("%s: %w", url, err)
	}
	return errors.Join(a.release.check(a.pocket.name, b.now), b.checkRollback(a))
}

// checkRollback remembers the newest date seen of each pocket next to the cached
// files and refuses an older one: a mirror must not bring old holes back.
func (b *builder) checkRollback(a *archive) error {
	seen := filepath.Join(b.CacheDir, "date-"+a.pocket.name+"-"+strings.ToLower(b.suite.distro))
	if raw, err := os.ReadFile(seen); err == nil {
		last, err := time.Parse(time.RFC3339, strings.TrimSpace(string(raw)))
		if err == nil && a.release.date.Before(last) {
			return fmt.Errorf("the mirror's index is from %s, older than the %s seen before: use a mirror that is in step, or remove %s",
				a.release.date.Format(time.DateOnly), last.Format(time.DateOnly), seen)
		}
	}
	return os.WriteFile(seen, []byte(a.release.date.UTC().Format(time.RFC3339)+"\n"), 0o644)
}

// readIndexes reads the Packages files of all components.
func (b *builder) readIndexes(ctx context.Context, a *archive) ([]*available, error) {
	var all []*available
	for _, component := range b.suite.components {
		text, err := b.readIndex(ctx, a, component+"/binary-"+b.Arch+"/Packages")
		if err != nil {
			return nil, err
		}
		packages, err := parsePackages(text, b.Arch, a.pocket.name)
		if err != nil {
			return nil, fmt.Errorf("%s of %s: %w", component, a.pocket.name, err)
		}
		all = append(all, packages...)
	}
	return all, nil
}

// readIndex prefers gzip, which unpacks several times faster than xz; some
// pockets have only the latter.
func (b *builder) readIndex(ctx context.Context, a *archive, name string) (string, error) {
	for _, ext := range []string{".gz", ".xz", ""} {
		d, ok := a.release.files[name+ext]
		if !ok {
			continue
		}
		dist := a.base + "/dists/" + a.pocket.name + "/"
		urls := []string{dist + name + ext}
		if a.release.byHash {
			urls = []string{dist + filepath.Dir(name) + "/by-hash/SHA256/" + d.sha256, urls[0]}
		}
		path, _, err := b.fetcher.file(ctx, d, urls...)
		if err != nil {
			return "", err
		}
		plain, ok := a.release.files[name]
		if !ok {
			plain.size = maxIndex
		}
		return unpackIndex(path, ext, min(plain.size, maxIndex))
	}
	return "", fmt.Errorf("%s has no index %s: has it packages for this architecture?", a.base, name)
}

func unpackIndex(path, ext string, limit int64) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	r, err := decompress(ext, f)
	if err != nil {
		return "", err
	}
	defer r.Close()
	var text strings.Builder
	if limit < maxIndex {
		text.Grow(int(limit))
	}
	n, err := io.Copy(&text, io.LimitReader(r, limit+1))
	if err == nil && n > limit {
		err = fmt.Errorf("index unpacks to more than %d bytes", limit)
	}
	return text.String(), err
}
