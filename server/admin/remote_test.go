package admin

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"cupola/server/admin/stack"
)

// remoteServer is the operations of a daemon as the API has them.
func remoteServer(t *testing.T, d *Daemon) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(d.Remote())
	t.Cleanup(s.Close)
	return s
}

func post(t *testing.T, url, body string) (int, string) {
	t.Helper()
	res, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

// TestRemoteServesWhatAdminsMay asks for all operations of the table: those that
// take a path or give rights are unknown.
func TestRemoteServesWhatAdminsMay(t *testing.T) {
	d := startDaemon(t)
	s := remoteServer(t, &Daemon{Dir: d.Dir, Store: d.Store, Stacks: d.Library, Log: d.Log})
	allowed := map[string]bool{}
	for _, o := range remoteOperations() {
		allowed[o.path()] = true
	}
	for _, o := range Table() {
		if allowed[o.path()] {
			continue
		}
		if code, text := post(t, s.URL+remotePath+o.path(), `{}`); code != http.StatusNotFound || !strings.Contains(text, `"code":10000`) {
			t.Errorf("%s: got %d %s", o.path(), code, text)
		}
	}
	for _, path := range []string{"/open", "/stack/import", "/stack/export", "/stack/build", "/token-keys/rotate", "/backup", "/verify"} {
		if allowed[path] {
			t.Errorf("%s is served", path)
		}
	}
	code, text := post(t, s.URL+remotePath+"/stack/list", `{}`)
	var l line[stack.Listing]
	if err := json.Unmarshal([]byte(text), &l); err != nil || code != http.StatusOK || !l.Done || len(l.Answer.Stacks) == 0 {
		t.Errorf("got %d %s, %v", code, text, err)
	}
	if code, text := post(t, s.URL+remotePath+"/stack/rm", `{"Name":"minifs"}`); code != http.StatusOK || !strings.Contains(text, `{"Error":`) || !strings.Contains(text, "part of cupola") {
		t.Errorf("got %d %s", code, text)
	}
}

func TestRemoteRefusesBodies(t *testing.T) {
	d := startDaemon(t)
	s := remoteServer(t, &Daemon{Dir: d.Dir, Store: d.Store, Stacks: d.Library, Log: d.Log})
	for _, c := range []struct {
		body string
		code int
		want string
	}{
		{"", 400, `"code":1001`}, {"null", 400, `"code":1001`}, {"[]", 400, `"code":1001`}, {"{", 400, `"code":1001`}, {"{} {}", 400, `"code":1001`},
		{`{"Name":"` + strings.Repeat("x", maxRemoteBody) + `"}`, 413, "more than 65536 bytes"},
		{`{"Name":7}`, 400, "cannot unmarshal number"},
		{`{"Name":"../../etc"}`, 200, "there is no stack or image ../../etc"},
	} {
		if code, text := post(t, s.URL+remotePath+"/stack/inspect", c.body); code != c.code || !strings.Contains(text, c.want) {
			t.Errorf("%.20s: got %d %s; want %d %s", c.body, code, text, c.code, c.want)
		}
	}
	for body, want := range map[string]string{
		`{"Reference":"oci:/etc"}`:                            "invalid Reference",
		`{"Reference":"preloaded:minifs"}`:                    "invalid Reference",
		`{"Reference":"a/b","Fallbacks":["oci:/etc"]}`:        "invalid Fallbacks",
		`{"Reference":"docker://x y"}`:                        "x y",
		`{"Reference":"docker://169.254.169.254/a/b:latest"}`: "",
	} {
		if _, text := post(t, s.URL+remotePath+"/stack/pull", body); !strings.Contains(text, `{"Error":`) || !strings.Contains(text, want) {
			t.Errorf("%s: got %s; want %s", body, text, want)
		}
	}
}

// TestRemoteIsBounded has more operations under way than there may be.
func TestRemoteIsBounded(t *testing.T) {
	began, end := make(chan struct{}), make(chan struct{})
	slots := make(chan struct{}, 1)
	s := httptest.NewServer(bounded(slots, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(began)
		<-end
		_, _ = w.Write([]byte("{}"))
	})))
	defer s.Close()
	done := make(chan int)
	go func() {
		code, _ := post(t, s.URL, "{}")
		done <- code
	}()
	<-began
	if code, text := post(t, s.URL, "{}"); code != http.StatusServiceUnavailable || !strings.Contains(text, `"code":10015`) {
		t.Errorf("got %d %s", code, text)
	}
	close(end)
	if code := <-done; code != http.StatusOK {
		t.Errorf("got %d", code)
	}
}

// TestRemotePullSendsSteps pulls an image: the layers come as lines before the
// answer; then it says what a collection would remove, and removes nothing.
func TestRemotePullSendsSteps(t *testing.T) {
	if os.Getenv("CUPOLA_TEST_ROOT") != "1" {
		t.Skip("needs CUPOLA_TEST_ROOT=1 and root")
	}
	ref, _ := loopbackImageOf(t, "bin/sh", []byte("text"))
	host, _, _ := strings.Cut(ref, "/")
	d := startDaemon(t, host)
	s := remoteServer(t, &Daemon{Dir: d.Dir, Store: d.Store, Stacks: d.Library, Log: d.Log})
	_, text := post(t, s.URL+remotePath+"/stack/pull", `{"Reference":"`+ref+`"}`)
	lines := strings.Split(strings.TrimSpace(text), "\n")
	var last line[stack.Info]
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil || !last.Done || len(lines) < 2 || !strings.Contains(lines[0], `"Step":"layer"`) {
		t.Fatalf("got %s, %v", text, err)
	}
	long := time.Now().Add(-time.Hour)
	if err := os.Chtimes(d.Dir.Path("rootfs", "images", strings.TrimPrefix(last.Answer.Digest, "sha256:")+".json"), long, long); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		body string
		left int
	}{{`{"All":true,"DryRun":true}`, 1}, {`{"All":true}`, 0}} {
		if _, text := post(t, s.URL+remotePath+"/stack/gc", c.body); !strings.Contains(text, last.Answer.Digest) {
			t.Errorf("%s: got %s", c.body, text)
		}
		if all := d.listed(t).Images; len(all) != c.left {
			t.Errorf("%s: got %v; want %d left", c.body, all, c.left)
		}
	}
}
