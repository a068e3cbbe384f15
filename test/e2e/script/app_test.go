package script

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"cupola/test/e2e"
)

// printLogs prints the recent log of an app, each line with its source type:
// logs APP_GUID.
func printLogs(ts *testscript.TestScript, s *session, args []string) outcome {
	if len(args) != 1 {
		ts.Fatalf("usage: logs APP_GUID")
	}
	var answer struct {
		Envelopes struct {
			Batch []struct {
				InstanceID string `json:"instance_id"`
				Tags       map[string]string
				Log        struct {
					Payload []byte
					Type    string
				}
			}
		}
	}
	// The CLI's own question.
	path := "/api/v1/read/" + args[0] + "?descending=true&envelope_types=LOG&limit=1000&start_time=-6795364578871345152"
	if err := s.client.Call(context.Background(), "GET", path, nil, &answer); err != nil {
		return outcome{err: err}
	}
	var b strings.Builder
	for i := range answer.Envelopes.Batch {
		e := answer.Envelopes.Batch[len(answer.Envelopes.Batch)-1-i]
		fmt.Fprintf(&b, "[%s/%s] %s %s\n", e.Tags["source_type"], e.InstanceID, e.Log.Type, e.Log.Payload)
	}
	return outcome{stdout: b.String()}
}

// outside serves the directories of all scripts outside of this machine, each below a number of its own.
type outside struct {
	*e2e.Outside
	mux    *http.ServeMux
	url    func() string // begins to serve, once
	served atomic.Int64
}

func newOutside(t *testing.T) *outside {
	o := &outside{Outside: e2e.NewOutside(t), mux: http.NewServeMux()}
	o.url = sync.OnceValue(func() string {
		public, _ := o.Serve(t, o.mux)
		return public
	})
	return o
}

// serve serves what a handler does, and returns its URL.
func (o *outside) serve(h http.Handler) string {
	prefix := fmt.Sprintf("/%d", o.served.Add(1))
	o.mux.Handle(prefix+"/", http.StripPrefix(prefix, h))
	return o.url() + prefix
}

// serveDirectory serves a directory over HTTP until the test ends, outside of this
// machine, and the git repositories in it below /git/: serve VARIABLE DIR.
func serveDirectory(ts *testscript.TestScript, s *session, args []string) outcome {
	if len(args) != 2 {
		ts.Fatalf("usage: serve VARIABLE DIR")
	}
	dir := ts.MkAbs(args[1])
	mux := http.NewServeMux()
	mux.Handle("/", http.FileServer(http.Dir(dir)))
	if server := e2e.GitServer(dir); server != nil {
		mux.Handle("/git/", http.StripPrefix("/git", server))
	}
	ts.Setenv(args[0], s.outside.serve(mux))
	return outcome{}
}

// hostDirectory serves a directory over HTTP at a loopback address until the script
// ends: host VARIABLE DIR.
func hostDirectory(ts *testscript.TestScript, _ *session, args []string) outcome {
	if len(args) != 2 {
		ts.Fatalf("usage: host VARIABLE DIR")
	}
	srv := httptest.NewServer(http.FileServer(http.Dir(ts.MkAbs(args[1]))))
	ts.Defer(srv.Close)
	ts.Setenv(args[0], srv.URL)
	return outcome{}
}

// stageApp does what the CLI does from the package to the droplet: stage
// VARIABLE APP_GUID DIR. The build's error is on stdout.
func stageApp(ts *testscript.TestScript, s *session, args []string) outcome {
	if len(args) != 3 {
		ts.Fatalf("usage: stage VARIABLE APP_GUID DIR")
	}
	file := filepath.Join(s.dir, "stage-"+args[0]+".zip")
	zipDirectory(ts, s, []string{file, args[2]})
	step := func(method, path, body string) outcome {
		return s.exchange(method, path, "application/json", strings.NewReader(body))
	}
	if out := step("POST", "/v3/packages", `{"type":"bits","relationships":{"app":{"data":{"guid":"`+args[1]+`"}}}}`); out.err != nil {
		return out
	}
	setVariable(ts, s, []string{"PACKAGE", "guid"})
	if out := uploadFile(ts, s, []string{"/v3/packages/" + ts.Getenv("PACKAGE") + "/upload", file}); out.err != nil {
		return out
	}
	if out := step("POST", "/v3/builds", `{"package":{"guid":"`+ts.Getenv("PACKAGE")+`"}}`); out.err != nil {
		return out
	}
	setVariable(ts, s, []string{"BUILD", "guid"})
	out := step("GET", "/v3/builds/"+ts.Getenv("BUILD"), "")
	for out.err == nil && strings.Contains(out.stdout, `"STAGING"`) {
		out = step("GET", "/v3/builds/"+ts.Getenv("BUILD"), "")
	}
	if out.err == nil && strings.Contains(out.stdout, `"FAILED"`) {
		out.err = errors.New("the build failed")
	}
	if out.err == nil {
		setVariable(ts, s, []string{args[0], "droplet.guid"})
	}
	return out
}
