package cell

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cupola/rootfs"
	"cupola/runtime/artifact"
	"cupola/runtime/cell/conformance"
	"cupola/runtime/container"
	"cupola/runtime/files"
	"cupola/runtime/identity"
	"cupola/runtime/lrp"
	"cupola/runtime/network"
	"cupola/runtime/users"
	"cupola/test/goprogram"
)

// world is a place on this machine for real containers, with names that
// nothing else here has. It is plain data, so that another process can open
// the same.
type world struct {
	Kind   container.Kind // of engine
	Dir    string
	Name   string
	Subnet netip.Prefix
	Digest string // of the archive that holds the test app
	// NoPIDFDInfo is container.Config's.
	NoPIDFDInfo bool
}

func needRoot(t testing.TB) {
	t.Helper()
	if os.Getenv("CUPOLA_TEST_ROOT") != "1" {
		t.Skip("needs CUPOLA_TEST_ROOT=1 and root")
	}
}

// eachKind runs a test with the engine that is the default, and in `make test-all` with one of each kind: package container
// compares what they make in each run.
func eachKind(t *testing.T, test func(*testing.T, container.Kind)) {
	t.Helper()
	needRoot(t)
	for _, kind := range []container.Kind{container.Launch, container.Runc} {
		t.Run(string(kind), func(t *testing.T) {
			if kind == container.Runc && os.Getenv("CUPOLA_TEST_ALL") == "" {
				t.Skip("make test-all has it")
			}
			if err := container.CheckLaunch(); kind == container.Launch && err != nil {
				t.Skip(err)
			}
			test(t, kind)
		})
	}
}

func newWorld(t testing.TB, kind container.Kind) world {
	t.Helper()
	needRoot(t)
	dir, err := os.MkdirTemp("", "cell") // t.TempDir keeps the containers' root out
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	var b [2]byte
	_, _ = rand.Read(b[:])
	w := world{
		Kind: kind, Dir: dir, Name: strings.ToLower(rand.Text()[:5]),
		Subnet: netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 128 + b[0]%64, b[1], 0}), 24),
	}
	if err := errors.Join(os.Chmod(dir, 0o755), os.Mkdir(w.path("helper"), 0o755), os.Chmod(w.path("helper"), 0o755)); err != nil {
		t.Fatal(err)
	}
	if msg, err := exec.Command("../../cmd/lifecycle/init/build", w.path("helper/init")).CombinedOutput(); err != nil {
		t.Fatalf("build init: %v\n%s", err, msg)
	}
	buildProgram(t, "cupola/cmd/lifecycle", w.path("helper/lifecycle"))
	conformance.Build(t, w.path("app"))
	w.Digest = packApp(t, w.path("app"), w.path("app.tgz"))
	return w
}

func (w world) path(name string) string { return filepath.Join(w.Dir, name) }

func buildProgram(t testing.TB, pkg, out string) {
	t.Helper()
	if err := goprogram.Build("", pkg, out); err != nil {
		t.Fatal(err)
	}
}

// packApp makes a droplet of a program and returns its digest.
func packApp(t testing.TB, program, archive string) string {
	t.Helper()
	content, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	a := tar.NewWriter(z)
	header := &tar.Header{Name: "./app/app", Mode: 0o755, Size: int64(len(content)), ModTime: time.Unix(1, 0)}
	err = a.WriteHeader(header)
	_, err2 := a.Write(content)
	if err := errors.Join(err, err2, a.Close(), z.Close(), os.WriteFile(archive, b.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(b.Bytes())
	return hex.EncodeToString(sum[:])
}

// leaves are the real packages that a cell joins, opened on a world.
type leaves struct {
	world
	engine *container.Engine
	net    *network.Network
	roots  *rootfs.Store
	files  *files.Store
	users  *users.Claims
	moved  *artifact.Store
	issuer *identity.Authority
}

func (w world) open() (*leaves, error) {
	const base, size = 1 << 20, 1 << 16
	engine, err := container.New(container.Config{
		Kind: w.Kind, Dir: w.path("containers"), CgroupParent: "cellt-" + w.Name,
		IDMap: container.IDMap{Base: base, Size: size}, HelperDir: w.path("helper"), NoPIDFDInfo: w.NoPIDFDInfo,
	})
	if err != nil {
		return nil, err
	}
	net, err := network.New(network.Config{
		Dir: w.path("net"), Subnet: w.Subnet, Table: "cellt-" + w.Name, LinkPrefix: "t" + w.Name,
	})
	if err != nil {
		return nil, err
	}
	roots, err := rootfs.New(rootfs.Config{Dir: w.path("rootfs"), IDs: users.Range{Base: base, Size: size}})
	if err != nil {
		return nil, err
	}
	authority, err := identity.Open(w.path("identity"), identity.DefaultLife)
	if err != nil {
		return nil, err
	}
	moved, err := artifact.New(artifact.Config{Dir: w.path("artifacts")})
	if err != nil {
		return nil, err
	}
	memory, err := files.New(files.Config{Dir: w.path("files")})
	if err != nil {
		return nil, err
	}
	claims, err := users.Open(w.path("users"))
	return &leaves{w, engine, net, roots, memory, claims, moved, authority}, err
}

// tearDown removes what containers share, and fails the test if a container
// has left anything.
func (l *leaves) tearDown(t testing.TB) {
	t.Helper()
	ctx := context.Background()
	look, err := New(Config{Dir: l.path("cell"), Containers: Engine(l.engine), Network: l.net, RootFS: l.roots, Files: l.files, Users: l.users})
	if err != nil {
		t.Fatal(err)
	}
	leaks, err := look.Leaks(ctx)
	if len(leaks) > 0 || err != nil {
		t.Errorf("got leaks %v, error %v; want none", leaks, err)
	}
	found, err := look.survey()
	for id := range found.all {
		err = errors.Join(err, look.takeDown(ctx, id))
	}
	err = errors.Join(err, l.net.Teardown(ctx), l.engine.Teardown(), l.roots.Close())
	if err != nil {
		t.Error(err)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil || strings.Contains(string(mounts), l.Dir) {
		t.Errorf("got mounts below %s, error %v; want none", l.Dir, err)
	}
}

// config is the Config of a cell on l.
func (l *leaves) config(r *conformance.Recorder) Config {
	return Config{
		Dir: l.path("cell"), Presence: lrp.Cell{ID: "C", MemoryMB: 8192},
		Containers: Engine(l.engine), Network: l.net, RootFS: l.roots, Images: l.roots.Images, Files: l.files, Users: l.users, Artifacts: l.moved, Identities: l.issuer,
		Blob: func(digest string) (string, error) {
			if digest != l.Digest {
				return "", os.ErrNotExist
			}
			return l.path("app.tgz"), nil
		},
		Keep: keepFake, Logs: r.Log, Events: r.Event,
	}
}

// instance is a container that runs the test app.
func (w world) instance(guid string, args ...string) lrp.Container {
	return lrp.Container{
		GUID: guid, Kind: lrp.KindInstance, ProcessGUID: "p", Index: 1,
		RunInfo: lrp.RunInfo{
			RootFS: "preloaded:minifs", Layers: []lrp.Layer{{Source: lrp.Blobbed(w.Digest), Dest: "/home/vcap"}},
			Action:   lrp.Run{Path: "/home/vcap/app/app", Args: args}.Action(),
			MemoryMB: 64, DiskMB: 64, CPUWeight: 1, LogRateLimitByte: -1, Ports: []uint16{8080},
			Log: lrp.LogTarget{GUID: "app", Source: "APP/PROC/WEB", Instance: "1"},
		},
	}
}
