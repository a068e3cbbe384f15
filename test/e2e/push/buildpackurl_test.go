package push

import (
	"net/http"
	"net/http/httptest"
	"os"
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
	zip := e2e.Zipped(e2e.OwnBuildpack)
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
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
	push := func(url string) (string, error) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "hello"), e2e.HelloProgram(t), 0o755); err != nil {
			t.Fatal(err)
		}
		e2e.WriteManifest(t, dir, e2e.Doc{"name": "by-url", "memory": "64M", "disk_quota": "128M", "stack": "host", "buildpacks": []string{url}})
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

	works := func(url string) {
		t.Helper()
		out, err := push(url)
		if err != nil || strings.Contains(out, "pass@") {
			t.Fatalf("push: %v\n%s", err, out)
		}
		d.Answers("by-url", "hello from by-url")
	}
	works(secretly(public))
	d.Logged("by-url", "Downloaded buildpack `"+strings.Replace(public, "http://", "http://***:***@", 1)+"/own.zip` (")
	d.API("POST", "/v3/security_groups", e2e.Doc{"name": "repositories", "globally_enabled": e2e.Doc{"staging": true},
		"rules": []e2e.Doc{{"protocol": "tcp", "destination": o.Private.String(), "ports": e2e.WebPort}}}, nil)
	works(secretly(private))
	d.Deleted("by-url")
}
