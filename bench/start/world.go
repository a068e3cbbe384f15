package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"

	"cupola/rootfs"
	"cupola/rootfs/layer"
	"cupola/rootfs/root"
	"cupola/runtime/cell"
	"cupola/runtime/container"
	"cupola/runtime/contract"
	"cupola/runtime/files"
	"cupola/runtime/identity"
	"cupola/runtime/lifecycle"
	"cupola/runtime/lrp"
	"cupola/runtime/network"
	"cupola/runtime/users"
	"cupola/test/goprogram"
)

// The containers' users, and the range on the host they are mapped to.
const (
	idBase, idSize = 0x6d000000, 1 << 16
)

// sharedRoot names the root that all starts but the cell's use, by turns.
const sharedRoot = "shared"

// world is a cell and its parts on a temporary directory, and one mounted root with the
// app in it.
type world struct {
	dir    string
	name   string            // as a daemon's, so that 'cupola doctor --leaks' knows what is left
	digest string            // of the app's droplet
	engine *container.Engine // the default, launch
	runc   *container.Engine // starts containers by libcontainer
	net    *network.Network
	roots  *rootfs.Store
	root   root.Root
	cell   *cell.Cell
	lines  chan string // GUIDs of containers whose app has written a line
	ended  chan lrp.Event
	stop   func() error // ends the cell's Run
}

func newWorld(ctx context.Context) (*world, error) {
	dir, err := os.MkdirTemp("", "bench-start-")
	if err != nil {
		return nil, err
	}
	var id [3]byte
	_, _ = rand.Read(id[:])
	w := &world{
		dir: dir, name: hex.EncodeToString(id[:]), stop: func() error { return nil },
		lines: make(chan string, 1024), ended: make(chan lrp.Event, 1024),
	}
	if err := w.build(ctx); err != nil {
		w.close(&err)
		return nil, err
	}
	return w, nil
}

func (w *world) build(ctx context.Context) error {
	if err := os.Chmod(w.dir, 0o711); err != nil { // containers reach their roots through it
		return err
	}
	if err := w.buildApp(); err != nil {
		return err
	}
	if err := w.open(ctx); err != nil {
		return err
	}
	w.run(ctx)
	return w.mountShared(ctx)
}

func (w *world) path(name string) string { return filepath.Join(w.dir, name) }

// buildApp builds the app and packs it as a droplet.
func (w *world) buildApp() error {
	if err := goprogram.Build("", "./bench/start/app", w.path("app")); err != nil {
		return fmt.Errorf("build the app, in the repository's root: %w", err)
	}
	program, err := os.ReadFile(w.path("app"))
	if err != nil {
		return err
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	a := tar.NewWriter(z)
	err = a.WriteHeader(&tar.Header{Name: "./app/app", Mode: 0o755, Size: int64(len(program))})
	_, err2 := a.Write(program)
	sum := func() []byte { s := sha256.Sum256(b.Bytes()); return s[:] }
	err = errors.Join(err, err2, a.Close(), z.Close(), os.WriteFile(w.path("app.tgz"), b.Bytes(), 0o600))
	w.digest = hex.EncodeToString(sum())
	return err
}

// open opens the parts as the daemon does.
func (w *world) open(ctx context.Context) (err error) {
	if err := lifecycle.Install(w.path("helper")); err != nil {
		return err
	}
	ids := users.Range{Base: idBase, Size: idSize}
	if w.roots, err = rootfs.New(rootfs.Config{Dir: w.path("rootfs"), IDs: ids, Tools: contract.Tools()}); err != nil {
		return err
	}
	config := container.Config{Dir: w.path("containers"), CgroupParent: "cupola-" + w.name, IDMap: container.IDMap(ids), HelperDir: w.path("helper")}
	if w.engine, err = container.New(config); err != nil {
		return err
	}
	config.Kind, config.Dir, config.CgroupParent = container.Runc, w.path("runc-containers"), config.CgroupParent+"-r"
	if w.runc, err = container.New(config); err != nil {
		return err
	}
	var b [2]byte
	_, _ = rand.Read(b[:])
	subnet := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 192 + b[0]%32, b[1] &^ 3, 0}), 22)
	w.net, err = network.New(network.Config{Dir: w.path("net"), Subnet: subnet, Table: "cupola-" + w.name, LinkPrefix: "c" + w.name})
	if err != nil {
		return err
	}
	memory, err := files.New(files.Config{Dir: w.path("memory")})
	if err != nil {
		return err
	}
	claims, err := users.Open(users.DefaultDir)
	if err != nil {
		return err
	}
	identities, err := identity.Open(w.path("identity"), identity.DefaultLife)
	if err != nil {
		return err
	}
	w.cell, err = cell.New(cell.Config{
		Dir: w.path("cell"), Presence: lrp.Cell{ID: "bench"}, Containers: cell.Engine(w.engine), Network: w.net, RootFS: w.roots, Files: memory, Users: claims, Identities: identities,
		Blob: func(string) (string, error) { return w.path("app.tgz"), nil },
		Logs: func(l lrp.LogLine) {
			if string(l.Text) == "x" {
				w.lines <- l.Target.GUID
			}
		},
		Events: func(e lrp.Event) {
			if e.Type == lrp.EventExited {
				w.ended <- e
			}
		},
	})
	return err
}

func (w *world) run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- w.cell.Run(ctx) }()
	w.stop = func() error { cancel(); return <-done }
}

// mountShared waits until the cell has adopted what it has, since it takes away
// what is not its own.
func (w *world) mountShared(ctx context.Context) (err error) {
	<-w.cell.Adopted()
	w.root, err = w.roots.Mount(ctx, root.Request{
		ID: sharedRoot, Stack: "minifs",
		Layers: []layer.Layer{{Digest: w.digest, Archive: w.path("app.tgz"), Dest: contract.Home, UID: contract.VcapID, GID: contract.VcapID}},
	})
	return err
}

// close takes all of the world away.
func (w *world) close(err *error) {
	ctx := context.Background()
	errs := []error{*err, w.stop()}
	for _, e := range []*container.Engine{w.engine, w.runc} {
		if e == nil {
			continue
		}
		states, err := e.List()
		errs = append(errs, err)
		for _, s := range states {
			errs = append(errs, e.Remove(ctx, s.ID))
		}
	}
	if w.net != nil {
		errs = append(errs, w.net.Teardown(ctx))
	}
	if w.roots != nil {
		ids, err := w.roots.List()
		errs = append(errs, err)
		for _, id := range ids {
			errs = append(errs, w.roots.Unmount(ctx, id))
		}
		errs = append(errs, w.roots.Close())
	}
	for _, e := range []*container.Engine{w.engine, w.runc} {
		if e != nil {
			errs = append(errs, e.Teardown())
		}
	}
	*err = errors.Join(append(errs, os.RemoveAll(w.dir))...)
}

// await takes n values of a channel.
func await[T any](ctx context.Context, from <-chan T, n int) ([]T, error) {
	var all []T
	for len(all) < n {
		select {
		case v := <-from:
			all = append(all, v)
		case <-ctx.Done():
			return nil, fmt.Errorf("got %d of %d: %w", len(all), n, ctx.Err())
		}
	}
	return all, nil
}
