package server

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

type pkg struct {
	ImportPath, Doc, Dir string
	Imports              []string
	Standard             bool
}

// packages lists the packages of this module, for reading alone.
func packages(t *testing.T) []pkg {
	t.Helper()
	all, err := listed()
	if err != nil || len(all) < 20 {
		t.Fatalf("got %d packages, %v", len(all), err)
	}
	return all
}

var listed = sync.OnceValues(func() (all []pkg, err error) {
	cmd := exec.Command("go", "list", "-tags", "netgo osusergo", "-json=ImportPath,Doc,Dir,Imports", "cupola/...")
	cmd.Env = append(cmd.Environ(), "CGO_ENABLED=1")
	out, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		switch err := d.Decode(&p); {
		case err == io.EOF:
			return all, nil
		case err != nil:
			return nil, err
		}
		all = append(all, p)
	}
})

func within(path, room string) bool {
	return path == "cupola/"+room || strings.HasPrefix(path, "cupola/"+room+"/")
}

// TestDoorsOpenOneWay holds the rules of ARCHITECTURE.md on who may import
// whom.
func TestDoorsOpenOneWay(t *testing.T) {
	for _, p := range packages(t) {
		for _, i := range p.Imports {
			for _, room := range []string{"runtime", "rootfs"} {
				if within(p.ImportPath, room) && (within(i, "store") || within(i, "server") || within(i, "cmd")) {
					t.Errorf("%s imports %s: the data plane knows nothing of the control plane", p.ImportPath, i)
				}
			}
			if p.ImportPath == "cupola/store" && strings.HasPrefix(i, "cupola/") && i != "cupola/store/cf" && i != "cupola/runtime/lrp" && i != "cupola/runtime/durable" && i != "cupola/runtime/fairqueue" && i != "cupola/runtime/fault" && i != "cupola/runtime/guid" {
				t.Errorf("store imports %s: it knows only the nouns, how to write files, make GUIDs, queue and end a panic", i)
			}
			if (p.ImportPath == "cupola/store/cf" || p.ImportPath == "cupola/runtime/lrp") && strings.Contains(i, ".") {
				t.Errorf("%s imports %s: nouns import the standard library only", p.ImportPath, i)
			}
			if p.ImportPath == "cupola/server/authz" && i == "cupola/store" {
				t.Errorf("%s imports %s: rules are of nouns alone", p.ImportPath, i)
			}
			if within(p.ImportPath, "server") && p.ImportPath != "cupola/server" && (i == "cupola/server" || within(i, "cmd")) {
				t.Errorf("%s imports %s: the daemon knows its parts, not they it", p.ImportPath, i)
			}
			if pure := []string{"cupola/server/authz", "cupola/server/bindings", "cupola/server/deploy", "cupola/server/desire", "cupola/server/manifest",
				"cupola/server/bosh", "cupola/server/bosh/bpm", "cupola/server/bosh/erb", "cupola/server/bosh/link", "cupola/server/bosh/release",
				"cupola/server/kube", "cupola/server/bosh/interpolate", "cupola/server/bosh/manifest", "cupola/runtime/suggest", "cupola/server/bosh/ops", "cupola/server/bosh/tree", "cupola/server/bosh/variables"}; slices.Contains(pure, p.ImportPath) && slices.Contains([]string{"net/http", "os", "database/sql"}, i) {
				t.Errorf("%s imports %s: it is pure", p.ImportPath, i)
			}
		}
	}
}

// TestContainersShareOnlyTheContract keeps the code inside containers and the
// daemon's apart: both import package contract, which imports neither.
func TestContainersShareOnlyTheContract(t *testing.T) {
	for _, p := range packages(t) {
		inside := within(p.ImportPath, "cmd/lifecycle")
		for _, i := range p.Imports {
			switch ours := strings.HasPrefix(i, "cupola/"); {
			case p.ImportPath == "cupola/runtime/contract" && ours:
				t.Errorf("%s imports %s: the contract knows neither side", p.ImportPath, i)
			case inside && ours && !within(i, "cmd/lifecycle") && i != "cupola/runtime/contract" && !slices.Contains([]string{"cupola/rootfs/unpack", "cupola/runtime/gitpack", "cupola/runtime/pattern", "cupola/runtime/tunnel"}, i):
				t.Errorf("%s imports %s: it shares the contract with the daemon, and no other code but the unpacking of archives and packs of git, the ends of a tunnel, and late compilation of patterns", p.ImportPath, i)
			case !inside && within(i, "cmd/lifecycle"):
				t.Errorf("%s imports %s, which runs in containers", p.ImportPath, i)
			}
		}
	}
}

// TestRootfsBelowCell keeps the folders rootfs and runtime from knowing each
// other both ways: rootfs is below runtime/cell, and both are above the leaves
// of runtime that know neither.
func TestRootfsBelowCell(t *testing.T) {
	const leaves = "runtime/contract runtime/durable runtime/egress runtime/fault runtime/pattern runtime/thread runtime/users"
	all := map[string]pkg{}
	for _, p := range packages(t) {
		all[p.ImportPath] = p
	}
	for path := range all {
		for _, i := range closure(all, path) {
			switch {
			case within(path, "rootfs") && within(i, "runtime") && !anyRoom(i, leaves):
				t.Errorf("%s needs %s; rootfs needs no more of runtime than %s", path, i, leaves)
			case within(path, "runtime") && within(i, "rootfs") && !within(path, "runtime/cell"):
				t.Errorf("%s needs %s; of runtime only the cell knows root file systems", path, i)
			}
		}
	}
}

// TestRootfsImportsOneWay holds the order of the packages in rootfs: each may
// import those of the rows above its own.
func TestRootfsImportsOneWay(t *testing.T) {
	rows := []string{
		"internal/keylock reference unpack pack system/systemtest",
		"oci tree disk overlay registry/registrytest",
		"registry system internal/store volume debian",
		"image layer",
		"stack",
		"root packed",
	}
	row := map[string]int{"cupola/rootfs": len(rows)}
	for n, names := range rows {
		for name := range strings.FieldsSeq(names) {
			row["cupola/rootfs/"+name] = n
		}
	}
	for _, p := range packages(t) {
		at, ok := row[p.ImportPath]
		if within(p.ImportPath, "rootfs") && !ok {
			t.Errorf("%s has no row", p.ImportPath)
		}
		for _, i := range p.Imports {
			if above, ours := row[i]; ok && ours && above >= at {
				t.Errorf("%s imports %s, which is not above it", p.ImportPath, i)
			}
			if within(p.ImportPath, "rootfs/debian") && strings.HasPrefix(i, "cupola/") && !within(i, "rootfs/debian") && i != "cupola/rootfs/disk" && i != "cupola/runtime/fault" {
				t.Errorf("%s imports %s: the builder of Debian trees knows nothing of cupola", p.ImportPath, i)
			}
		}
	}
}

// maxImports bounds how many packages of this module a package imports, so that
// to change it, one needs to know no more than that.
const maxImports = 25

// TestPackagesImportFew holds packages to maxImports.
func TestPackagesImportFew(t *testing.T) {
	for _, p := range packages(t) {
		ours := slices.DeleteFunc(slices.Clone(p.Imports), func(i string) bool { return !strings.HasPrefix(i, "cupola/") })
		if len(ours) > maxImports {
			t.Errorf("%s imports %d packages of this module; want at most %d: %s", p.ImportPath, len(ours), maxImports, ours)
		}
	}
}

// maxMethods bounds how many methods a type has: one with more does several things.
const maxMethods = 60

// TestTypesHaveFewMethods holds types to maxMethods.
func TestTypesHaveFewMethods(t *testing.T) {
	for _, p := range packages(t) {
		files, err := filepath.Glob(filepath.Join(p.Dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		methods := map[string]int{}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") || strings.HasSuffix(file, ".pb.go") {
				continue
			}
			for _, receiver := range receivers(t, file) {
				methods[receiver]++
			}
		}
		for receiver, n := range methods {
			if n > maxMethods {
				t.Errorf("%s.%s has %d methods; want at most %d", p.ImportPath, receiver, n, maxMethods)
			}
		}
	}
}

// receivers lists the type of each method of a file.
func receivers(t *testing.T, file string) (types []string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range parsed.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Recv == nil {
			continue
		}
		of := f.Recv.List[0].Type
		if pointer, ok := of.(*ast.StarExpr); ok {
			of = pointer.X
		}
		if generic, ok := of.(*ast.IndexExpr); ok {
			of = generic.X
		}
		if name, ok := of.(*ast.Ident); ok {
			types = append(types, name.Name)
		}
	}
	return types
}

// TestEffectsHaveOneRoom holds each module with effects to one room.
func TestEffectsHaveOneRoom(t *testing.T) {
	rooms := map[string]string{
		"github.com/opencontainers/runc/":         "cmd/starter runtime/container", // see TestDaemonLinksNoRunc
		"github.com/google/nftables":              "runtime/network server/doctor",
		"github.com/vishvananda/netlink":          "runtime/network server/doctor test/e2e",
		"modernc.org/sqlite":                      "store",
		"github.com/hanwen/go-fuse/":              "test/powercut",
		"github.com/golang-jwt/jwt/":              "server/uaa",
		"github.com/go-git/go-git/":               "cmd/lifecycle/fetch runtime/gitpack server/gitpush server/cfignore",
		"github.com/google/go-containerregistry/": "rootfs/reference rootfs/registry rootfs/packed server/kube/kubetest bench test/e2e",
		"github.com/ProtonMail/go-crypto/":        "rootfs/debian",
		"github.com/pkg/sftp":                     "cmd/lifecycle/sshd cmd/cupola/deployment server/admin/repository",
		"filippo.io/age":                          "server/admin/repository server/admin/offsite cmd/cupola/backups",
		"github.com/minio/minio-go/":              "server/admin/repository",
		"google.golang.org/protobuf/":             "server/bbs server/logstream server/otlp runtime/health bench",
		"github.com/prometheus/prometheus/":       "server/logcache/query server/logcache/history",
		"k8s.io/client-go/":                       "server/kube/apply server/kube/kubetest",
		"github.com/prometheus/client_golang/":    "server/metrics server/otlp",
		"github.com/caddyserver/certmagic":        "server/acme",
		"github.com/mholt/acmez/":                 "server/acme",
		"go.uber.org/zap":                         "server/acme",
		"github.com/letsencrypt/pebble/":          "server/acme/acmetest",
	}
	for _, p := range packages(t) {
		for _, i := range p.Imports {
			for module, allowed := range rooms {
				if strings.HasPrefix(i, module) && !anyRoom(p.ImportPath, allowed) {
					t.Errorf("%s imports %s, which belongs to %s", p.ImportPath, i, allowed)
				}
			}
		}
	}
}

// maxModules bounds how many modules the product's own code imports. Whoever adds
// one looks first what the standard library and those that are there can do.
const maxModules = 30

// TestProductDependsOnFew counts the modules that the code of the product's
// programs imports, tests and benchmarks aside.
func TestProductDependsOnFew(t *testing.T) {
	cmd := exec.Command("go", "list", "-deps", "-tags", "netgo osusergo", "-json=ImportPath,Imports,Module",
		"cupola/cmd/cupola", "cupola/cmd/lifecycle/...", "cupola/cmd/starter")
	cmd.Env = append(cmd.Environ(), "CGO_ENABLED=1")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	imported, moduleOf := map[string]bool{}, map[string]string{}
	for d := json.NewDecoder(bytes.NewReader(out)); d.More(); {
		var p struct {
			ImportPath string
			Imports    []string
			Module     *struct {
				Path string
				Main bool
			}
		}
		if err := d.Decode(&p); err != nil {
			t.Fatal(err)
		}
		switch {
		case p.Module == nil: // the standard library
		case p.Module.Main:
			for _, i := range p.Imports {
				imported[i] = true
			}
		default:
			moduleOf[p.ImportPath] = p.Module.Path
		}
	}
	modules := map[string]bool{}
	for i := range imported {
		if m := moduleOf[i]; m != "" {
			modules[m] = true
		}
	}
	if len(modules) == 0 || len(modules) > maxModules {
		t.Errorf("the product imports %d modules, at most %d are accepted: %s", len(modules), maxModules, slices.Sorted(maps.Keys(modules)))
	}
}

// TestDaemonLinksNoRunc holds libcontainer's code to the program that starts
// containers, apart from the types of its configuration: what panics or blocks
// there must not end the daemon.
func TestDaemonLinksNoRunc(t *testing.T) {
	cmd := exec.Command("go", "list", "-deps", "-tags", "netgo osusergo", "cupola/cmd/cupola")
	cmd.Env = append(cmd.Environ(), "CGO_ENABLED=1")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	const runc = "github.com/opencontainers/runc/"
	for _, p := range strings.Fields(string(out)) {
		if strings.HasPrefix(p, runc) && p != runc+"libcontainer/configs" {
			t.Errorf("the daemon links %s, which belongs to cmd/starter", p)
		}
	}
}

func anyRoom(path, rooms string) bool {
	for _, r := range strings.Fields(rooms) {
		if within(path, r) {
			return true
		}
	}
	return false
}

// TestPackagesSayWhatTheyAre wants a doc on every package.
func TestPackagesSayWhatTheyAre(t *testing.T) {
	for _, p := range packages(t) {
		if p.Doc == "" && !strings.Contains(p.ImportPath, "/testdata/") {
			t.Errorf("%s has no package doc", p.ImportPath)
		}
	}
}

// TestControlKnowsNoHTTP holds the verbs of the control plane apart from its
// faces: of our packages that they are built of, only those that are listed
// import net/http.
func TestControlKnowsNoHTTP(t *testing.T) {
	allowed := []string{"cupola/runtime/fault"} // it guards handlers against panics, as all else
	all := map[string]pkg{}
	for _, p := range packages(t) {
		all[p.ImportPath] = p
	}
	for path := range all {
		if !within(path, "server/control") {
			continue
		}
		for _, p := range closure(all, path) {
			if within(p, "server/api") || slices.Contains(all[p].Imports, "net/http") && !slices.Contains(allowed, p) {
				t.Errorf("%s is built of %s, which speaks HTTP", path, p)
			}
		}
	}
}

// TestImportsPointOneWay holds rooms to what they may be built of, through
// whatever they import: the control plane's verbs know none of its faces, and of
// each other only what stands before them here; nouns and rules know no store.
func TestImportsPointOneWay(t *testing.T) {
	all := map[string]pkg{}
	for _, p := range packages(t) {
		all[p.ImportPath] = p
	}
	order := []string{"message", "access audit", "", "change policies quota", "services", "apps orgs routes", "cronjobs autoscaling", "stacks manifests", "deletion", "jobs"}
	level := map[string]int{}
	for n, names := range order {
		for _, name := range strings.Split(names, " ") {
			level[strings.TrimSuffix("cupola/server/control/"+name, "/")] = n
		}
	}
	for path := range all {
		for _, p := range closure(all, path) {
			if p == path {
				continue
			}
			if within(path, "server/control") {
				if mine, known := level[path]; !known {
					t.Errorf("%s has no place in the order of the verbs", path)
				} else if other, verbs := level[p]; verbs && other >= mine {
					t.Errorf("%s is built of %s, which stands beside it or after it", path, p)
				}
				if slices.ContainsFunc([]string{"server/uaa", "server/bbs", "server/sshproxy", "server/broker", "server/reconcile"}, func(face string) bool { return within(p, face) }) {
					t.Errorf("%s is built of %s: verbs know no face and no loop", path, p)
				}
			}
			if slices.Contains([]string{"cupola/server/authz", "cupola/server/bindings", "cupola/server/manifest"}, path) && p == "cupola/store" {
				t.Errorf("%s is built of the store: it is pure", path)
			}
		}
	}
}

// closure is a package and all of ours that it imports, directly or not.
func closure(all map[string]pkg, path string) (list []string) {
	list = []string{path}
	for i := 0; i < len(list); i++ {
		for _, p := range all[list[i]].Imports {
			if _, ours := all[p]; ours && !slices.Contains(list, p) {
				list = append(list, p)
			}
		}
	}
	return list
}

// TestAdminKnowsNoDaemon keeps what operators do apart from what only a daemon
// does: it opens parts of a data directory, and takes a daemon's by their types.
func TestAdminKnowsNoDaemon(t *testing.T) {
	all := map[string]pkg{}
	for _, p := range packages(t) {
		all[p.ImportPath] = p
	}
	daemons := []string{"cupola/server", "cupola/server/executor", "cupola/server/faces", "cupola/server/loops", "cupola/server/bbs", "cupola/server/front", "cupola/server/router", "cupola/server/sshproxy", "cupola/server/logcache", "cupola/server/loggregator", "cupola/server/metrics", "cupola/server/deploy"}
	for path := range all {
		if !within(path, "server/admin") && !within(path, "server/datadir") {
			continue
		}
		for _, i := range all[path].Imports {
			if slices.Contains(daemons, i) || within(i, "cmd") {
				t.Errorf("%s imports %s, which only a daemon has open", path, i)
			}
			if within(path, "server/datadir") && within(i, "server/admin") && i != "cupola/server/admin/archive" {
				t.Errorf("%s imports %s: a data directory knows nothing of operations", path, i)
			}
		}
	}
}
