package push

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cupola/test/e2e"
)

// uploadTarget is a resource that takes an upload once.
type uploadTarget struct {
	name    string
	path    string // of the resource
	file    string // what the upload is called
	hostile []archiveCase
	good    func(io.Writer) error
	taken   int    // the status of a good upload
	after   string // its state then
}

// uploadTargets makes one of each kind.
func uploadTargets(d *e2e.Daemon) []uploadTarget {
	var space struct{ Resources []struct{ GUID string } }
	d.API("GET", "/v3/spaces", nil, &space)
	var made struct{ GUID string }
	d.API("POST", "/v3/apps", e2e.Doc{"name": "hostile", "relationships": e2e.Doc{"space": e2e.Doc{"data": e2e.Doc{"guid": space.Resources[0].GUID}}}}, &made)
	app := e2e.Doc{"app": e2e.Doc{"data": e2e.Doc{"guid": made.GUID}}}
	d.API("POST", "/v3/packages", e2e.Doc{"type": "bits", "relationships": app}, &made)
	pkg := "/v3/packages/" + made.GUID
	d.API("POST", "/v3/droplets", e2e.Doc{"relationships": app}, &made)
	droplet := "/v3/droplets/" + made.GUID
	zipped := zipOf(entry{"bin/compile", "#!/bin/sh", 0o755}, entry{"l", "bin/compile", symlink})
	return []uploadTarget{
		{"package", pkg, "app.zip", hostileZips(), zipped, 200, "READY"},
		{"droplet", droplet, "droplet.tgz", hostileDroplets(), func(w io.Writer) error { _, err := w.Write(goodDroplet()); return err }, 202, "STAGED"},
	}
}

// maxPeak bounds the daemon's memory whatever it is sent, in bytes. Idle it
// needs less than 64 MiB.
const maxPeak = 256 << 20

// TestHostileUploads sends archives made to do harm to every endpoint that
// takes one: each is refused with words that name the trouble, leaves no file
// behind, and the resource takes a good upload afterwards.
func TestHostileUploads(t *testing.T) {
	t.Parallel()
	d := e2e.StartDaemon(t, e2e.NeedBinary(t))
	for _, u := range uploadTargets(d) {
		t.Run(u.name, func(t *testing.T) {
			d := d.On(t)
			for _, c := range u.hostile {
				t.Run(c.name, func(t *testing.T) { refuses(d.On(t), u, "", c) })
			}
			if u.name == "package" {
				for _, c := range hostileResources {
					t.Run(c.name, func(t *testing.T) {
						refuses(d.On(t), u, c.resources, archiveCase{c.name, c.want, u.good})
					})
				}
			}
			if status, text := d.SendBits(u.path, u.file, "", u.good); status != u.taken {
				t.Fatalf("a good upload: got %d %s", status, text)
			}
			if got := state(d, u.path); got != u.after {
				t.Errorf("after a good upload: got %s; want %s", got, u.after)
			}
		})
	}
}

// hostileResources are what a good archive may not have beside it: files that
// the server is said to know.
var hostileResources = []struct{ name, resources, want string }{
	{"no list", `{"path":`, `Resources must be an array`},
	{"unknown file", `[{"path":"a","mode":"644","checksum":{"value":"da39a3ee5e6b4b0d3255bfef95601890afd80709"},"size_in_bytes":70000}]`, `a: is not known here`},
	{"known out of the tree", `[{"path":"../../a","mode":"644","checksum":{"value":"da39a3ee5e6b4b0d3255bfef95601890afd80709"},"size_in_bytes":70000}]`, `\.\./\.\./a: leads out of`},
	{"known below a link", `[{"path":"l/a","mode":"644","checksum":{"value":"da39a3ee5e6b4b0d3255bfef95601890afd80709"},"size_in_bytes":70000}]`, `l/a: lies below l`},
	{"mode", `[{"path":"a","mode":"999","checksum":{"value":"da39a3ee5e6b4b0d3255bfef95601890afd80709"},"size_in_bytes":70000}]`, `mode "999", which is not an octal number`},
	{"size", `[{"path":"a","mode":"644","checksum":{"value":"da39a3ee5e6b4b0d3255bfef95601890afd80709"},"size_in_bytes":-1}]`, `a: `},
}

// refuses sends one archive, with a list of known files when it is not "".
func refuses(d *e2e.Daemon, u uploadTarget, resources string, c archiveCase) {
	d.T.Helper()
	before := files(d)
	forgetPeak(d)
	status, text := d.SendBits(u.path, u.file, resources, c.write)
	var answer struct{ Errors []struct{ Detail string } }
	if status != 422 || json.Unmarshal([]byte(text), &answer) != nil || len(answer.Errors) != 1 {
		d.T.Fatalf("got %d %s; want 422", status, text)
	}
	if !regexp.MustCompile(c.want).MatchString(answer.Errors[0].Detail) {
		d.T.Errorf("got %q; want it to match %q", answer.Errors[0].Detail, c.want)
	}
	peak := peak(d)
	d.T.Logf("%s (%d MiB)", answer.Errors[0].Detail, peak>>20)
	if peak > maxPeak {
		d.T.Errorf("the daemon took %d MiB", peak>>20)
	}
	if got := state(d, u.path); got != "AWAITING_UPLOAD" {
		d.T.Errorf("got state %s; want AWAITING_UPLOAD", got)
	}
	if diff := cmp.Diff(before, files(d)); diff != "" {
		d.T.Errorf("files (-before +after):\n%s", diff)
	}
}

func state(d *e2e.Daemon, path string) string {
	d.T.Helper()
	var now struct{ State string }
	d.API("GET", path, nil, &now)
	return now.State
}

// files are the names of all files of the daemon, but those of its database, its
// backups and of what it mounts for containers.
func files(d *e2e.Daemon) (names []string) {
	d.T.Helper()
	others := []string{"containers", "netns", "db/backups"}
	err := filepath.WalkDir(d.Dir, func(name string, e fs.DirEntry, err error) error {
		if below, _ := filepath.Rel(d.Dir, name); slices.Contains(others, below) {
			return fs.SkipDir
		}
		if err == nil && !e.IsDir() && !strings.Contains(e.Name(), ".db") {
			names = append(names, strings.TrimPrefix(name, d.Dir))
		}
		return err
	})
	if err != nil {
		d.T.Fatal(err)
	}
	return names
}

// forgetPeak makes peak tell of what comes.
func forgetPeak(d *e2e.Daemon) {
	d.T.Helper()
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", d.Cmd.Process.Pid), []byte("5"), 0); err != nil {
		d.T.Fatal(err)
	}
}

// peak is the most memory that the daemon had, in bytes.
func peak(d *e2e.Daemon) int64 {
	d.T.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", d.Cmd.Process.Pid))
	if err != nil {
		d.T.Fatal(err)
	}
	_, line, _ := bytes.Cut(text, []byte("VmHWM:"))
	kb, err := strconv.ParseInt(strings.Fields(string(line))[0], 10, 64)
	if err != nil {
		d.T.Fatal(err)
	}
	return kb << 10
}
