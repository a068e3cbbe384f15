package debian

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync/atomic"

	"cupola/runtime/fault"
)

const (
	downloads  = 6 // at once
	pipeChunk  = 256 << 10
	pipeChunks = 64 // 16 MiB of each package read ahead
)

// An installed package is what dpkg's database is written from.
type installed struct {
	LockedPackage
	control  paragraph
	members  map[string][]byte
	replaces []clause
	shipped  []string
}

// A counter adds up bytes from many goroutines.
type counter struct{ n atomic.Int64 }

func (c *counter) add(n int64) { c.n.Add(n) }

// A parcel is one package on its way: downloaded, then unpacked in turn.
type parcel struct {
	LockedPackage
	path   string
	ready  chan struct{} // closed when path is there
	deb    *deb
	opened chan struct{} // closed when deb and pipe are there
	pipe   *pipe
}

// install downloads and unpacks the packages of lock. Downloads run at once and
// so does decompression, by far the most of the work; one goroutine writes the
// files, in the lock's order, so that the tree depends on nothing else.
func (b *builder) install(ctx context.Context, lock *Lock) (Result, error) {
	t, err := newTree(b.work, os.Geteuid() == 0, b.IDShift)
	if err != nil {
		return Result{}, err
	}
	defer t.close()
	t.nodes[""].mtime = lock.Date
	if err := makeSkeleton(t, b.Arch); err != nil {
		return Result{}, err
	}
	parcels := b.parcels(lock)
	group, gctx := fault.NewGroup(ctx)
	group.Go(fault.ErrFunc("debian", func() error { return b.download(gctx, parcels) }))
	window := make(chan struct{}, runtime.GOMAXPROCS(0)+1)
	group.Go(fault.ErrFunc("debian", func() error { return b.open(gctx, parcels, window) }))
	var done []*installed
	group.Go(fault.ErrFunc("debian", func() (err error) {
		done, err = b.unpack(gctx, t, parcels, window)
		return err
	}))
	if err := group.Wait(); err != nil {
		return Result{}, err
	}
	b.reporter.report(Progress{Step: stepFinish})
	if err := finish(t, done, b.Extras); err != nil {
		return Result{}, fmt.Errorf("finish the stack: %w", err)
	}
	return Result{
		Lock: lock, Packages: len(done), DownloadedBytes: b.counter.n.Load(), InstalledBytes: t.written, Warnings: b.warnings,
	}, nil
}

// parcels puts base-files first: it decides the modes of the top directories.
func (b *builder) parcels(lock *Lock) []*parcel {
	all := make([]*parcel, len(lock.Packages))
	for i, p := range lock.Packages {
		all[i] = &parcel{LockedPackage: p, ready: make(chan struct{}), opened: make(chan struct{})}
	}
	slices.SortStableFunc(all, func(a, b *parcel) int {
		switch {
		case a.Name == b.Name:
			return 0
		case a.Name == "base-files":
			return -1
		case b.Name == "base-files":
			return 1
		}
		return 0
	})
	return all
}

// download fills the cache, a few files at once, in unpacking order.
func (b *builder) download(ctx context.Context, parcels []*parcel) error {
	var total int64
	for _, p := range parcels {
		total += p.SizeBytes
	}
	var have atomic.Int64
	group, ctx := fault.NewGroup(ctx)
	group.SetLimit(downloads)
	for _, p := range parcels {
		group.Go(fault.ErrFunc("debian", func() error {
			urls, err := b.packageURLs(p.LockedPackage)
			if err != nil {
				return err
			}
			if p.path, _, err = b.fetcher.file(ctx, digest{p.SHA256, p.SizeBytes}, urls...); err != nil {
				return fmt.Errorf("download %s %s: %w%s", p.Name, p.Version, err, b.goneAdvice(err))
			}
			close(p.ready)
			b.reporter.report(Progress{Step: stepDownload, Detail: p.Name, Done: have.Add(p.SizeBytes), Total: total})
			return nil
		}))
	}
	return group.Wait()
}

// goneAdvice explains the usual fate of a lock: mirrors drop old versions.
func (b *builder) goneAdvice(err error) string {
	if b.Lock == nil || !errors.Is(err, errNotFound) {
		return ""
	}
	return ": mirrors drop replaced versions: build without the lock, or pass a mirror that keeps them"
}

// packageURLs lists where a package may lie.
func (b *builder) packageURLs(p LockedPackage) ([]string, error) {
	i := slices.IndexFunc(b.suite.pockets, func(k pocket) bool { return k.name == p.Archive })
	if i < 0 {
		return nil, fmt.Errorf("package %s is from %s, no part of %s", p.Name, p.Archive, b.suite.codename)
	}
	bases, err := mirrors(b.Options, b.suite, b.suite.pockets[i], b.host)
	for j := range bases {
		bases[j] += "/" + p.Filename
	}
	return bases, err
}

// open starts the decompression of each package, as far ahead as window allows.
func (b *builder) open(ctx context.Context, parcels []*parcel, window chan struct{}) error {
	group, gctx := fault.NewGroup(ctx)
	for _, p := range parcels {
		select {
		case window <- struct{}{}:
		case <-gctx.Done():
			return errors.Join(group.Wait(), context.Cause(ctx))
		}
		group.Go(fault.ErrFunc("debian", func() error {
			select {
			case <-p.ready:
			case <-gctx.Done():
				return context.Cause(gctx)
			}
			// The reader outlives this group, and with it gctx.
			return p.decompress(ctx)
		}))
	}
	return group.Wait()
}

// decompress opens the package and pushes its data archive into the pipe.
func (p *parcel) decompress(ctx context.Context) (err error) {
	if p.deb, err = openDeb(p.path); err != nil {
		return fmt.Errorf("open %s: %w", filepath.Base(p.Filename), err)
	}
	defer p.deb.close()
	p.pipe = newPipe(ctx)
	close(p.opened)
	r, err := decompress(p.deb.data.name, p.deb.data.data)
	if err == nil {
		defer r.Close()
		_, err = io.Copy(p.pipe, r)
	}
	p.pipe.closeWith(err)
	if err != nil {
		return fmt.Errorf("unpack %s: %w", p.Name, err)
	}
	return nil
}

// unpack writes the packages' files in order.
func (b *builder) unpack(ctx context.Context, t *tree, parcels []*parcel, window chan struct{}) ([]*installed, error) {
	done := make(map[string]*installed, len(parcels))
	all := make([]*installed, 0, len(parcels))
	for i, p := range parcels {
		select {
		case <-p.opened:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		in, err := p.identify()
		if err != nil {
			return nil, err
		}
		done[p.Name] = in
		u := &unpacker{tree: t, owner: p.Name, yields: func(other string) (string, error) { return replacing(in, done[other]) }}
		if err := u.unpack(p.pipe); err != nil {
			return nil, fmt.Errorf("unpack %s: %w", p.Name, err)
		}
		in.shipped = u.shipped
		all = append(all, in)
		<-window
		b.reporter.report(Progress{Step: stepUnpack, Detail: p.Name, Done: int64(i + 1), Total: int64(len(parcels))})
	}
	return all, nil
}

// identify refuses a .deb that is another package than the lock says.
func (p *parcel) identify() (*installed, error) {
	c := p.deb.control
	if c.get("Package") != p.Name || c.get("Version") != p.Version || c.get("Architecture") != p.Arch {
		return nil, fmt.Errorf("unpack %s %s: the file is package %.60q %.60q", p.Name, p.Version, c.get("Package"), c.get("Version"))
	}
	replaces, err := parseClauses(c.get("Replaces"))
	if err != nil {
		return nil, fmt.Errorf("replaces of %s: %w", p.Name, err)
	}
	return &installed{LockedPackage: p.LockedPackage, control: c, members: p.deb.members, replaces: replaces}, nil
}

// replacing names the one of two packages whose file stays.
func replacing(a, b *installed) (string, error) {
	switch {
	case b == nil:
		return a.Name, nil
	case a.replacesFilesOf(b):
		return a.Name, nil
	case b.replacesFilesOf(a):
		return b.Name, nil
	}
	return "", fmt.Errorf("package %s has it too, and neither replaces the other", b.Name)
}

func (p *installed) replacesFilesOf(other *installed) bool {
	return slices.ContainsFunc(p.replaces, func(c clause) bool {
		return c[0].name == other.Name && c[0].allows(other.Version)
	})
}
