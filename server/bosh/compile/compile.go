package compile

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"sync"

	"cupola/rootfs/layer"
	"cupola/runtime/fairqueue"
	"cupola/runtime/fault"
	"cupola/server/bosh/sandbox"
	"cupola/store"
	"cupola/store/blob"
	"cupola/store/cf"
)

// Config is what a Compiler is made of.
type Config struct {
	Store *store.Store
	Blobs *blob.Store
	Logs  string // the directory of what failed packaging scripts have written
	// Run compiles one package.
	Run func(context.Context, sandbox.Compilation) error
	Log *slog.Logger
}

// Compiler compiles packages. Its methods may be called at the same time.
type Compiler struct {
	Config
	slots *fairqueue.Queue // by deployment

	mu   sync.Mutex
	busy map[string]chan struct{} // what is being compiled, by key; closed when it is not any longer
}

// New makes a Compiler.
func New(c Config) *Compiler {
	n := max(1, runtime.NumCPU()/2) // a compilation uses several processors itself
	return &Compiler{Config: c, slots: fairqueue.New(n, n), busy: map[string]chan struct{}{}}
}

// Request asks for packages of a release.
type Request struct {
	Release    *cf.BOSHRelease
	Packages   []string // names
	OS         string   // of the stemcell: packages that came compiled for it are used
	Stack      string   // its name
	Version    string   // of the stack's files
	Deployment string   // whose turn it is
	// Step takes the name of each compilation, until done is called.
	Step func(stage, subject string) (done func(error))
}

// Compile returns the digests of compiled packages by their names, after it has
// compiled those that are missing, with what they depend on.
func (c *Compiler) Compile(ctx context.Context, r Request) (map[string]string, error) {
	work := &work{Compiler: c, Request: r, packages: map[string]*made{}}
	for _, name := range r.Packages {
		if err := work.need(name); err != nil {
			return nil, err
		}
	}
	group, ctx := fault.NewGroup(ctx)
	for _, m := range work.packages {
		group.Go(fault.ErrFunc("compile", func() error { return work.make(ctx, m) }))
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	digests := map[string]string{}
	for _, name := range r.Packages {
		digests[name] = work.packages[name].digest
	}
	return digests, nil
}

// work is a Compile under way.
type work struct {
	*Compiler
	Request
	packages map[string]*made
}

// made is a package that is needed. digest and key may be read when ready is closed.
type made struct {
	*cf.BOSHReleasePackage
	ready  chan struct{}
	digest string
	key    string // names all that the compiled package depends on
}

// need adds a package, and those that it must be compiled with.
func (w *work) need(name string) error {
	if w.packages[name] != nil {
		return nil
	}
	p := w.Release.Package(name)
	if p == nil {
		return fmt.Errorf("release '%s/%s' has no package '%s'", w.Release.Name, w.Release.Version, name)
	}
	m := &made{BOSHReleasePackage: p, ready: make(chan struct{})}
	w.packages[name] = m
	if digest := p.CompiledFor(w.OS); digest != "" {
		m.digest, m.key = digest, digest
		return nil
	}
	if p.Digest == "" {
		return fmt.Errorf("Can't use package '%s/%s' of release '%s/%s' on stemcell %s: it has no source code and is compiled for %s only", //nolint:staticcheck // BOSH's words
			p.Name, p.Fingerprint, w.Release.Name, w.Release.Version, w.OS, oses(p))
	}
	for _, on := range p.Dependencies {
		if err := w.need(on); err != nil {
			return err
		}
	}
	return nil
}

func oses(p *cf.BOSHReleasePackage) (all []string) {
	for _, c := range p.Compiled {
		all = append(all, c.OS)
	}
	return all
}

// make compiles a package after those that it depends on.
func (w *work) make(ctx context.Context, m *made) error {
	if m.digest == "" {
		for _, on := range m.Dependencies {
			select {
			case <-w.packages[on].ready:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		m.key = w.keyOf(m)
		var err error
		if m.digest, err = w.compiled(ctx, m); err != nil {
			return err
		}
	}
	close(m.ready)
	return nil
}

// keyOf names the source, the stack and the packages that one is compiled with.
func (w *work) keyOf(m *made) string {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %q\n", m.Name, m.Fingerprint, cmp.Or(w.Version, w.Stack))
	for _, on := range slices.Sorted(slices.Values(m.Dependencies)) {
		fmt.Fprintf(h, "%q %s\n", on, w.packages[on].key)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// compiled returns the digest of a compiled package: that of before, or a new one.
func (w *work) compiled(ctx context.Context, m *made) (string, error) {
	release, err := w.lock(ctx, m.key)
	if err != nil {
		return "", err
	}
	defer release()
	if digest, err := w.known(ctx, m.key); digest != "" || err != nil {
		return digest, err
	}
	slot, err := w.slots.Acquire(ctx, w.Deployment)
	if err != nil {
		return "", err
	}
	defer slot.Release()
	done := w.Step("Compiling packages", m.Name+"/"+m.Fingerprint)
	b, err := w.run(ctx, m)
	if err == nil {
		err = w.keep(ctx, m, b)
	}
	done(err)
	return b.Digest, err
}

// lock waits until no other task compiles the same.
func (c *Compiler) lock(ctx context.Context, key string) (release func(), err error) {
	for {
		c.mu.Lock()
		other := c.busy[key]
		if other == nil {
			mine := make(chan struct{})
			c.busy[key] = mine
			c.mu.Unlock()
			return func() {
				c.mu.Lock()
				defer c.mu.Unlock()
				delete(c.busy, key)
				close(mine)
			}, nil
		}
		c.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// known is the digest of a package that was compiled before, if it is here.
func (c *Compiler) known(ctx context.Context, key string) (digest string, err error) {
	err = c.Store.Read(ctx, func(tx *store.Tx) error {
		row, err := store.BOSHCompiledPackages.Get(tx, key)
		if err == nil && c.Blobs.Has(row.Digest) {
			digest = row.Digest
		}
		if store.IsNotFound(err) {
			return nil
		}
		return err
	})
	return digest, err
}

// keep writes down that a package was compiled.
func (w *work) keep(ctx context.Context, m *made, b blob.Blob) error {
	return w.Store.Write(ctx, func(tx *store.Tx) error {
		if err := store.BOSHCompiledPackages.Delete(tx, m.key); err != nil && !store.IsNotFound(err) {
			return err
		}
		return store.BOSHCompiledPackages.Insert(tx, &cf.BOSHCompiledPackage{Resource: cf.Resource{GUID: m.key}, Name: m.Name, Fingerprint: m.Fingerprint, Stack: w.Stack, Digest: b.Digest, Size: b.Size})
	})
}

// run compiles a package into a blob.
func (w *work) run(ctx context.Context, m *made) (b blob.Blob, err error) {
	c := sandbox.Compilation{Stack: w.Stack, Name: m.Name, Version: m.Fingerprint}
	if c.Source, err = w.Blobs.Path(m.Digest); err != nil {
		return b, fmt.Errorf("package '%s': read its source: %w; upload the release again with --fix", m.Name, err)
	}
	for _, on := range m.Dependencies {
		l := layer.Layer{Digest: w.packages[on].digest, Dest: sandbox.PackageDir(on)}
		if l.Archive, err = w.Blobs.Path(l.Digest); err != nil {
			return b, fmt.Errorf("package '%s': read the compiled package '%s': %w; upload the release again with --fix", m.Name, on, err)
		}
		c.Dependencies = append(c.Dependencies, l)
	}
	into, err := w.Blobs.Temp()
	if err != nil {
		return b, err
	}
	defer into.Discard()
	log, err := openLog(w.Logs, w.Release.Name+"-"+m.Name+"-"+m.Fingerprint)
	if err != nil {
		return b, err
	}
	c.Into, c.Output = into, log
	if err := w.Run(ctx, c); err != nil {
		if ctx.Err() != nil {
			return b, errors.Join(context.Cause(ctx), log.remove())
		}
		return b, log.fail(fmt.Errorf("compile package '%s/%s' of release '%s/%s': %w", m.Name, m.Fingerprint, w.Release.Name, w.Release.Version, err))
	}
	if err := log.remove(); err != nil {
		return b, err
	}
	return into.Commit()
}
