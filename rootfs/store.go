// Package rootfs turns stacks and layers into the mounted root of one container, with a disk quota.
//
// A root is an overlay: the stack's files below, then the container's layers (a droplet, buildpacks), each unpacked once
// and shared read-only by all who mount it, and on top a writable directory in a file system of the container's size.
// Everything belongs to shifted owners, since containers run in user namespaces.
//
// Images come from registries (Pull) and stay, by their digest, until GC takes them: whole, with the layers as they were
// moved, and each unpacked once for all images that have it above the same others.
//
// All state is in the file system, in mounts and in loop devices: a store opened after a crash finds in List what the
// crashed one left, and Unmount takes it away whatever state it is in.
package rootfs

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"cupola/rootfs/disk"
	"cupola/rootfs/unpack"
)

// Config says where a store lives and whom containers run as.
type Config struct {
	// Dir holds all of the store's files; made when missing. Mounts appear below Dir/run. The directories above it must
	// let the host user IDMap.Base pass (mode o+x), since a container's first process looks up its root through them.
	Dir   string
	IDMap IDMap
	// Tools are the names under /bin of the multi-call helper, which every container finds at contract.Helper.
	// They make up minifs; "sh" among them is its shell.
	Tools []string
	// Compat overrides, by the stack's name, what CF_STACK says in its containers.
	Compat map[string]string
	Limits unpack.Limits // on layers, images and what Extract unpacks
	// Registries are those that Pull and Resolve ask.
	Registries Registries
	Log        *slog.Logger // nil discards
}

// IDMap maps the ids in a container onto the host's: 0 … Size-1 to Base … Base+Size-1. The zero value maps each id to itself.
type IDMap struct{ Base, Size uint32 }

// nobody is who owns what has no owner in the map.
const nobody = 65534

// Host returns the id on the host of a container's id. One beyond the map becomes nobody's.
func (m IDMap) Host(id uint32) uint32 {
	switch {
	case m.Size == 0:
		return id
	case id < m.Size:
		return m.Base + id
	case nobody < m.Size:
		return m.Base + nobody
	}
	return m.Base + m.Size - 1
}

// Store keeps stacks and unpacked layers and mounts roots. Its methods may be called at once.
type Store struct {
	cfg    Config
	log    *slog.Logger
	disks  *disk.Disks
	trash  *trash
	spent  *trash   // of containers' directories, which no rename takes out of the mount that run is
	locks  keyLocks // per container id
	client *client
	pack   chan struct{} // holds one while somebody packs: it takes all of a disk and a processor
	// unshiftable says why roots cannot have their own users; nil where they can.
	unshiftable error

	bg sync.WaitGroup // work that Close waits for

	mu      sync.Mutex
	stacks  map[string]Stack
	flights map[string]*flight   // layers being unpacked, by key
	using   map[string]int       // layers and stacks that a Mount under way relies on, by directory
	probes  map[string]error     // of stacks, by name: what their probe said
	claimed map[string]time.Time // images, by digest, that were pulled for somebody
}

// New opens the store in cfg.Dir, finishing what a crash interrupted: half layers are dropped, mounts of containers that
// may still run are left alone. It builds minifs and the host stack. A directory has one open store at a time, since New
// takes what another has under way for the work of a crashed one; whoever opens it sees to that.
func New(cfg Config) (*Store, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	dir, err := realDir(cfg.Dir)
	if err != nil {
		return nil, err
	}
	cfg.Dir = dir
	s := &Store{cfg: cfg, log: cfg.Log, flights: map[string]*flight{}, using: map[string]int{}, stacks: map[string]Stack{}, probes: map[string]error{}, claimed: map[string]time.Time{}, pack: make(chan struct{}, 1)}
	s.client = newClient(cfg.Registries)
	if err := s.makeDirs(); err != nil {
		return nil, err
	}
	s.unshiftable = s.trySharing()
	if s.disks, err = disk.New(s.path("templates"), s.log); err != nil {
		return nil, err
	}
	s.trash, s.spent = newTrash(s.path("trash"), s.log), newTrash(s.path("run", runTrash), s.log)
	if err := errors.Join(s.dropSpares(), s.dropHalfLayers(), s.dropHalfChains(), s.dropHalfPacked(), s.loadStacks()); err != nil {
		return nil, err
	}
	s.trash.sweep()
	s.spent.sweep()
	return s, s.releaseRunLocked() // nobody else has s yet
}

// Disks makes directories of a size on the store's file system, for others too.
func (s *Store) Disks() *disk.Disks { return s.disks }

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

// makeDirs lays out the store. Layers and disks are for root's eyes alone; run lets everybody pass, to directories of
// containers that only the container's root can pass: for others the files of apps would be readable.
func (s *Store) makeDirs() error {
	for _, name := range []string{"layers", "chains", "images", "oci", "packed", "stacks", "templates", "trash", "run", "run/" + runTrash, "run/" + runSpare} {
		if err := os.Mkdir(s.path(name), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return os.Chmod(s.path("run"), 0o711)
}

const runTrash = ".trash"

// openTo lets the root of a container pass a directory, and no other user of the machine.
func openTo(ids IDMap, dir string) error {
	if privileged() {
		if err := os.Chown(dir, 0, int(ids.Host(0))); err != nil {
			return err
		}
	}
	return os.Chmod(dir, 0o710)
}

func privileged() bool { return os.Geteuid() == 0 }

func (s *Store) path(elem ...string) string {
	return filepath.Join(append([]string{s.cfg.Dir}, elem...)...)
}

// Quota tells how disk quotas are enforced here and, when that is not the best way, why: for the operator.
func (s *Store) Quota() (method, why string) {
	m, why := s.disks.Method()
	return string(m), why
}

// Close waits for deletions and other work in the background. Mounts stay.
func (s *Store) Close() error {
	s.bg.Wait()
	s.trash.wait()
	s.spent.wait()
	return nil
}

// keyLocks serializes work on one key.
type keyLocks struct {
	mu   sync.Mutex
	held map[string]*keyLock
}

type keyLock struct {
	sync.Mutex
	waiters int
}

// lock returns the function that unlocks.
func (k *keyLocks) lock(key string) func() {
	k.mu.Lock()
	if k.held == nil {
		k.held = map[string]*keyLock{}
	}
	l := k.held[key]
	if l == nil {
		l = &keyLock{}
		k.held[key] = l
	}
	l.waiters++
	k.mu.Unlock()
	l.Lock()
	return func() {
		l.Unlock()
		k.mu.Lock()
		defer k.mu.Unlock()
		if l.waiters--; l.waiters == 0 {
			delete(k.held, key)
		}
	}
}

// checkID refuses container ids that are no plain file name.
func checkID(id string) error {
	if id == "" || len(id) > 128 || id[0] == '.' {
		return fmt.Errorf("container id %q is not usable as a file name", id)
	}
	for _, c := range []byte(id) {
		if c != '-' && c != '_' && c != '.' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return fmt.Errorf("container id %q is not usable as a file name", id)
		}
	}
	return nil
}
