package store

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cupola/store/cf"
)

func TestServicesComeBackAsTheyWentInAndAreSealed(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	_, space, app := seed(t, s)
	name := ""
	secret := json.RawMessage(`{"z":"very secret","a":1.50,"<":[]}`)
	op := cf.Begin(cf.OpCreate, cf.OpSucceeded, time.Now().UTC().Truncate(time.Microsecond))
	instance := cf.ServiceInstance{Name: "ups", Type: cf.UserProvided, SpaceGUID: space.GUID, Tags: []string{"t"}, Credentials: secret,
		SyslogDrainURL: "syslog://joe:very secret@h", RouteServiceURL: "https://very secret", LastOperation: op}
	managed := cf.ServiceInstance{Name: "db", Type: cf.Managed, SpaceGUID: space.GUID, PlanGUID: "plan", SharedSpaces: []string{"other"},
		BrokerMetadata: json.RawMessage(`{"labels":{}}`), MaintenanceVersion: "1.0.0", DashboardURL: "http://d"}
	binding := cf.ServiceBinding{Type: cf.BindingApp, Name: &name, AppGUID: app.GUID, Credentials: secret, VolumeMounts: secret, SyslogDrainURL: "syslog://joe:very secret@h"}
	key := cf.ServiceBinding{Type: cf.BindingKey}
	write(t, s, func(tx *Tx) error {
		for _, row := range []func() error{
			func() error { return ServiceInstances.Insert(tx, &instance) },
			func() error { return ServiceInstances.Insert(tx, &managed) },
			func() error { binding.InstanceGUID = instance.GUID; return ServiceBindings.Insert(tx, &binding) },
			func() error { key.InstanceGUID = managed.GUID; return ServiceBindings.Insert(tx, &key) },
		} {
			if err := row(); err != nil {
				return err
			}
		}
		return nil
	})
	read(t, s, func(tx *Tx) error {
		for _, want := range []*cf.ServiceInstance{&instance, &managed} {
			got, err := ServiceInstances.Get(tx, want.GUID)
			if d := cmp.Diff(want, got); err != nil || d != "" {
				t.Error(err, d)
			}
		}
		for _, want := range []*cf.ServiceBinding{&binding, &key} {
			got, err := ServiceBindings.Get(tx, want.GUID)
			if d := cmp.Diff(want, got); err != nil || d != "" {
				t.Error(err, d)
			}
		}
		return nil
	})
	files, err := filepath.Glob(filepath.Join(dir, "cupola.db*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		if text, err := os.ReadFile(f); err != nil || bytes.Contains(text, []byte("very secret")) {
			t.Errorf("%s shows a secret, or %v", f, err)
		}
	}
}
