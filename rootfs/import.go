package rootfs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"cupola/rootfs/unpack"
	"cupola/runtime/fault"
)

// NewStack describes a stack to be made in the store.
type NewStack struct {
	Name        string
	Compat      string // "" guesses: an image's label or name, its os-release, Name
	Description string // "" is the Origin
	Origin      string // what it is made from, for people
}

// Add makes a stack whose tree build makes at dir, where nothing is yet; its files are to belong to the host's ids of
// IDMap. What build returns is kept as the stack's bill of materials (see Store.Lock); it may be nil. After an error
// nothing stays.
func (s *Store) Add(ctx context.Context, n NewStack, build func(ctx context.Context, dir string) (lock []byte, err error)) (Stack, error) {
	return s.add(ctx, n, func(ctx context.Context, _, tree string) (made, error) {
		if err := os.Remove(tree); err != nil {
			return made{}, err
		}
		lock, err := build(ctx, tree)
		return made{lock: lock}, err
	})
}

// IDShift is what builders of trees add to the ids of their files.
func (s *Store) IDShift() uint32 { return s.cfg.IDMap.Base }

// Lock returns the bill of materials of a stack that Add made.
func (s *Store) Lock(name string) ([]byte, error) {
	st, ok := s.Stack(name)
	if !ok || st.Kind != KindDir {
		return nil, fmt.Errorf("stack %q has no lock", name)
	}
	return os.ReadFile(s.path("stacks", st.id, lockFile))
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
func (s *Store) Import(ctx context.Context, name, compat, path string, progress func(done, total int64)) (Stack, error) {
	if progress == nil {
		progress = func(int64, int64) {}
	}
	n := NewStack{Name: name, Compat: compat, Origin: filepath.Base(path)}
	st, err := s.add(ctx, n, func(ctx context.Context, tmp, tree string) (made, error) {
		i := &importer{s: s, path: path, tmp: tmp, tree: tree, progress: progress}
		return i.run(ctx)
	})
	if err != nil {
		return Stack{}, fmt.Errorf("import %s: %w", filepath.Base(path), err)
	}
	return st, nil
}

// add makes the stack n in a directory that is renamed once it is whole and on disk.
func (s *Store) add(ctx context.Context, n NewStack, fill func(ctx context.Context, tmp, tree string) (made, error)) (Stack, error) {
	defer s.locks.lock("stack " + n.Name)()
	if err := s.checkNewStack(n.Name); err != nil {
		return Stack{}, err
	}
	tmp, err := os.MkdirTemp(s.path("stacks"), ".new-")
	if err != nil {
		return Stack{}, err
	}
	st, err := s.fillStack(ctx, n, tmp, fill)
	if err != nil {
		return Stack{}, errors.Join(err, s.trash.put(tmp))
	}
	if err := s.putStack(tmp, n.Name); err != nil {
		return Stack{}, errors.Join(err, s.trash.put(tmp))
	}
	st.id, st.dir = n.Name, s.path("stacks", n.Name, "fs")
	s.register(st)
	st, _ = s.Stack(n.Name)
	return st, nil
}

// putStack gives a whole stack's directory its name, which only one that could not be read may bear.
func (s *Store) putStack(tmp, name string) error {
	used, err := s.mountedDirs()
	if err == nil && used[name] {
		err = fmt.Errorf("the damaged stack %q is used by running containers", name)
	}
	if err == nil {
		err = s.trash.put(s.path("stacks", name))
	}
	if err != nil {
		return err
	}
	return errors.Join(os.Rename(tmp, s.path("stacks", name)), syncTree(s.path("stacks")))
}

func (s *Store) fillStack(ctx context.Context, n NewStack, tmp string, fill func(ctx context.Context, tmp, tree string) (made, error)) (Stack, error) {
	tree := filepath.Join(tmp, "fs")
	if err := writeTree(tree, nil, s.cfg.IDMap); err != nil {
		return Stack{}, err
	}
	m, err := fill(ctx, tmp, tree)
	if err != nil {
		return Stack{}, err
	}
	is, err := s.adopt(tree)
	if err != nil {
		return Stack{}, fmt.Errorf("prepare the stack's root: %w", err)
	}
	bytes, err := treeBytes(ctx, tree)
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
	return st, errors.Join(writeJSON(filepath.Join(tmp, "stack.json"), st), syncTree(tmp))
}

func treeBytes(ctx context.Context, tree string) (int64, error) {
	var sum int64
	err := filepath.WalkDir(tree, func(_ string, e os.DirEntry, err error) error {
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
	s         *Store
	path      string
	tmp, tree string
	progress  func(done, total int64)
	base      int64 // bytes of what was read before the current file
	total     int64
}

func (i *importer) run(ctx context.Context) (made, error) {
	st, err := os.Stat(i.path)
	if err != nil {
		return made{}, err
	}
	if st.IsDir() {
		b, err := openDirBundle(i.path)
		if err != nil {
			return made{}, err
		}
		return i.bundle(ctx, b)
	}
	f, err := os.Open(i.path)
	if err != nil {
		return made{}, err
	}
	defer f.Close()
	i.total = st.Size()
	archive := io.NewSectionReader(f, 0, st.Size())
	isImage, err := isImageArchive(archive)
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
		sum, _ = digestOf(ctx, archive) // an archive that does not read fails in apply
	})
	err := i.apply(ctx, archive)
	return made{compat: compatOfName(filepath.Base(i.path)), digest: <-digest}, err
}

func (i *importer) imageTar(ctx context.Context, f *os.File) (made, error) {
	tmp := filepath.Join(i.tmp, "image.tar")
	plain, err := plainTar(ctx, f, tmp, func(n int64) { i.progress(n, i.total) })
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
	b, err := openTarBundle(plain)
	if err != nil {
		return made{}, errors.Join(err, plain.Close())
	}
	return i.bundle(ctx, b)
}

func (i *importer) bundle(ctx context.Context, b bundle) (made, error) {
	defer b.Close()
	if !b.has("manifest.json") && !b.has("index.json") {
		return made{}, errors.New("it is no OCI image layout, docker-archive or tar of a root file system")
	}
	img, err := readImage(ctx, b)
	if err != nil {
		return made{}, err
	}
	layers := make([]*io.SectionReader, len(img.layers))
	for n, l := range img.layers {
		if layers[n], err = b.open(l.file); err != nil {
			return made{}, err
		}
		i.total += layers[n].Size()
	}
	for n, l := range img.layers {
		if err := i.layer(ctx, layers[n], l); err != nil {
			return made{}, fmt.Errorf("layer %d: %w", n+1, err)
		}
	}
	return made{compat: img.compat()}, nil
}

func (i *importer) layer(ctx context.Context, archive *io.SectionReader, l imageLayer) error {
	got, err := digestOf(ctx, archive)
	if err != nil {
		return err
	}
	if !slices.Contains(l.digests, got) {
		return fmt.Errorf("%s is damaged: its digest is %s, not %s", l.file, got, l.digests[0])
	}
	return i.apply(ctx, archive)
}

// apply unpacks one layer over what the tree holds.
func (i *importer) apply(ctx context.Context, archive *io.SectionReader) error {
	dir, err := os.Open(i.tree)
	if err != nil {
		return err
	}
	defer dir.Close()
	_, err = unpack.Into(ctx, dir, archive, unpack.Options{
		Image: true, Owner: i.s.shift(), Limits: unpack.Limits{Entries: -1, Bytes: -1, Ratio: -1}, // the operator's own choice
		Progress: func(n int64) { i.progress(i.base+n, i.total) },
	})
	i.base += archive.Size()
	return err
}

// shift maps the owners in an image to the host's, or is nil when this process may not give files away.
func (s *Store) shift() func(uid, gid int) (int, int) {
	if !privileged() {
		return nil
	}
	return func(uid, gid int) (int, int) {
		return int(s.cfg.IDMap.Host(uint32(uid))), int(s.cfg.IDMap.Host(uint32(gid)))
	}
}

// compatLabel lets an image say which of CF's stacks it is like.
const compatLabel = "org.cloudfoundry.stack.compat"

func (img image) compat() string {
	if c := img.labels[compatLabel]; c != "" {
		return c
	}
	for _, name := range img.names {
		if c := compatOfName(name[strings.LastIndex(name, "/")+1:]); c != "" {
			return c
		}
	}
	return ""
}

var cflinuxfs = regexp.MustCompile(`^cflinuxfs\d+`)

// compatOfName reads CF's own stacks off a file's or repository's name.
func compatOfName(base string) string { return cflinuxfs.FindString(base) }
