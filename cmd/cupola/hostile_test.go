package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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
func uploadTargets(d *daemon) []uploadTarget {
	var space struct{ Resources []struct{ GUID string } }
	d.api("GET", "/v3/spaces", nil, &space)
	var made struct{ GUID string }
	d.api("POST", "/v3/apps", doc{"name": "hostile", "relationships": doc{"space": doc{"data": doc{"guid": space.Resources[0].GUID}}}}, &made)
	app := doc{"app": doc{"data": doc{"guid": made.GUID}}}
	d.api("POST", "/v3/packages", doc{"type": "bits", "relationships": app}, &made)
	pkg := "/v3/packages/" + made.GUID
	d.api("POST", "/v3/droplets", doc{"relationships": app}, &made)
	droplet := "/v3/droplets/" + made.GUID
	d.api("POST", "/v3/buildpacks", doc{"name": "hostile"}, &made)
	zipped := zipOf(entry{"bin/compile", "#!/bin/sh", 0o755}, entry{"l", "bin/compile", symlink})
	return []uploadTarget{
		{"package", pkg, "app.zip", hostileZips(), zipped, 200, "READY"},
		{"buildpack", "/v3/buildpacks/" + made.GUID, "bp.zip", hostileZips(), zipped, 202, "READY"},
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
	d := startDaemon(t, needBinary(t))
	for _, u := range uploadTargets(d) {
		t.Run(u.name, func(t *testing.T) {
			d := d.on(t)
			for _, c := range u.hostile {
				t.Run(c.name, func(t *testing.T) { d.on(t).refuses(u, "", c) })
			}
			if u.name == "package" {
				for _, c := range hostileResources {
					t.Run(c.name, func(t *testing.T) {
						d.on(t).refuses(u, c.resources, archiveCase{c.name, c.want, u.good})
					})
				}
			}
			if status, text := d.sendBits(u, "", u.good); status != u.taken {
				t.Fatalf("a good upload: got %d %s", status, text)
			}
			if got := d.state(u.path); got != u.after {
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
	{"mode", `[{"path":"a","mode":"999","checksum":{"value":"da39a3ee5e6b4b0d3255bfef95601890afd80709"},"size_in_bytes":70000}]`, `mode "999", which is no octal number`},
	{"size", `[{"path":"a","mode":"644","checksum":{"value":"da39a3ee5e6b4b0d3255bfef95601890afd80709"},"size_in_bytes":-1}]`, `a: `},
}

// refuses sends one archive, with a list of known files when it is not "".
func (d *daemon) refuses(u uploadTarget, resources string, c archiveCase) {
	d.t.Helper()
	before := d.files()
	d.forgetPeak()
	status, text := d.sendBits(u, resources, c.write)
	var answer struct{ Errors []struct{ Detail string } }
	if status != 422 || json.Unmarshal([]byte(text), &answer) != nil || len(answer.Errors) != 1 {
		d.t.Fatalf("got %d %s; want 422", status, text)
	}
	if !regexp.MustCompile(c.want).MatchString(answer.Errors[0].Detail) {
		d.t.Errorf("got %q; want it to match %q", answer.Errors[0].Detail, c.want)
	}
	peak := d.peak()
	d.t.Logf("%s (%d MiB)", answer.Errors[0].Detail, peak>>20)
	if peak > maxPeak {
		d.t.Errorf("the daemon took %d MiB", peak>>20)
	}
	if got := d.state(u.path); got != "AWAITING_UPLOAD" {
		d.t.Errorf("got state %s; want AWAITING_UPLOAD", got)
	}
	if diff := cmp.Diff(before, d.files()); diff != "" {
		d.t.Errorf("files (-before +after):\n%s", diff)
	}
}

func (d *daemon) state(path string) string {
	d.t.Helper()
	var now struct{ State string }
	d.api("GET", path, nil, &now)
	return now.State
}

// sendBits uploads an archive, with a list of known files when it is not "".
func (d *daemon) sendBits(u uploadTarget, resources string, write func(io.Writer) error) (status int, text string) {
	d.t.Helper()
	f, err := os.Create(filepath.Join(d.t.TempDir(), u.file))
	if err != nil {
		d.t.Fatal(err)
	}
	defer f.Close()
	form := multipart.NewWriter(f)
	if resources != "" {
		if err := form.WriteField("resources", resources); err != nil {
			d.t.Fatal(err)
		}
	}
	part, err := form.CreateFormFile("bits", u.file)
	if err != nil {
		d.t.Fatal(err)
	}
	buffered := bufio.NewWriterSize(part, 1<<20)
	for _, step := range []func() error{func() error { return write(buffered) }, buffered.Flush, form.Close} {
		if err := step(); err != nil {
			d.t.Fatal(err)
		}
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		d.t.Fatal(err)
	}
	return d.post(u.path+"/upload", form.FormDataContentType(), f)
}

func (d *daemon) post(path, kind string, body io.Reader) (status int, text string) {
	d.t.Helper()
	c := d.client()
	req, err := http.NewRequest("POST", c.url(path), body)
	if err != nil {
		d.t.Fatal(err)
	}
	req.Header.Set("Content-Type", kind)
	req.Header.Set("Authorization", "bearer "+c.token)
	res, err := c.http.Do(req)
	if err != nil {
		d.t.Fatal(err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		d.t.Fatal(err)
	}
	return res.StatusCode, string(answer)
}

// files are the names of all files of the daemon, but those of its database and
// of what it mounts for containers.
func (d *daemon) files() (names []string) {
	d.t.Helper()
	err := filepath.WalkDir(d.dir, func(name string, e fs.DirEntry, err error) error {
		if name == filepath.Join(d.dir, "containers") || name == filepath.Join(d.dir, "netns") {
			return fs.SkipDir
		}
		if err == nil && !e.IsDir() && !strings.Contains(e.Name(), ".db") {
			names = append(names, strings.TrimPrefix(name, d.dir))
		}
		return err
	})
	if err != nil {
		d.t.Fatal(err)
	}
	return names
}

// forgetPeak makes peak tell of what comes.
func (d *daemon) forgetPeak() {
	d.t.Helper()
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", d.cmd.Process.Pid), []byte("5"), 0); err != nil {
		d.t.Fatal(err)
	}
}

// peak is the most memory that the daemon had, in bytes.
func (d *daemon) peak() int64 {
	d.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", d.cmd.Process.Pid))
	if err != nil {
		d.t.Fatal(err)
	}
	_, line, _ := bytes.Cut(text, []byte("VmHWM:"))
	kb, err := strconv.ParseInt(strings.Fields(string(line))[0], 10, 64)
	if err != nil {
		d.t.Fatal(err)
	}
	return kb << 10
}
