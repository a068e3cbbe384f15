package push

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"cupola/test/e2e"
)

// A buildpack by URL is downloaded from where the security groups of its app's
// staging let a program connect, and from nowhere else.
func TestBuildpackByURL(t *testing.T) {
	d := e2e.StartDaemon(t, e2e.NeedBinary(t))
	o := e2e.NewOutside(t)
	var asked, local atomic.Int32
	zip, chain := e2e.Zipped(e2e.OwnBuildpack), http.NewServeMux()
	several := serveSeveral(t, chain)
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/several/") {
			chain.ServeHTTP(w, r)
			return
		}
		asked.Add(1)
		if user, password, _ := r.BasicAuth(); user != "me" || password != "pass" {
			http.Error(w, "TOP SECRET", http.StatusForbidden)
			return
		}
		zip(w, r)
	})
	public, private := o.Serve(t, handler)
	own := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { local.Add(1); zip(w, r) }))
	defer own.Close()
	push := func(urls ...string) (string, error) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "hello"), e2e.HelloProgram(t), 0o755); err != nil {
			t.Fatal(err)
		}
		e2e.WriteManifest(t, dir, e2e.Doc{"name": "by-url", "memory": "64M", "disk_quota": "128M", "stack": "host", "buildpacks": urls})
		return d.Run("push", dir)
	}
	secretly := func(url string) string { return strings.Replace(url, "http://", "http://me:pass@", 1) + "/own.zip" }
	denied := func(url, why string) {
		t.Helper()
		before := asked.Load()
		out, err := push(url)
		if err == nil || !strings.Contains(out, "StagingError - Staging error: staging failed") {
			t.Errorf("%s: got %v; want that staging fails\n%s", url, err, out)
		}
		d.Logged("by-url", why)
		if strings.Contains(out, "TOP SECRET") || strings.Contains(out, "pass@") {
			t.Errorf("the log tells too much:\n%s", out)
		}
		if n := asked.Load() - before; n > 0 && !strings.HasPrefix(url, public) {
			t.Errorf("%s was asked %d times", url, n)
		}
	}
	denied(secretly(private), "Failed to download buildpack '"+strings.Replace(private, "http://", "http://***:***@", 1)+"/own.zip': dial tcp "+strings.TrimPrefix(private, "http://")+": connect: ")
	denied(private+"/repository", "Failed to download buildpack '"+private+"/repository': cannot read git repository: dial tcp ")
	denied(own.URL+"/own.zip", "Failed to download buildpack '"+own.URL+"/own.zip': dial tcp "+strings.TrimPrefix(own.URL, "http://")+": connect: connection refused")
	if n := local.Load(); n != 0 {
		t.Errorf("this machine's loopback was asked %d times", n)
	}
	denied(public+"/own.zip", "Failed to download buildpack '"+public+"/own.zip': 403 Forbidden")

	works := func(urls ...string) {
		t.Helper()
		out, err := push(urls...)
		if err != nil || strings.Contains(out, "pass@") {
			t.Fatalf("push: %v\n%s", err, out)
		}
		d.Answers("by-url", "hello from by-url")
	}
	works(secretly(public))
	for _, first := range several {
		works(public+first, public+"/several/cached.zip")
		d.Logged("by-url", "tool at "+first)
	}
	d.Logged("by-url", "Downloaded buildpack `"+strings.Replace(public, "http://", "http://***:***@", 1)+"/own.zip` (")
	d.API("POST", "/v3/security_groups", e2e.Doc{"name": "repositories", "globally_enabled": e2e.Doc{"staging": true},
		"rules": []e2e.Doc{{"protocol": "tcp", "destination": o.Private.String(), "ports": e2e.WebPort}}}, nil)
	works(secretly(private))
	d.Deleted("by-url")
}

// serveSeveral serves what pushes of several buildpacks need: as a zip, and as a git repository where this machine has git's server, a
// buildpack that supplies a program and no more; and cached.zip, the last one, which brings its dependency, as cached buildpacks do, and
// starts the app with both. It gives the paths of the first.
func serveSeveral(t *testing.T, mux *http.ServeMux) (first []string) {
	supplier := func(path string) map[string]string {
		return map[string]string{
			"bin/supply": "#!/bin/sh\nset -e\nmkdir $3/$4/bin\ncp $(dirname $0)/../lib/tool $3/$4/bin/\n",
			"lib/tool":   "#!/bin/sh\necho tool at " + path + "\nexec \"$@\"\n",
		}
	}
	mux.Handle("/several/cached.zip", e2e.Zipped(map[string]string{
		"bin/supply":          "#!/bin/sh\nset -e\nmkdir $3/$4/bin\ncp $(dirname $0)/../dependencies/runner $3/$4/bin/\n",
		"bin/finalize":        "#!/bin/sh\nset -e\n$3/0/bin/tool true\necho 'export PATH=$DEPS_DIR/0/bin:$DEPS_DIR/1/bin:$PATH' > $5/path.sh\n",
		"bin/release":         "#!/bin/sh\necho '---\ndefault_process_types:\n  web: tool runner ./hello'\n",
		"dependencies/runner": "#!/bin/sh\nexec \"$@\"\n",
	}))
	const asZip, asRepository = "/several/supplier.zip", "/several/git/supplier"
	mux.Handle(asZip, e2e.Zipped(supplier(asZip)))
	if server := repository(t, supplier(asRepository)); server != nil {
		mux.Handle("/several/git/", http.StripPrefix("/several/git", server))
		first = append(first, asRepository)
	}
	return append(first, asZip)
}

// repository serves a repository named supplier with these executable files; nil without git's server.
func repository(t *testing.T, files map[string]string) http.Handler {
	root := t.TempDir()
	server := e2e.GitServer(root)
	if server == nil {
		t.Log("without a buildpack in a git repository: this machine has no git-http-backend")
		return nil
	}
	dir := filepath.Join(root, "supplier")
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "."}, {"-c", "user.name=e2e", "-c", "user.email=e2e@example.com", "commit", "-qm", "1"}} {
		if out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	return server
}
