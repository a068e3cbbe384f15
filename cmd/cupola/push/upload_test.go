package push

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"testing/fstest"

	"cupola/cmd/cupola/capi"
	"cupola/cmd/cupola/command"
)

// TestAnUploadLeavesNothing looks at the temporary directory while a package is
// uploaded: a command that is killed then removes nothing.
func TestAnUploadLeavesNothing(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	uploaded := false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v3/packages/pkg/upload" {
			_, _ = io.Copy(io.Discard, r.Body)
			uploaded = true
			if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
				t.Errorf("the temporary directory has %v, %v", left, err)
			}
		}
		fmt.Fprint(w, `{"guid":"pkg"}`)
	}))
	defer server.Close()
	p := &Pusher{Client: &capi.Client{API: server.URL, HTTP: server.Client()}, Show: command.NewReport(&command.Env{Out: io.Discard})}
	guid, err := p.upload(t.Context(), "app", fstest.MapFS{"index.html": {Data: []byte("hello")}})
	if err != nil || guid != "pkg" || !uploaded {
		t.Errorf("got %q, %v, uploaded %t", guid, err, uploaded)
	}
}
