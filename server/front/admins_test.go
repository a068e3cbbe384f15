package front

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"cupola/server/bulkhead"
	"cupola/server/machine"
	"cupola/store"
)

// TestWhoMaySeeTheMachine asks for the machine and for an operation as everybody
// who may and may not.
func TestWhoMaySeeTheMachine(t *testing.T) {
	rs := logReaders(t)
	err := rs.Store.Write(t.Context(), func(tx *store.Tx) error {
		joe, err := store.Users.Get(tx, "joe")
		if err != nil {
			return err
		}
		joe.Scopes = append(joe.Scopes, "cloud_controller.admin_read_only", "cloud_controller.global_auditor")
		return store.Users.Update(tx, joe)
	})
	if err != nil {
		t.Fatal(err)
	}
	m := machine.New(machine.Config{DataDir: t.TempDir(), Started: time.Now(), Containers: func() int { return 0 },
		Store: rs.Store, Requests: func() map[string]int64 { return map[string]int64{"app-1": 7} }, Doctor: []string{"echo", "[]"}, Log: slog.New(slog.DiscardHandler)})
	f := &Front{Readers: rs, Machine: m, Slots: bulkhead.NewShare[string](10, 1), Operations: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, `{"Done":true}`)
	})}
	mux := http.NewServeMux()
	f.operators(mux)
	const denied = `{"errors":[{"code":10003,"title":"CF-NotAuthorized","detail":"You are not authorized to perform the requested action"}]}`
	admin, reader := "bearer "+rs.token(t, "admin", "cloud_controller.admin"), "bearer "+rs.token(t, "joe", "cloud_controller.admin_read_only")
	auditor := "bearer " + rs.token(t, "joe", "cloud_controller.global_auditor")
	for _, c := range []struct {
		method, path, token string
		status              int
		want                string
	}{
		{"GET", "/v1/machine", admin, 200, `"cpus":`},
		{"GET", "/v1/machine", reader, 200, `"cpus":`},
		{"GET", "/v1/machine", auditor, 403, denied},
		{"GET", "/v1/machine", "bearer " + rs.token(t, "joe", "cloud_controller.read"), 403, denied},
		{"GET", "/v1/machine", "", 401, `{"errors":[{"code":10002,"title":"CF-NotAuthenticated","detail":"Authentication error"}]}`},
		{"GET", "/v1/machine", "bearer nonsense", 401, `{"errors":[{"code":1000,"title":"CF-InvalidAuthToken","detail":"Invalid Auth Token"}]}`},
		{"GET", "/v1/machine", strings.Replace(admin, "bearer", "basic", 1), 401, `"code":1000`},
		{"POST", "/v1/machine", admin, 404, `"code":10000`},
		{"GET", "/v1/machine/use", reader, 200, `"instances":[],"requests":{"app-1":7}`},
		{"GET", "/v1/machine/use", auditor, 403, denied},
		{"GET", "/v1/machine/use", "", 401, `"code":10002`},
		{"PUT", "/v1/machine/use", admin, 404, `"code":10000`},
		{"GET", "/v1/machine/checks", reader, 200, `"results":[]`},
		{"GET", "/v1/machine/checks", "", 401, `"code":10002`},
		{"DELETE", "/v1/machine/checks", admin, 404, `"code":10000`},
		{"POST", "/v1/admin/stack/list", admin, 200, `{"Done":true}`},
		{"POST", "/v1/admin/stack/list", reader, 200, `{"Done":true}`},
		{"POST", "/v1/admin/stack/inspect", reader, 200, `{"Done":true}`},
		{"POST", "/v1/admin/token-keys/list", reader, 200, `{"Done":true}`},
		{"POST", "/v1/admin/broker/status", reader, 200, `{"Done":true}`},
		{"POST", "/v1/admin/doctor", reader, 200, `{"Done":true}`},
		{"POST", "/v1/admin/stack/list", auditor, 403, denied},
		{"POST", "/v1/admin/stack/pull", admin, 200, `{"Done":true}`},
		{"POST", "/v1/admin/stack/pull", reader, 403, denied},
		{"POST", "/v1/admin/stack/gc", reader, 403, denied},
		{"POST", "/v1/admin/stack/rm", reader, 403, denied},
		{"POST", "/v1/admin/stack/list", "", 401, `"code":10002`},
	} {
		r := httptest.NewRequest(c.method, c.path, nil)
		if c.token != "" {
			r.Header.Set("Authorization", c.token)
		}
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.want) {
			t.Errorf("%s %s as %.12q: got %d %s; want %d %s", c.method, c.path, c.token, w.Code, w.Body, c.status, c.want)
		}
	}
}
