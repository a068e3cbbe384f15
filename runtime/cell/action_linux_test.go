package cell

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cupola/runtime/cell/conformance"
	"cupola/runtime/container"
	"cupola/runtime/contract"
	"cupola/runtime/lrp"
)

// do runs the test app.
func do(args ...string) lrp.Run {
	return lrp.Run{Path: "/home/vcap/app/app", Args: args}
}

// archiveServer serves an archive with one file, and takes what is uploaded.
type archiveServer struct {
	*httptest.Server
	sum string // sha256

	mu       sync.Mutex
	asked    int
	uploaded string
}

func serveArchive(t *testing.T, name, content string) *archiveServer {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	a := tar.NewWriter(z)
	err := a.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(content))})
	_, err2 := io.WriteString(a, content)
	if err := errors.Join(err, err2, a.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(b.Bytes())
	s := &archiveServer{sum: hex.EncodeToString(sum[:])}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if r.Method == http.MethodPost {
			body, _ := io.ReadAll(r.Body)
			s.uploaded = string(body)
			return
		}
		s.asked++
		_, _ = w.Write(b.Bytes())
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *archiveServer) source() lrp.Source {
	return lrp.Source{From: s.URL, Checksum: lrp.Checksum{Algorithm: "sha256", Value: s.sum}}
}

func realTask(w world, guid string, a lrp.Action) lrp.Container {
	spec := w.instance(guid)
	spec.Kind, spec.Action, spec.Ports = lrp.KindTask, a, nil
	spec.Log.Source = "TASK"
	return spec
}

// A program of all that actions can be, in a container without a process that
// spans it.
func TestRealActions(t *testing.T) { eachKind(t, testRealActions) }

func testRealActions(t *testing.T, kind container.Kind) {
	c, w, r := runReal(t, kind)
	s := serveArchive(t, "file", "fetched")
	limited := do("limits")
	limited.Nofile, limited.Nproc = 1000, 77
	quiet := do("write", "/tmp/quiet", "quiet")
	quiet.Quiet = true
	root := do("write", "log", "root")
	root.User, root.Dir = "root", "/home/vcap" // fs.protected_regular keeps others' files in /tmp from root
	spec := realTask(w, "g", lrp.Serial(
		lrp.Parallel(
			lrp.Download{Source: s.source(), Artifact: "it", To: "in"}.Action(),
			lrp.Tried(do("exit", "3").Action())),
		do("show", "/home/vcap/in/file", "$CF_INSTANCE_GUID").Action()))
	spec.Action.Serial.Actions[1].Run.Args = []string{"write", "log", "first"}
	spec.Setup = lrp.Action{EmitProgress: &lrp.EmitProgress{Action: do("write", "log", "setup").Action(), Start: "setting up", Success: "set up"}}
	spec.Action.Serial.Actions = append(spec.Action.Serial.Actions,
		limited.Action(), quiet.Action(), root.Action(),
		lrp.Codependent(do("sleep", "1h").Action(), do("exit", "0", "50ms").Action()))
	spec.Action.Serial.Actions[5] = lrp.Tried(spec.Action.Serial.Actions[5])
	spec.Action.Serial.Actions = append(spec.Action.Serial.Actions,
		lrp.Upload{Artifact: "log", From: "log", To: s.URL}.Action(),
		lrp.Upload{From: "in/file", To: "blob:copy"}.Action(),
		do("exit", "9").Action())
	c.Start(spec)
	conformance.Eventually(t, "end", func() bool { return len(c.Containers()) == 0 })
	want := lrp.Exit{Code: 9, Failed: true, Reason: "TASK: Exited with status 9"}
	if diff := cmp.Diff(want, r.Exit("g")); diff != "" {
		t.Error(diff)
	}
	out := strings.Join(r.Output(), "\n") + "\n"
	for _, line := range []string{
		"TASK: setting up\nTASK: setup;\nTASK: Exit status 0\nTASK: set up\n", "TASK: Downloading it...\n", "TASK: Downloaded it (", "TASK: Exit status 3\n",
		"TASK: setup;first;\n", "TASK: nofile 1000 1000 <nil>\n", "TASK: nproc 77 77 <nil>\n", "TASK: Uploading log...\n", "TASK: Uploaded log (17B)\n",
	} {
		if !strings.Contains(out, line) {
			t.Errorf("got no %q", line)
		}
	}
	if strings.Contains(out, "quiet") {
		t.Error("got the output of a quiet process")
	}
	if s.uploaded != "setup\nfirst\nroot\n" {
		t.Errorf("got %q uploaded", s.uploaded)
	}
	if t.Failed() {
		t.Log(out)
	}
}

// What a codependent's members do to one another, and what a timeout does, with
// processes that a signal ends.
func TestRealEnds(t *testing.T) { eachKind(t, testRealEnds) }

func testRealEnds(t *testing.T, kind container.Kind) {
	c, w, r := runReal(t, kind)
	serial := func(a lrp.Action) lrp.Action { return lrp.Serial(do("exit", "0").Action(), a) } // beside an idle process
	tests := map[string]struct {
		action lrp.Action
		want   lrp.Exit
	}{
		"codependent": {serial(lrp.Codependent(do("term").Action(), do("exit", "5", "300ms").Action())), lrp.Exit{Failed: true, Reason: "TASK: Exited with status 5"}},
		"timeout":     {serial(lrp.Within(1e9, do("sleep", "1h").Action())), lrp.Exit{Code: 143, Failed: true, Reason: "exceeded 1s timeout"}},
		"oom":         {serial(do("eat").Action()), lrp.Exit{Code: 137, Failed: true, Reason: "TASK: Exited with status 137 (out of memory)"}},
		"no program":  {serial(lrp.Run{Path: "/none"}.Action()), lrp.Exit{Code: 127, Failed: true, Reason: "TASK: Exited with status 127"}},
		"no user":     {serial(lrp.Run{Path: "/none", User: "who"}.Action()), lrp.Exit{Failed: true, Reason: `failed to run container: no user "who" in the root filesystem`}},
	}
	for guid, tt := range tests {
		c.Start(realTask(w, strings.ReplaceAll(guid, " ", "-"), tt.action))
	}
	conformance.Eventually(t, "end", func() bool { return len(c.Containers()) == 0 })
	for guid, tt := range tests {
		if diff := cmp.Diff(tt.want, r.Exit(strings.ReplaceAll(guid, " ", "-"))); diff != "" {
			t.Errorf("%s: %s", guid, diff)
		}
	}
	if t.Failed() {
		t.Log(strings.Join(r.Output(), "\n"))
	}
}

func TestRealLayers(t *testing.T) { eachKind(t, testRealLayers) }

func testRealLayers(t *testing.T, kind container.Kind) {
	c, w, r := runReal(t, kind)
	shared, own, dependency := serveArchive(t, "f", "shared"), serveArchive(t, "f", "own"), serveArchive(t, "f", "dependency")
	writable := serveArchive(t, "f", "writable")
	for _, guid := range []string{"a", "b"} {
		spec := w.instance(guid, "look", "/shared/f", "/own/f", "/dep/f", "/writable/f")
		spec.Layers = append(spec.Layers,
			lrp.Layer{Source: shared.source(), Dest: "/shared", Name: "base"},
			lrp.Layer{Source: own.source(), Dest: "/own", Exclusive: true})
		spec.CachedDependencies = []lrp.CachedDependency{{Source: dependency.source(), To: "/dep"}, {Source: writable.source(), To: "/writable", Writable: true}}
		c.Start(spec)
		r.Find(t, guid, lrp.EventRunning)
		for _, line := range []string{"/shared/f -rw-r--r-- 2000 2000 <nil> not-a-directory", "/own/f -rw-r--r-- 2000 2000 <nil>", "/dep/f -rw-r--r-- 0 0 read-only-file-system", "/writable/f -rw-r--r-- 0 0 permission-denied"} {
			conformance.Eventually(t, line, func() bool { return strings.Count(strings.Join(r.Output(), "\n"), line) >= 1+strings.Index("ab", guid) })
		}
	}
	if shared.asked != 1 || dependency.asked != 1 || own.asked != 2 {
		t.Errorf("got %d, %d and %d downloads; want one of what is shared, and one for each container of the other", shared.asked, dependency.asked, own.asked)
	}
	r.WantLine(t, "Downloaded base (")
}

func TestRealMonitor(t *testing.T) { eachKind(t, testRealMonitor) }

func testRealMonitor(t *testing.T, kind container.Kind) {
	c, w, r := runReal(t, kind)
	spec := w.instance("g", "serve")
	check := lrp.Run{Path: contract.Helper, Args: []string{"healthcheck", "-port=8080"}}
	spec.Monitor, spec.StartTimeout = lrp.Within(20e9, lrp.Parallel(check.Action())), 60e9
	c.Start(spec)
	r.Find(t, "g", lrp.EventReady)
	r.WantLine(t, "CELL: Container became healthy")
	never := w.instance("h", "sleep", "1h")
	never.Monitor, never.StartTimeout = check.Action(), 5e9 // enough for a check on a busy machine
	c.Start(never)
	conformance.Eventually(t, "end", func() bool { return r.Exit("h").Failed })
	if got := r.Exit("h").Reason; !strings.HasPrefix(got, "Instance never healthy after ") || !strings.Contains(got, "8080") {
		t.Errorf("got %q; want what the check has written", got)
	}
}

// A container reads its files but cannot write to them. They change while it
// runs, also when another daemon changes them.
func TestRealFiles(t *testing.T) { eachKind(t, testRealFiles) }

func testRealFiles(t *testing.T, kind container.Kind) {
	w := newWorld(t, kind)
	t.Cleanup(func() { w.wantNothingLeft(t) })
	set := func(n int) []lrp.File {
		text := []byte(fmt.Sprint(n))
		return []lrp.File{{Path: "db/user", Content: text}, {Path: "db/password", Content: text}}
	}
	spec := w.instance("g", "follow", lrp.FilesPath+"/db", "user", "password")
	spec.Files = set(0)
	other := w.instance("h", "look", lrp.FilesPath+"/db", lrp.FilesPath+"/db/user")
	other.Files = set(0)
	none := w.instance("n", "sleep", "1h")
	c := w.spawn(t)
	for _, s := range []lrp.Container{spec, other, none} {
		c.order(t, order{Start: &s})
	}
	c.WantLine(t, "follow: 0 and 0")
	c.WantLine(t, "/etc/cf-service-bindings/db drwxr-xr-x 0 0 is-a-directory read-only-file-system")
	c.WantLine(t, "/etc/cf-service-bindings/db/user -r--r----- 0 2000 read-only-file-system not-a-directory")
	c.order(t, order{For: "g", Files: set(1)})
	c.WantLine(t, "follow: 1 and 1")
	c.Find(t, "n", lrp.EventRunning) // the next daemon takes over what runs
	c.kill()
	c = w.spawn(t)
	for n := range 100 {
		c.order(t, order{For: "g", Files: set(n + 2)})
	}
	c.WantLine(t, "follow: 101 and 101")
	for _, line := range c.Output() {
		if a, b, ok := strings.Cut(strings.TrimPrefix(line, "APP/PROC/WEB: follow: "), " and "); ok && a != b {
			t.Errorf("got %q; want files of one set", line)
		}
	}
	c.order(t, order{For: "n", Files: set(1)})
	c.WantLine(t, "SetFiles: instance has no volume mounted files")
	c.order(t, order{For: "gone", Files: set(1)})
	c.WantLine(t, "SetFiles: instance is not running")
	c.end(t)
}

func TestRealIdentity(t *testing.T) { eachKind(t, testRealIdentity) }

func testRealIdentity(t *testing.T, kind container.Kind) {
	c, w, r := runReal(t, kind)
	spec := w.instance("g", "show", "$CF_INSTANCE_CERT", "$CF_INSTANCE_KEY", "$CF_SYSTEM_CERT_PATH",
		"/etc/cf-instance-credentials/instance.crt", "/etc/cf-instance-credentials/instance.key", "/etc/cf-system-certificates/trusted-ca-1.crt")
	spec.OrganizationalUnits, spec.SystemCertificatesPath = []string{"app:a", "space:s"}, "/etc/cf-system-certificates"
	c.Start(spec)
	address := r.Find(t, "g", lrp.EventRunning).Address
	for _, line := range []string{"CF_INSTANCE_CERT=/etc/cf-instance-credentials/instance.crt", "CF_INSTANCE_KEY=/etc/cf-instance-credentials/instance.key", "CF_SYSTEM_CERT_PATH=/etc/cf-system-certificates", "/etc/cf-system-certificates/trusted-ca-1.crt: "} {
		r.WantLine(t, line)
	}
	shown := func(name string) []byte {
		lines := r.Output()
		n := slices.IndexFunc(lines, func(l string) bool { return strings.Contains(l, name+": ") })
		_, text, _ := strings.Cut(lines[n], name+": ")
		return []byte(strings.ReplaceAll(strings.TrimSuffix(text, " <nil>"), ";", "\n"))
	}
	pair, err := tls.X509KeyPair(shown("instance.crt"), shown("instance.key"))
	if err != nil {
		t.Fatal(err)
	}
	if err := pair.Leaf.VerifyHostname(address); err != nil || pair.Leaf.Subject.CommonName != "g" || !slices.Contains(pair.Leaf.Subject.OrganizationalUnit, "app:a") {
		t.Errorf("got %v for %s, %v", pair.Leaf.Subject, address, err)
	}
}
