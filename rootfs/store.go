// Package rootfs is the store of root file systems on one machine. It joins the packages below it: images from registries, stacks,
// unpacked layers, and the mounted roots that containers have of these.
//
// All state is in the file system, in mounts and in loop devices. A store that is opened after a crash removes what was half
// made, and goes on with what is whole.
package rootfs

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"

	"cupola/rootfs/disk"
	"cupola/rootfs/image"
	"cupola/rootfs/internal/store"
	"cupola/rootfs/layer"
	"cupola/rootfs/packed"
	"cupola/rootfs/registry"
	"cupola/rootfs/root"
	"cupola/rootfs/stack"
	"cupola/rootfs/tree"
	"cupola/rootfs/unpack"
	"cupola/runtime/users"
)

// Config says where a store is and which users containers have.
type Config struct {
	// Dir holds all of the store's files; made when missing. Mounts appear below Dir/run. The directories above it must
	// let the host user IDs.Base pass (mode o+x), since a container's first process looks up its root through them.
	Dir string
	IDs users.Range // the host's IDs of who owns the files of containers
	// Tools are the names under /bin of the multi-call helper that every container has (see package runtime/contract). They make up
	// minifs; "sh" among them is its shell.
	Tools []string
	// Compat overrides, by the stack's name, the value of CF_STACK in its containers.
	Compat     map[string]string
	Limits     unpack.Limits   // on layers, images and what Extract unpacks
	Registries registry.Config // how to pull
	Log        *slog.Logger    // nil discards
	// Unmounted says that no container has its root here: how sizes could be held is not tried, for which there may be no rights.
	Unmounted bool
}

// Store holds the parts of a store. Its own methods are those of the roots.
type Store struct {
	*root.Roots
	Images *image.Cache
	Stacks *stack.Stacks
	Layers *layer.Cache
	Packed *packed.Images
	Disks  *disk.Disks // directories of a size on the store's file system

	cfg   Config
	store *store.Store
}

// New opens the store in cfg.Dir and finishes what a crash interrupted: it removes half layers, and leaves mounts of containers
// alone that may still run. It makes minifs and the host stack. A directory must have one open store at a time, since New takes
// the work of another for that of a crashed one.
func New(cfg Config) (*Store, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	dir, err := realDir(cfg.Dir)
	if err != nil {
		return nil, err
	}
	st := &store.Store{Dir: dir, IDs: cfg.IDs, Limits: cfg.Limits, Log: cfg.Log}
	st.Trash = tree.NewTrash(st.Path("trash"), cfg.Log)
	st.Mounted = func() (map[string]bool, error) { return root.Mounted(st) }
	s := &Store{cfg: cfg, store: st}
	if err := errors.Join(makeDirs(st), s.open()); err != nil {
		return nil, err
	}
	st.Trash.Sweep()
	return s, nil
}

// open opens the parts, each after those it needs.
func (s *Store) open() (err error) {
	disks := disk.New
	if s.cfg.Unmounted {
		disks = disk.Unlimited
	}
	if s.Disks, err = disks(s.store.Path("templates"), s.cfg.Log); err != nil {
		return err
	}
	above := image.Parts{
		Stacks: func(digest string) []string { return s.Stacks.Of(digest) },
		Sweep:  func(ctx context.Context) error { return s.Packed.Sweep(ctx) },
	}
	if s.Images, err = image.New(s.store, s.cfg.Registries, above); err != nil {
		return err
	}
	if s.Layers, err = layer.New(s.store); err != nil {
		return err
	}
	if s.Stacks, err = stack.New(s.store, s.Images, stack.Config{Tools: s.cfg.Tools, Compat: s.cfg.Compat}); err != nil {
		return err
	}
	if s.Packed, err = packed.New(s.store, s.Images, s.Stacks, s.Layers); err != nil {
		return err
	}
	s.Roots, err = root.New(s.store, s.Stacks, s.Layers, s.Disks)
	return err
}

// realDir makes dir and resolves it, since mountinfo and loop devices name the real path.
func realDir(dir string) (string, error) {
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return "", err
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(abs)
}

// makeDirs makes the directories of the parts. Only root may look into layers and disks.
func makeDirs(s *store.Store) error {
	for _, name := range slices.Concat(image.Dirs, []string{layer.Dir, packed.Dir, stack.Dir, "templates", "trash"}) {
		if err := os.Mkdir(s.Path(name), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return root.MakeDirs(s)
}

// Quota returns how disk quotas are enforced here and, when that is not the best way, why: for the operator.
func (s *Store) Quota() (method, why string) {
	m, why := s.Disks.Method()
	return string(m), why
}

// Emptied waits until the files of all that was removed before are deleted.
func (s *Store) Emptied(ctx context.Context) error { return s.store.Trash.Emptied(ctx) }

// Close waits for deletions and other work in the background. Mounts stay.
func (s *Store) Close() error {
	s.Layers.Close()
	s.store.Trash.Wait()
	s.Roots.Close()
	return nil
}
