package api

import (
	"strings"
	"testing"

	"cupola/store"
)

// Users who may only see the app do not see the secrets in a buildpack's URL.
func TestBuildpackURLsAreShownWithoutSecrets(t *testing.T) {
	w := newWorld(t)
	const url = `"https://joe:secret@example.com/bp.zip"`
	redacted := `{"lifecycle": {"data": {"buildpacks": ["https://***:***@example.com/bp.zip"]}}}`
	w.run(t, []step{
		{as: "space_developer", method: "PATCH", path: "/v3/apps/app-1", body: `{"lifecycle": {"type": "buildpack", "data": {"buildpacks": [` + url + `]}}}`, status: 200, want: redacted},
		{as: "space_developer", method: "POST", path: "/v3/builds", body: `{"package": {"guid": "package-1"}}`, status: 201, want: redacted},
	})
	for _, path := range []string{"/v3/apps", "/v3/apps/app-1", "/v3/builds", "/v3/apps/app-1/builds", "/v3/audit_events"} {
		if got := w.ask("admin", "GET", path, "", ""); got.status != 200 || strings.Contains(got.text, "secret") {
			t.Errorf("%s: got %d %s", path, got.status, got.text)
		}
	}
	w.write(func(tx *store.Tx) error {
		a, err := store.Apps.Get(tx, "app-1")
		if err == nil && !strings.Contains(a.Lifecycle.Buildpacks[0], "secret") {
			t.Error("the app lost its buildpack's password")
		}
		return err
	})
}
