package boshapi

import (
	"encoding/json"
	"errors"
	"net/http/httptest"
	"testing"

	"cupola/server/bosh/director"
	"cupola/store"
	"cupola/store/cf"
)

// TestFirstDeploysAreListed lists a deployment from when its first deploy runs, as the director does, without instances; not one
// whose deploy still waits.
func TestFirstDeploysAreListed(t *testing.T) {
	s, err := store.Open(store.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	err = s.Write(t.Context(), func(tx *store.Tx) error {
		task := func(name string, kind director.Kind, state cf.BOSHTaskState) error {
			return store.BOSHTasks.Insert(tx, &cf.BOSHTask{DeploymentName: name, Kind: string(kind), State: state})
		}
		return errors.Join(store.BOSHDeployments.Insert(tx, &cf.BOSHDeployment{Name: "old"}), task("old", director.Deploy, cf.BOSHProcessing),
			task("first", director.Deploy, cf.BOSHProcessing), task("waits", director.Deploy, cf.BOSHQueued), task("gone", director.Delete, cf.BOSHProcessing))
	})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(serve handler, deployment string) (text string, err error) {
		err = s.Read(t.Context(), func(tx *store.Tx) error {
			r := httptest.NewRequestWithContext(t.Context(), "GET", "/deployments?exclude_configs=true&exclude_releases=true&exclude_stemcells=true", nil)
			r.SetPathValue("name", deployment)
			a, err := serve(&call{Request: r, tx: tx})
			if err == nil {
				var b []byte
				b, err = json.Marshal(a.body)
				text = string(b)
			}
			return err
		})
		return text, err
	}
	if got, err := ask(listDeployments, ""); err != nil || got != `[{"name":"first","teams":[]},{"name":"old","teams":[]}]` {
		t.Errorf("deployments: got %s, %v", got, err)
	}
	for name, want := range map[string]string{"first": "[]", "old": "[]", "waits": ""} {
		if got, err := ask(listInstances, name); got != want || (err == nil) != (want != "") {
			t.Errorf("instances of %s: got %s, %v; want %q", name, got, err, want)
		}
	}
}
