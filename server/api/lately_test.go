package api

import (
	"net/http"
	"strings"
	"testing"

	"cupola/store"
	"cupola/store/cf"
)

// TestEndedProcessIsReadOnceMore: a deployment ends between the CLI's list of processes
// and its look at each.
func TestEndedProcessIsReadOnceMore(t *testing.T) {
	w := newWorld(t)
	w.write(func(tx *store.Tx) error {
		return store.Processes.Insert(tx, &cf.Process{Resource: guid("old"), AppGUID: "app-1", Type: "web", Instances: 2, MemoryMB: 64})
	})
	ask := func(user, agent, path string) (int, string) {
		req, err := http.NewRequest("GET", w.url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "bearer "+w.token(user))
		req.Header.Set("User-Agent", agent)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		var b strings.Builder
		if err := res.Write(&b); err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, b.String()
	}
	const cli, other = "cf/8.18.4 (go1; amd64 linux)", "curl/8"
	want := func(user, agent, path string, status int, part string) {
		t.Helper()
		if got, text := ask(user, agent, path); got != status || !strings.Contains(text, part) {
			t.Errorf("%s by %s, %s: got %d %s; want %d with %s", path, user, agent, got, text, status, part)
		}
	}
	want("admin", cli, "/v3/apps/app-1/processes", 200, `"guid":"old"`)
	w.write(func(tx *store.Tx) error { return store.Processes.Delete(tx, "old") })
	want("admin", cli, "/v3/processes/old", 200, `"instances":0`)
	want("admin", cli, "/v3/processes/old/stats", 200, `"resources":[]`)
	want("admin", cli, "/v3/processes/old/sidecars", 200, `"resources":[]`)
	want("admin", cli, "/v3/processes/older", 404, "Process not found")
	want("admin", other, "/v3/processes/old", 404, "Process not found")
	want("nobody", cli, "/v3/processes/old", 404, "Process not found")
	w.run(t, []step{{method: "PATCH", path: "/v3/processes/old", body: `{"command": "x"}`, status: 404}})
	w.write(func(tx *store.Tx) error { return store.Apps.Delete(tx, "app-1") })
	want("admin", cli, "/v3/processes/old", 404, "not found")
}
