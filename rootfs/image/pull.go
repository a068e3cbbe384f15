package image

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"sync"
	"time"

	"cupola/rootfs/reference"
	"cupola/rootfs/registry"
	"cupola/rootfs/system"
	"cupola/rootfs/tree"
	"cupola/rootfs/unpack"
	"cupola/runtime/fault"
)

// PullOptions is what a pull needs besides the reference.
type PullOptions struct {
	Username, Password string              // "" for an image that everybody may have
	Token              string              // instead of those
	Progress           func(LayerProgress) // nil; never called twice at the same time
	// Fallbacks are other references of the same image, which are asked in order for what the reference's own registry does
	// not give. They must have the same digest, and are kept for later pulls of the reference. Nil asks those that are kept,
	// and an empty slice forgets them.
	Fallbacks []reference.Reference
	Others    func(reference.Reference) registry.Auth // credentials for fallbacks; nil has none
	Warn      func(string)                            // nil; receives warnings of a successful pull
	Trusted   bool                                    // an operator asks: the registry may be anywhere
	Ask       bool                                    // the registry decides whether the credentials may have the image, also when it is in the cache by its digest
	Claim     bool                                    // a build will name the image soon: until then Remove leaves it
}

// LayerProgress says how far one layer is. Layers are fetched at the same time and unpacked one after the other.
type LayerProgress struct {
	Digest      string // of the layer
	Index       int    // from 0, the lowest
	Layers      int    // of the image
	Phase       Phase
	Done, Total int64 // bytes of the layer as it is moved
}

// Phase is what happens to a layer.
type Phase string

// The phases of a layer.
const (
	PhaseFetch  Phase = "fetch"
	PhaseUnpack Phase = "unpack"
	PhaseHere   Phase = "here" // nothing had to be done, or all is done
)

const (
	parallelLayers = 4 // fetched at once
	reportInterval = 50 * time.Millisecond
)

// pull is one image on its way into the store.
type pull struct {
	s        *Cache
	ref      reference.Reference
	digest   string
	doc      imageDocument
	connects []func(context.Context) (origin, error)
	progress func(LayerProgress)
	warn     func(string)
	close    func()              // of what connect opened
	from     reference.Reference // where it is, by which it may be had
	open     bool                // the registry of ref was shown no credentials

	files []string // of blobs, in hex
	held  []func()

	connecting sync.Mutex
	origins    map[int]origin // by index in connects
	gone       map[int]error  // mirrors that could not be reached: they are not waited for twice

	mu         sync.Mutex
	reportedAt map[int]time.Time
}

// Pull brings an image into the store, from a registry or an OCI layout, and returns it once it is whole and on disk.
// It does not fetch again what an interrupted pull has fetched. If an image with the digest was pulled from the same repository,
// it moves nothing and, without Ask, asks no registry; if from another one, it asks the registry whether the credentials may have the image.
// If the registry does not answer, it takes an image by its digest that the repository gave without credentials before.
// An error may be registry.ErrDenied or registry.ErrMissing.
func (s *Cache) Pull(ctx context.Context, r reference.Reference, o PullOptions) (img Image, err error) {
	if !tree.Privileged() {
		return Image{}, errors.New("pulling images needs root")
	}
	if o.Claim {
		defer s.claim(&img)
	}
	if o.Fallbacks == nil && !o.Ask {
		if c, err := s.use(r.Digest, r); err == nil {
			return c.known(r), nil
		}
	}
	p := newPull(s, r, o)
	img, err = p.run(ctx, o)
	if err == nil {
		return img, nil
	}
	if c, cerr := s.useOpen(r); cerr == nil && p.unanswered(ctx, err) {
		p.warn(fmt.Sprintf("%s: %v; took it from the cache", r, err))
		return c.known(r), nil
	}
	return Image{}, fmt.Errorf("pull %s: %w", r, err)
}

// unanswered reports whether err says nothing of who may have the image.
func (p *pull) unanswered(ctx context.Context, err error) bool {
	return ctx.Err() == nil && !errors.Is(err, registry.ErrDenied) && !errors.Is(err, registry.ErrMissing)
}

func newPull(s *Cache, r reference.Reference, o PullOptions) *pull {
	p := &pull{s: s, ref: r, from: r, open: o.Username == "" && o.Token == "", progress: o.Progress, warn: o.Warn, close: func() {}, origins: map[int]origin{}, gone: map[int]error{}, reportedAt: map[int]time.Time{}}
	if p.warn == nil {
		p.warn = func(string) {}
	}
	return p
}

// known is the image as the reference r names it.
func (c record) known(r reference.Reference) Image {
	c.Reference = r.String()
	return c.Image
}

func (p *pull) run(ctx context.Context, o PullOptions) (Image, error) {
	if err := p.connect(ctx, o); err != nil {
		return Image{}, err
	}
	defer p.close()
	img, err := p.bring(ctx)
	if err == nil && p.ref.Scheme == reference.SchemeDocker && (o.Fallbacks != nil || p.from == p.ref) {
		err = p.s.publish(p.ref, p.digest, o.Fallbacks)
	}
	return img, err
}

// bring brings the image that was found into the cache.
func (p *pull) bring(ctx context.Context) (Image, error) {
	defer p.s.locks.Lock("image " + p.digest)()
	if c, err := p.s.useFrom(p.digest, p.ref, p.from, p.open && p.from == p.ref); err == nil {
		return c.known(p.ref), nil
	}
	defer p.release()
	if err := p.describe(ctx); err != nil {
		return Image{}, err
	}
	p.hold(p.names()...)
	c, err := p.layers(ctx)
	if err != nil {
		return Image{}, errors.Join(err, p.discard(err))
	}
	return c.Image, p.commit(c)
}

// discard deletes what was fetched of an image that is itself at fault: no pull will continue it, and it must not fill the disk.
// What another pull needs stays.
func (p *pull) discard(why error) error {
	_, entry := errors.AsType[*unpack.EntryError](why)
	_, damaged := errors.AsType[*damagedError](why)
	if !entry && !damaged {
		return nil
	}
	p.release()
	return p.s.store.Collect(func(used func(string) bool) (err error) {
		for _, sum := range p.blobNames() {
			if used(blobName(sum)) {
				continue
			}
			if rerr := os.Remove(p.s.store.Path("oci", sum+partSuffix)); !errors.Is(rerr, fs.ErrNotExist) {
				err = errors.Join(err, rerr)
			}
		}
		return err
	})
}

// connect finds where the image is, and its digest.
func (p *pull) connect(ctx context.Context, o PullOptions) error {
	switch p.ref.Scheme {
	case reference.SchemeOCI:
		l, digest, err := openLayout(p.ref.Name)
		if err != nil {
			return err
		}
		p.digest = digest
		p.connects = append(p.connects, func(context.Context) (origin, error) { return l, nil })
		p.close = func() { l.root.Close() } // it was read only
		return nil
	case reference.SchemeDocker:
	default:
		return errors.New("it is in no registry")
	}
	all, known, err := p.places(o)
	if err != nil {
		return err
	}
	for _, at := range all {
		for _, connect := range p.s.client.Sources(at) {
			p.connects = append(p.connects, func(ctx context.Context) (origin, error) { return connect(ctx) })
		}
	}
	if err := p.find(ctx, all, known); err != nil || o.Fallbacks == nil {
		return err
	}
	return p.compare(ctx, all)
}

// origin returns the one to ask the n-th time, logged in.
func (p *pull) origin(ctx context.Context, n int) (origin, error) {
	n %= len(p.connects)
	p.connecting.Lock()
	defer p.connecting.Unlock()
	if o, err := p.origins[n], p.gone[n]; o != nil || err != nil {
		return o, err
	}
	o, err := p.connects[n](ctx)
	switch {
	case err == nil:
		p.origins[n] = o
	case n < len(p.connects)-1 && ctx.Err() == nil:
		p.gone[n] = err
	}
	return o, err
}

// tell reports the progress of a layer, not too often.
func (p *pull) tell(l LayerProgress) {
	if p.progress == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if l.Phase != PhaseHere && l.Done < l.Total && time.Since(p.reportedAt[l.Index]) < reportInterval {
		return
	}
	p.reportedAt[l.Index] = time.Now()
	l.Digest, l.Layers = p.doc.manifest.Layers[l.Index].Digest, len(p.doc.manifest.Layers)
	p.progress(l)
}

// layers fetches the layers side by side, and unpacks each as soon as those below it are.
func (p *pull) layers(ctx context.Context) (record, error) {
	group, ctx := fault.NewGroup(ctx)
	fetched := make([]chan *os.File, len(p.doc.manifest.Layers))
	for n := range fetched {
		fetched[n] = make(chan *os.File, 1)
	}
	slots := make(chan struct{}, parallelLayers)
	group.Go(fault.ErrFunc("rootfs", func() error {
		for n, d := range p.doc.manifest.Layers {
			select {
			case slots <- struct{}{}:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			group.Go(fault.ErrFunc("rootfs", func() error {
				defer func() { <-slots }()
				f, err := p.blob(ctx, d, func(done int64) { p.tell(LayerProgress{Index: n, Phase: PhaseFetch, Done: done, Total: d.Size}) })
				if err != nil {
					return fmt.Errorf("fetch layer %d: %w", n+1, err)
				}
				fetched[n] <- f
				return nil
			}))
		}
		return nil
	}))
	var c record
	group.Go(fault.ErrFunc("rootfs", func() (err error) {
		c, err = p.unpackAll(ctx, fetched)
		return err
	}))
	err := group.Wait()
	for _, ch := range fetched {
		close(ch)
		for f := range ch {
			f.Close() // nothing was written through it since it was checked
		}
	}
	return c, err
}

func (p *pull) unpackAll(ctx context.Context, fetched []chan *os.File) (record, error) {
	c := p.record()
	left := p.s.store.Limits.Filled()
	digest := ""
	for n, ch := range fetched {
		var f *os.File
		select {
		case f = <-ch:
		case <-ctx.Done():
			return c, context.Cause(ctx)
		}
		digest = chainDigest(digest, p.doc.config.RootFS.DiffIDs[n])
		m, err := p.unpack(ctx, n, digest, c.Chains, f, left)
		if err = errors.Join(err, f.Close()); err != nil {
			return c, fmt.Errorf("unpack layer %d: %w", n+1, err)
		}
		c.Chains = append(c.Chains, chainKey(digest, p.s.store.IDs))
		c.Bytes += m.Bytes
		if left, err = rest(left, m); err != nil {
			return c, err
		}
		p.tell(LayerProgress{Index: n, Phase: PhaseHere, Done: p.doc.manifest.Layers[n].Size, Total: p.doc.manifest.Layers[n].Size})
	}
	return p.top(c, digest)
}

// rest is what of an image's limits a layer leaves to those above it.
func rest(l unpack.Limits, m tree.Mark) (unpack.Limits, error) {
	if l.Entries > 0 {
		if l.Entries -= m.Entries; l.Entries <= 0 {
			return l, &damagedError{"image has too many files"}
		}
	}
	if l.Bytes > 0 {
		if l.Bytes -= m.Bytes; l.Bytes <= 0 {
			return l, &damagedError{"image unpacks to too many bytes"}
		}
	}
	return l, nil
}

func (p *pull) unpack(ctx context.Context, n int, digest string, below []string, archive *os.File, limits unpack.Limits) (tree.Mark, error) {
	d := p.doc.manifest.Layers[n]
	return p.s.chain(digest, below, func(root *os.File, m *tree.Mark) error {
		if _, err := archive.Seek(0, io.SeekStart); err != nil {
			return err
		}
		stats, err := p.s.unpackLayer(ctx, root, archive, p.doc.config.RootFS.DiffIDs[n], unpack.Options{Limits: limits,
			Progress: func(done int64) { p.tell(LayerProgress{Index: n, Phase: PhaseUnpack, Done: done, Total: d.Size}) }})
		m.Bytes, m.Entries = stats.Bytes, stats.Entries
		return err
	})
}

// top adds the layer with what Diego's lifecycle needs in every root, and reads the traits of the whole tree.
func (p *pull) top(c record, digest string) (record, error) {
	own := p.s.topDigest(digest)
	m, err := p.s.chain(own, c.Chains, func(root *os.File, m *tree.Mark) (err error) {
		m.Traits, err = system.Complete(root, p.s.store.IDs)
		return err
	})
	if err != nil {
		return c, fmt.Errorf("prepare the image's root: %w", err)
	}
	c.Chains = append(c.Chains, chainKey(own, p.s.store.IDs))
	c.Kernel, c.Libc = m.Kernel, m.Libc
	if c.Compat == "" {
		c.Compat = m.Compat
	}
	return c, nil
}

// commit syncs what was pulled, and then writes the image's record.
func (p *pull) commit(c record) error {
	s := p.s
	if err := tree.Sync(s.store.Path("chains")); err != nil {
		return err
	}
	for _, key := range c.Chains {
		if err := s.markSynced(key); err != nil {
			return err
		}
	}
	for _, sum := range c.Blobs {
		if err := s.finishBlob(sum); err != nil {
			return err
		}
	}
	if err := tree.Sync(s.store.Path("chains")); err != nil {
		return err
	}
	return tree.WriteJSONSynced(s.recordPath(c.Digest), c)
}

// markSynced notes that a chain is on disk. Images that share it may be pulled at the same time.
func (s *Cache) markSynced(key string) error {
	defer s.locks.Lock("chain " + key)()
	m, err := tree.ReadMark(s.store.Path("chains", key))
	if err != nil || m.Synced {
		return err
	}
	m.Synced = true
	return tree.WriteMark(s.store.Path("chains", key), m)
}

// hold leases names until release.
func (p *pull) hold(names ...string) { p.held = append(p.held, p.s.store.HoldNames(names...)) }

func (p *pull) release() {
	for _, release := range p.held {
		release()
	}
	p.held = nil
}

// use finds an image in the cache and notes the use. An image that was pulled from another repository than that of r is not
// found: the registry decides who may have it.
func (s *Cache) use(digest string, r reference.Reference) (record, error) {
	s.mu.Lock() // or GC may take it away in between
	defer s.mu.Unlock()
	c, err := s.record(digest)
	if err == nil && !c.allows(r) {
		err = ErrNotPulled
	}
	if err == nil {
		s.touch(digest)
	}
	return c, err
}

// useFrom is use for a caller who asked the registry of from for the image of r, and may have it; open says that everybody may.
func (s *Cache) useFrom(digest string, r, from reference.Reference, open bool) (record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.record(digest)
	if err != nil {
		return c, err
	}
	if !c.add(r.String(), from.Repo(), open) {
		s.touch(digest)
		return c, nil
	}
	return c, tree.WriteJSONSynced(s.recordPath(digest), c)
}

// useOpen is use for a caller whose registry did not answer: of an image that everybody may have.
func (s *Cache) useOpen(r reference.Reference) (record, error) {
	c, err := s.use(r.Digest, r)
	if err == nil && !slices.Contains(c.Open, r.Repo()) {
		err = ErrNotPulled
	}
	return c, err
}
