package databroker

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cupola/server/osb"
	"cupola/store"
	"cupola/store/cf"
)

// TestExampleFiles holds that the examples can be offered together, in a catalog that the platform takes.
func TestExampleFiles(t *testing.T) {
	w := newWorld(t)
	o := Load(append(Names(), "../../examples/services"))
	if files, err := filepath.Glob("../../examples/services/*.yml"); err != nil || len(o.Faults) != 0 || len(o.Files) != len(files) || len(files) < 2 {
		t.Fatalf("got %d files of %v, %v, and faults %v", len(o.Files), files, err, o.Faults)
	}
	w.offer.Store(&o)
	srv := httptest.NewServer(w.handler())
	defer srv.Close()
	catalog, err := osb.New(osb.Config{}).Catalog(t.Context(), osb.Broker{URL: srv.URL, Username: "me", Password: "secret"}, "")
	if err != nil {
		t.Fatal(err)
	}
	if faults := catalog.Faults(osb.Known{}); faults != "" {
		t.Error(faults)
	}
}

// TestLoad offers what can be, and says the rest.
func TestLoad(t *testing.T) {
	dir := t.TempDir()
	for name, service := range map[string]string{"a.yml": "store", "b.yaml": "store", "c.yml": "redis", "d.txt": "other"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(storeFile(service, "1.0.0")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	o := Load([]string{"postgres", dir, filepath.Join(dir, "missing.yml")})
	if len(o.Names) != 1 || len(o.Files) != 1 || len(o.Faults) != 3 {
		t.Fatalf("got %+v; want postgres, one file and three faults", o)
	}
	for n, want := range []string{"another file has the name", "is a built-in service", "no such file"} {
		if !strings.Contains(o.Faults[n].Error(), want) {
			t.Errorf("got %v; want %q", o.Faults[n], want)
		}
	}
	if all, err := ParseServices([]string{"redis", dir, "my.yml", "reddis"}); err == nil || !filepath.IsAbs(all[2]) || !strings.Contains(err.Error(), `"reddis"`) || strings.Contains(err.Error(), "my.yml") {
		t.Errorf("got %v; want only reddis refused", err)
	}
}

// TestFileThatIsWrongWhenItIsReadAgain is offered as it was, until it is right or gone.
func TestFileThatIsWrongWhenItIsReadAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "services")
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
		return path
	}
	store, other := write("a.yml", storeFile("store", "1.0.0")), write("b.yml", storeFile("other", "1.0.0"))
	o := Load([]string{dir})
	again := func() Offer {
		next := Load([]string{dir})
		next.keepWrong(o)
		return next
	}
	write("a.yml", "name: [")
	for range 2 {
		if o = again(); len(o.Files) != 2 || len(o.Faults) != 1 || len(o.read) != 2 || o.read[0].File != store || o.read[0].Service != "store" || o.read[0].Fault == "" {
			t.Errorf("got %+v; want the store as it was", o)
		}
	}
	if err := os.Rename(dir, dir+".old"); err != nil {
		t.Fatal(err)
	}
	if o = again(); len(o.Files) != 2 || len(o.read) != 3 || o.read[0].Fault == "" || o.read[1].Fault != "" || o.read[2].Fault != "" {
		t.Errorf("got %+v; want both while the directory cannot be read", o)
	}
	write("c.yml", storeFile("store", "2.0.0"))
	if o = again(); len(o.Files) != 1 || o.Files[0].Version != "2.0.0" || len(o.Faults) != 0 {
		t.Errorf("got %+v; want the store of another file, and %s gone", o, other)
	}
}

// storeFile is a service file.
func storeFile(name, version string) string {
	return fmt.Sprintf(`name: %s
description: keeps values
version: %s
image: registry.test/store:%[2]s
secrets: [root]
env: {ROOT: ((root))}
ports: [9000, 9001]
volume: /data
credentials: {uri: "http://((username)):((password))@((host)):((port))", root: ((root))}
bind: add
unbind: delete
`, name, version)
}

// offerStore offers a version of the service store.
func (w *world) offerStore(version string) {
	w.t.Helper()
	path := filepath.Join(w.t.TempDir(), "store.yml")
	if err := os.WriteFile(path, []byte(storeFile("store", version)), 0o600); err != nil {
		w.t.Fatal(err)
	}
	o := Load([]string{path})
	if len(o.Faults) > 0 {
		w.t.Fatal(o.Faults)
	}
	w.offer.Store(&o)
}

const storeIDs = `"service_id": "cupola-file-store", "plan_id": "cupola-file-store-small"`

// readyStore is a world with an instance i of the service store, which runs.
func readyStore(t *testing.T) (w *world, k *keeper) {
	w = newWorld(t)
	w.offerStore("1.0.0")
	w.Pull = func(_ context.Context, reference string, _ cf.Credential) (Image, error) {
		return Image{Reference: reference + "@sha256:1", Cmd: []string{"serve"}, User: "7"}, nil
	}
	k = &keeper{broker: w.broker, busy: map[string]bool{}}
	w.ask("PUT", "/v2/service_instances/i?"+async, `{`+storeIDs+`, "maintenance_info": {"version": "2.0.0"}}`, 422)
	w.ask("PUT", "/v2/service_instances/i?"+async, `{`+storeIDs+`, "maintenance_info": {"version": "1.0.0"}}`, 202)
	w.runs("i")
	w.moves(k, cf.DataMaking, cf.UpgradeNone)
	w.moves(k, cf.DataReady, cf.UpgradeNone)
	return w, k
}

// moves moves the instance i on by one step, to a state.
func (w *world) moves(k *keeper, state cf.DataState, upgrade cf.UpgradeState) {
	w.t.Helper()
	_ = k.move(w.t.Context(), w.row("i")) // an error is in the row
	if got := w.row("i"); got.State != state || got.Upgrade != upgrade {
		w.t.Fatalf("got %s %q; want %s %q", got.State, got.Upgrade, state, upgrade)
	}
}

// image is what the instance i runs on; "" for nothing.
func (w *world) image() string {
	w.t.Helper()
	d, ok := desired(w.row("i"))
	if !ok {
		return ""
	}
	return d.RootFS
}

// TestInstanceOfAFile holds what runs, and that it has a secret that its row keeps.
func TestInstanceOfAFile(t *testing.T) {
	w, _ := readyStore(t)
	d, _ := desired(w.row("i"))
	root := d.Env[len(d.Env)-1]
	if run := d.Action.Run; d.RootFS != "docker://registry.test/store:1.0.0@sha256:1" || run.Path != "serve" || run.User != "7" || len(d.Ports) != 2 || root.Name != "ROOT" || len(root.Value) != 32 {
		t.Errorf("got %+v", d)
	}
	if v := d.Volumes[0]; v.Path != "/data" || v.Owner != "7" || !v.Exclusive {
		t.Errorf("got the volume %+v", v)
	}
	other := *w.row("i")
	other.Secret = "another"
	if d, _ := desired(&other); d.Env[len(d.Env)-1] == root {
		t.Error("two instances have the same secret")
	}
	if got := policies([]*cf.DataInstance{w.row("i")}, []*cf.DataBinding{{InstanceGUID: "i", AppGUID: "app", State: cf.DataReady}}); len(got) != 2 || got[1].FirstPort != 9001 {
		t.Errorf("got policies %+v; want both ports", got)
	}
	if w.offer.Store(&Offer{}); w.image() == "" {
		t.Error("without its file an instance does not run")
	}
}

// TestUpgrade holds the steps of an upgrade, each of which a killed daemon may end with, and that the
// old container runs until the new image is here.
func TestUpgrade(t *testing.T) {
	const first, second = "docker://registry.test/store:1.0.0@sha256:1", "docker://registry.test/store:2.0.0@sha256:1"
	w, k := readyStore(t)
	pull := w.Pull
	upgrade := func(version string, status int) {
		t.Helper()
		w.ask("PATCH", "/v2/service_instances/i?"+async, `{`+storeIDs+`, "maintenance_info": {"version": "`+version+`"}}`, status)
	}
	upgrade("1.0.0", 200)
	w.offerStore("2.0.0")
	upgrade("1.0.0", 422)
	w.Pull = func(context.Context, string, cf.Credential) (Image, error) {
		return Image{}, errors.New("no such image")
	}
	upgrade("2.0.0", 202)
	w.moves(k, cf.DataReady, cf.UpgradeNone)
	if got := operation(w.row("i")).Body; w.image() != first || got["state"] != "failed" || got["description"] != "no such image" {
		t.Fatalf("got %q, %v; want the old image after a failed upgrade", w.image(), got)
	}
	w.Pull = pull
	upgrade("2.0.0", 202)
	if got := operation(w.row("i")).Body; w.image() != first || got["state"] != "in progress" {
		t.Errorf("got %q, %v; want the old image while the new one is pulled", w.image(), got)
	}
	upgrade("2.0.0", 202) // by a platform that was killed meanwhile
	upgrade("3.0.0", 422)
	w.moves(k, cf.DataMaking, cf.UpgradeStopping)
	w.moves(k, cf.DataMaking, cf.UpgradeStopping) // its container is there still
	if w.image() != "" {
		t.Errorf("got %q; want the old container to end", w.image())
	}
	w.write(func(tx *store.Tx) error {
		rows, err := store.ActualLRPs.By(tx, "process_guids", processGUID("i"))
		if err != nil {
			return err
		}
		_, err = store.ActualLRPs.Delete(tx, *rows[0])
		return err
	})
	w.moves(k, cf.DataMaking, cf.UpgradeStarting)
	w.moves(k, cf.DataMaking, cf.UpgradeStarting)
	if w.image() != second {
		t.Errorf("got %q; want the new image", w.image())
	}
	w.runs("i")
	w.moves(k, cf.DataReady, cf.UpgradeNone)
	if got := operation(w.row("i")).Body; got["state"] != "succeeded" || w.image() != second {
		t.Errorf("got %v, %q", got, w.image())
	}
}

// TestCommandsForBindings gives commands their user, and no secret to tenants when they fail.
func TestCommandsForBindings(t *testing.T) {
	w, _ := readyStore(t)
	var said []string
	answer := done
	w.Attach = func(_ context.Context, _ string, args ...string) (io.ReadWriteCloser, error) {
		ours, theirs := net.Pipe()
		go func() {
			defer theirs.Close()
			line, _ := bufio.NewReader(theirs).ReadString('\n')
			said = append(said, strings.Join(args[:2], " ")+": "+line)
			words := strings.Fields(line)
			fmt.Fprintln(theirs, strings.NewReplacer("PASSWORD", words[len(words)-1], "ROOT", desiredRoot(w)).Replace(answer))
		}()
		return ours, nil
	}
	bind := `{` + storeIDs + `, "bind_resource": {"app_guid": "app"}}`
	got, _ := json.Marshal(w.ask("PUT", "/v2/service_instances/i/service_bindings/b1", bind, 201))
	user := user("b1")
	if len(said) != 1 || !strings.HasPrefix(said[0], "/bin/sh -c: bind "+user+" ") || !strings.Contains(string(got), `"uri":"http://`+user+":"+strings.Fields(said[0])[4]+"@i."+Zone+":9000") {
		t.Errorf("got %q and %s", said, got)
	}
	answer = customFault + "bind failed: PASSWORD is too weak for ROOT"
	if err := w.execute(t.Context(), w.row("i"), "bind u1 secret\n"); err == nil || !strings.Contains(err.Error(), "*** is too weak for ***") {
		t.Errorf("got %v; want it without secrets", err)
	}
}

// desiredRoot is the secret of the instance i.
func desiredRoot(w *world) string {
	d, _ := desired(w.row("i"))
	return d.Env[len(d.Env)-1].Value
}
