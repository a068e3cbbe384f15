package stack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"cupola/rootfs/oci"
	"cupola/rootfs/system"
	"cupola/rootfs/tree"
	"cupola/rootfs/unpack"
	"cupola/runtime/fault"
)

// Spec describes a stack to be made in the store.
type Spec struct {
	Name        string
	Compat      string // "" guesses: an image's label or name, its os-release, Name
	Description string // "" is the Origin
	Origin      string // what it is made from, for people
	Replace     bool   // the stack of that name, if there is one: running containers keep the files of the other one
}

// Add makes a stack whose tree build makes at dir, where nothing is yet. Its files must belong to the host's IDs (see IDShift).
// What build returns is kept as the stack's bill of materials (see Lock); it may be nil. After an error nothing stays.
func (s *Stacks) Add(ctx context.Context, n Spec, build func(ctx context.Context, dir string) (lock []byte, err error)) (Stack, error) {
	return s.add(ctx, n, func(ctx context.Context, _, dir string) (made, error) {
		if err := os.Remove(dir); err != nil {
			return made{}, err
		}
		lock, err := build(ctx, dir)
		return made{lock: lock}, err
	})
}

// IDShift is what builders of trees add to the IDs of their files.
func (s *Stacks) IDShift() uint32 { return s.store.IDs.Base }

// Lock returns the bill of materials of a stack that Add made.
func (s *Stacks) Lock(name string) ([]byte, error) {
	st, ok := s.Get(name)
	if !ok || st.Kind != KindDir {
		return nil, fmt.Errorf("stack %q has no lock", name)
	}
	return os.ReadFile(s.store.Path(Dir, st.id, lockFile))
}

const lockFile = "lock.json"

// made is what filling a tree found out.
type made struct {
	compat string
	digest string
	lock   []byte
}

// Import makes a stack from a root file system's tar (plain, gzip, zstd or xz), an OCI image layout (directory or tar) or a
// docker-archive (what docker save writes, compressed or not). The layers of an image become one tree. Compat "" guesses;
// progress, which may be nil, is called with bytes read and to read in all, which may grow.
func (s *Stacks) Import(ctx context.Context, name, compat, path string, progress func(done, total int64)) (Stack, error) {
	if progress == nil {
		progress = func(int64, int64) {}
	}
	n := Spec{Name: name, Compat: compat, Origin: filepath.Base(path)}
	st, err := s.add(ctx, n, func(ctx context.Context, tmp, dir string) (made, error) {
		i := &importer{s: s, path: path, tmp: tmp, dir: dir, progress: progress}
		return i.run(ctx)
	})
	if err != nil {
		return Stack{}, fmt.Errorf("import %s: %w", filepath.Base(path), err)
	}
	return st, nil
}

// add makes the stack n in a directory that is renamed once it is whole and on disk.
func (s *Stacks) add(ctx context.Context, n Spec, fill func(ctx context.Context, tmp, dir string) (made, error)) (Stack, error) {
	defer s.locks.Lock("stack " + n.Name)()
	if err := s.checkName(n.Name, n.Replace); err != nil {
		return Stack{}, err
	}
	id := s.nextID(n.Name)
	tmp, err := os.MkdirTemp(s.store.Path(Dir), ".new-")
	if err != nil {
		return Stack{}, err
	}
	st, err := s.fillStack(ctx, n, tmp, fill)
	if err != nil {
		return Stack{}, errors.Join(err, s.store.Trash.Put(tmp))
	}
	if err := s.putStack(tmp, id); err != nil {
		return Stack{}, errors.Join(err, s.store.Trash.Put(tmp))
	}
	st.id, st.parts, st.dirs = id, []string{id}, []string{s.store.Path(Dir, id, tree.FS)}
	s.register(st)
	st, _ = s.Get(n.Name)
	return st, s.dropReplaced(n.Name)
}

// putStack gives a whole stack's directory its name, which only one that could not be read may bear.
func (s *Stacks) putStack(tmp, name string) error {
	err := s.store.Collect(func(used func(string) bool) error {
		if used(name) {
			return fmt.Errorf("the damaged stack %q is used by running containers", name)
		}
		return s.store.Trash.Put(s.store.Path(Dir, name))
	})
	if err != nil {
		return err
	}
	return errors.Join(os.Rename(tmp, s.store.Path(Dir, name)), tree.Sync(s.store.Path(Dir)))
}

func (s *Stacks) fillStack(ctx context.Context, n Spec, tmp string, fill func(ctx context.Context, tmp, dir string) (made, error)) (Stack, error) {
	dir := filepath.Join(tmp, tree.FS)
	if err := tree.Write(dir, nil, s.store.IDs); err != nil {
		return Stack{}, err
	}
	m, err := fill(ctx, tmp, dir)
	if err != nil {
		return Stack{}, err
	}
	is, err := s.complete(dir)
	if err != nil {
		return Stack{}, fmt.Errorf("prepare the stack's root: %w", err)
	}
	bytes, err := treeBytes(ctx, dir)
	if err != nil {
		return Stack{}, err
	}
	st := Stack{
		Name: n.Name, Description: cmp.Or(n.Description, n.Origin), Kind: KindDir, Origin: n.Origin,
		Compat: cmp.Or(n.Compat, m.compat, is.Compat, n.Name),
		Digest: m.digest, Bytes: bytes, Created: time.Now().UTC(), Kernel: is.Kernel, Libc: is.Libc, Arch: is.Arch,
	}
	if m.lock != nil {
		if err := os.WriteFile(filepath.Join(tmp, lockFile), m.lock, 0o600); err != nil {
			return Stack{}, err
		}
	}
	return st, errors.Join(tree.WriteJSON(filepath.Join(tmp, "stack.json"), st), tree.Sync(tmp))
}

// complete adds to a tree what containers rely on.
func (s *Stacks) complete(dir string) (tree.Traits, error) {
	root, err := os.Open(dir)
	if err != nil {
		return tree.Traits{}, err
	}
	defer root.Close()
	return system.Complete(root, s.store.IDs)
}

func treeBytes(ctx context.Context, dir string) (int64, error) {
	var sum int64
	err := filepath.WalkDir(dir, func(_ string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err == nil && info.Mode().IsRegular() {
			sum += info.Size()
		}
		return errors.Join(err, ctx.Err())
	})
	return sum, err
}

// importer unpacks one file or directory into a tree.
type importer struct {
	s        *Stacks
	path     string
	tmp, dir string
	progress func(done, total int64)
	base     int64 // bytes of what was read before the current file
	total    int64
}

func (i *importer) run(ctx context.Context) (made, error) {
	st, err := os.Stat(i.path)
	if err != nil {
		return made{}, err
	}
	if st.IsDir() {
		b, err := oci.OpenDir(i.path)
		if err != nil {
			return made{}, err
		}
		return i.image(ctx, b)
	}
	f, err := os.Open(i.path)
	if err != nil {
		return made{}, err
	}
	defer f.Close()
	i.total = st.Size()
	archive := io.NewSectionReader(f, 0, st.Size())
	isImage, err := oci.IsArchive(archive)
	if err != nil {
		return made{}, err
	}
	if !isImage {
		return i.rootTar(ctx, archive)
	}
	return i.imageTar(ctx, f)
}

func (i *importer) rootTar(ctx context.Context, archive *io.SectionReader) (made, error) {
	digest := make(chan string, 1)
	fault.Go("rootfs", func() {
		sum := ""
		defer func() { digest <- sum }()
		sum, _ = unpack.Digest(ctx, archive) // an archive that does not read fails in apply
	})
	err := i.apply(ctx, archive)
	return made{compat: system.CompatOfName(filepath.Base(i.path)), digest: <-digest}, err
}

func (i *importer) imageTar(ctx context.Context, f *os.File) (made, error) {
	tmp := filepath.Join(i.tmp, "image.tar")
	plain, err := oci.PlainTar(ctx, f, tmp, func(n int64) { i.progress(n, i.total) })
	if err != nil {
		return made{}, err
	}
	if plain.Name() == tmp { // a name is no longer needed
		if err := os.Remove(tmp); err != nil {
			return made{}, errors.Join(err, plain.Close())
		}
		i.base = i.total
	} else {
		i.total = 0
	}
	b, err := oci.OpenTar(plain)
	if err != nil {
		return made{}, errors.Join(err, plain.Close())
	}
	return i.image(ctx, b)
}

func (i *importer) image(ctx context.Context, b *oci.Archive) (made, error) {
	defer b.Close()
	img, err := b.Image(ctx)
	if err != nil {
		return made{}, err
	}
	layers := make([]*io.SectionReader, len(img.Layers))
	for n, l := range img.Layers {
		if layers[n], err = b.Open(l.File); err != nil {
			return made{}, err
		}
		i.total += layers[n].Size()
	}
	for n, l := range img.Layers {
		if err := i.layer(ctx, layers[n], l); err != nil {
			return made{}, fmt.Errorf("layer %d: %w", n+1, err)
		}
	}
	return made{compat: system.CompatOf(img.Labels, img.Names)}, nil
}

func (i *importer) layer(ctx context.Context, archive *io.SectionReader, l oci.Layer) error {
	got, err := unpack.Digest(ctx, archive)
	if err != nil {
		return err
	}
	if !slices.Contains(l.Digests, got) {
		return fmt.Errorf("%s is damaged: its digest is %s, not %s", l.File, got, l.Digests[0])
	}
	return i.apply(ctx, archive)
}

// apply unpacks one layer over what the tree holds.
func (i *importer) apply(ctx context.Context, archive *io.SectionReader) error {
	dir, err := os.Open(i.dir)
	if err != nil {
		return err
	}
	defer dir.Close()
	_, err = unpack.Into(ctx, dir, archive, unpack.Options{
		Image: true, Owner: tree.Shifted(i.s.store.IDs), Limits: unpack.Limits{Entries: -1, Bytes: -1, Ratio: -1}, // the operator's own choice
		Progress: func(n int64) { i.progress(i.base+n, i.total) },
	})
	i.base += archive.Size()
	return err
}
