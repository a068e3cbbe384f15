package data

import (
	"archive/tar"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"cupola/test/e2e"
)

// storeFile is a service file with all that one can have. Its image has another user and its own entry point.
const storeFile = `name: store
description: keeps values
display_name: Store
tags: [kv]
version: VERSION
image: IMAGE
registry: {username: joe, password: open sesame}
args: [serve, ((port))]
env:
  EDITION: edition VERSION
  ROOT_PASSWORD: ((root_password))
  SIZE: ((memory_mb))
secrets: [root_password]
ports: [9000, 9001]
volume: /var/store
health: {path: /health}
plans:
- {name: small, memory: 64M, disk: 64M}
credentials:
  uri: http://((username)):((password))@((host)):((port))
  port: ((port))
  root: ((root_password))
bind: |
  test "$ROOT_PASSWORD" != ""
  store add "$USERNAME" "$PASSWORD"
unbind: store delete "$USERNAME"
backup: tar -C /var/store/rows -cf - .
restore: |
  rm -rf /var/store/rows.new
  mkdir /var/store/rows.new
  tar -C /var/store/rows.new -xf -
  rm -rf /var/store/rows
  mv /var/store/rows.new /var/store/rows
`

// bareFile is a service with nothing but what a file must have.
const bareFile = `name: bare
description: shares its credentials
version: 1.0.0
image: IMAGE
registry: {username: joe, password: open sesame}
args: [serve, ((port))]
user: root
ports: [9000]
env: {ROOT_PASSWORD: ((root))}
secrets: [root]
credentials: {uri: "http://root:((root))@((host)):((port))"}
`

// TestServiceFiles offers services by files of the operator's, and uses them as a tenant does.
func TestServiceFiles(t *testing.T) {
	t.Parallel()
	binary, r := e2e.NeedBinary(t), e2e.StartTLSRegistry(t)
	dir := t.TempDir()
	program := e2e.Program(t, filepath.Join("testdata", "store"), ".")
	image := pushStore(t, r, program)
	file := func(version string) {
		text := strings.NewReplacer("VERSION", version, "IMAGE", image).Replace(storeFile)
		writeFile(t, dir, "store.yml", text)
	}
	file("1.0.0")
	writeFile(t, dir, "bare.yml", strings.ReplaceAll(bareFile, "IMAGE", image))
	writeFile(t, dir, "bad.yml", "name: bad\nimege: a\n")
	d := e2e.StartDaemon(t, binary, "--registry-ca", r.CA, "--data-services", dir)
	badFileIsSaid(d, dir)
	pushStoreApp(d, program)
	store := d.DataInstance("store", "values")
	binding := d.DataBinding("user", store)
	d.RestartApp("user")
	stores(d, "PUT row kept", "")
	stores(d, "GET row -", "edition 1.0.0 kept by 1234 in 64 MB")
	storeOutlives(d)
	storeLogs(d, store)
	storeIsRestored(d, store)
	storeOfABackup(d)
	bareShares(d)
	storeOnAStack(d, dir, image)
	if out, err := d.Run("stack", "rm", "docker://"+image, "--data-dir", d.Dir); err == nil || !strings.Contains(out, "service instance "+store) {
		t.Errorf("stack rm: got %s, %v; want the image kept for the service instance", out, err)
	}
	fileIsReloaded(d, dir, strings.NewReplacer("IMAGE", image, "name: bare", "name: late").Replace(bareFile), "late")

	// A running instance keeps its image, although its tag and its file say another one.
	pushAgain(t, r, program)
	file("1.1.0")
	killed(d)
	stores(d, "GET row -", "edition 1.0.0 kept by 1234 in 64 MB")
	storeIsUpgraded(d, store)

	storeIsCut(d, binding)
	if err := os.Remove(filepath.Join(dir, "store.yml")); err != nil {
		t.Fatal(err)
	}
	killed(d)
	for _, guid := range []string{store, d.First("/v3/service_instances?names=copied"), d.First("/v3/service_instances?names=shared"), d.First("/v3/service_instances?names=old")} {
		isRunning(d, guid)
		if err := d.Change("DELETE", "/v3/service_instances/"+guid, nil); err != nil {
			t.Fatal(err)
		}
	}
	if left, err := filepath.Glob(filepath.Join(d.Dir, "volumes", "[^.]*")); err != nil || len(left) != 0 {
		t.Errorf("got volumes %v, %v; want none", left, err)
	}
}

func writeFile(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// pushStore pushes the image of the store, and returns its reference.
func pushStore(t *testing.T, r *e2e.ImageRegistry, program string) string {
	t.Helper()
	r.Push(t, "store", v1.Config{Entrypoint: []string{"store"}, Cmd: []string{"help"}, User: "1234:5678", WorkingDir: "/bin", Env: []string{"PATH=/bin", "EDITION=of the image"}},
		e2e.LayerOf(t, append(programsOfMachine(t, "sh", "head", "tail", "tar", "rm", "mv", "mkdir"), layerFile(t, program, "bin/store"))...))
	return r.Host + "/stacks/small:store"
}

// pushAgain gives the tag of the store another image, whose server is at another place.
func pushAgain(t *testing.T, r *e2e.ImageRegistry, program string) {
	t.Helper()
	r.Push(t, "store", v1.Config{Entrypoint: []string{"/store"}, User: "1234:5678"}, e2e.LayerOf(t, append(programsOfMachine(t, "sh", "tail"), layerFile(t, program, "store"), layerFile(t, program, "bin/store"))...))
}

// programsOfMachine are programs of this machine as files of a layer, in /bin, with the libraries that they need.
func programsOfMachine(t *testing.T, names ...string) (entries []e2e.TarEntry) {
	t.Helper()
	libraries := map[string]bool{}
	for _, name := range names {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		entries = append(entries, layerFile(t, path, "bin/"+name))
		out, err := exec.Command("ldd", path).Output()
		if err != nil {
			t.Fatal(err)
		}
		for word := range strings.FieldsSeq(string(out)) {
			if filepath.IsAbs(word) && !libraries[word] {
				libraries[word] = true
				entries = append(entries, layerFile(t, word, word[1:]))
			}
		}
	}
	return entries
}

// layerFile is a program of this machine as a file of a layer.
func layerFile(t *testing.T, path, name string) e2e.TarEntry {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return e2e.TarEntry{Header: tar.Header{Name: name, Mode: 0o755}, Content: content}
}

// badFileIsSaid wants to be told what is wrong with a file, while the others are offered.
func badFileIsSaid(d *e2e.Daemon, dir string) {
	d.T.Helper()
	fault := filepath.Join(dir, "bad.yml") + `:2: unknown field "imege"`
	for _, args := range [][]string{{"broker", "status", "--data-dir", d.Dir}, {"doctor", "--data-dir", d.Dir}, {"broker", "check", dir}} {
		if out, _ := d.Run(args...); !strings.Contains(out, fault) {
			d.T.Errorf("%v: got %s; want %q", args, out, fault)
		}
	}
	if !strings.Contains(d.Log.String(), "imege") {
		d.T.Error("the log does not say that a file is wrong")
	}
	if out, err := d.Run("broker", "check", filepath.Join(dir, "store.yml")); err != nil || !strings.Contains(out, "OK, store 1.0.0, with the plans small") {
		d.T.Errorf("broker check: got %s, %v", out, err)
	}
}

// pushStoreApp pushes the app user, which uses a store.
func pushStoreApp(d *e2e.Daemon, program string) {
	d.T.Helper()
	dir := filepath.Join(d.T.TempDir(), "user")
	e2e.CopyProgram(d.T, program, dir, "store")
	manifest := "applications:\n- name: user\n  buildpacks: [binary_buildpack]\n  command: ./store app\n  memory: 64M\n  disk_quota: 64M\n"
	if err := os.WriteFile(filepath.Join(dir, "manifest.yml"), []byte(manifest), 0o600); err != nil {
		d.T.Fatal(err)
	}
	if out, err := d.Run("push", dir); err != nil {
		d.T.Fatalf("push: %v\n%s", err, out)
	}
	d.Running("user", "web", 1)
}

// askStore makes the app user do something with its store, once.
func askStore(d *e2e.Daemon, request string) (string, error) { return post(d, "user", "", request) }

// stores wants an answer of the store, within a minute.
func stores(d *e2e.Daemon, request, want string) {
	d.T.Helper()
	e2e.Eventually(d.T, time.Minute, func() string {
		if got, err := askStore(d, request); err != nil || got != want {
			return fmt.Sprintf("%s: got %q, %v; want %q", request, got, err, want)
		}
		return ""
	})
}

// storeOutlives kills the store, and the daemon.
func storeOutlives(d *e2e.Daemon) {
	d.T.Helper()
	const mark = "store\x00serve"
	killDatabase(d, mark)
	stores(d, "PUT second kept", "")
	killDatabase(d, mark)
	killed(d)
	stores(d, "GET row -", "edition 1.0.0 kept by 1234 in 64 MB")
	stores(d, "GET second -", "edition 1.0.0 kept by 1234 in 64 MB")
}

// storeLogs wants what the store printed in its instance's log.
func storeLogs(d *e2e.Daemon, instance string) {
	d.T.Helper()
	var log struct {
		Envelopes struct {
			Batch []struct{ Log struct{ Payload []byte } }
		}
	}
	d.API("GET", "/api/v1/read/"+instance, nil, &log)
	for _, line := range log.Envelopes.Batch {
		if strings.HasSuffix(string(line.Log.Payload), " serving edition edition 1.0.0 with the root password ***") {
			return
		}
	}
	d.T.Errorf("got the log %+v", log)
}

// storeIsRestored restores the values of a backup: in place, and into another instance, whose secrets are others.
func storeIsRestored(d *e2e.Daemon, instance string) {
	d.T.Helper()
	backup := backUp(d, "values")
	stores(d, "PUT row changed", "")
	services(d, "restore", "values", backup, "--force")
	stores(d, "GET row -", "edition 1.0.0 kept by 1234 in 64 MB")
	services(d, "restore", "values", backup, "--new", "copied")
	copied := d.First("/v3/service_instances?names=copied")
	root := storeKey(d, copied, "copy")["root"]
	if root == storeKey(d, instance, "original")["root"] || len(root.(string)) != 32 {
		d.T.Errorf("got the secret %v for two instances", root)
	}
	if got := storeRow(d, copied, "root", root.(string)); got != "edition 1.0.0 kept by 1234 in 64 MB" {
		d.T.Errorf("got %q of the copy; want the row", got)
	}
}

// storeOfABackup restores a store out of a backup of everything, beside the running one.
func storeOfABackup(d *e2e.Daemon) {
	d.T.Helper()
	file := filepath.Join(d.T.TempDir(), "all.backup")
	if out, err := d.Run("backup", file, "--data-dir", d.Dir); err != nil {
		d.T.Fatalf("backup: %v\n%s", err, out)
	}
	services(d, "restore", "values", "--from", file, "--new", "old", "--data-dir", d.Dir)
	old := d.First("/v3/service_instances?names=old")
	if got := storeRow(d, old, "root", storeKey(d, old, "old")["root"].(string)); got != "edition 1.0.0 kept by 1234 in 64 MB" {
		d.T.Errorf("got %q of the store in the backup; want the row", got)
	}
}

// storeOnAStack runs a service on a stack of the machine, as vcap, and is told of an image that there is not.
func storeOnAStack(d *e2e.Daemon, dir, image string) {
	d.T.Helper()
	if out, err := d.Run("stack", "pull", "docker://"+image, "--name", "storestack", "--username", e2e.RegistryUser, "--password", e2e.RegistryPassword, "--data-dir", d.Dir); err != nil {
		d.T.Fatalf("stack pull: %v\n%s", err, out)
	}
	text := strings.NewReplacer("name: store", "name: stacked", "VERSION", "1.0.0", "image: IMAGE", "image: preloaded:storestack", "registry: {username: joe, password: open sesame}", "command: [store]").Replace(storeFile)
	fileIsReloaded(d, dir, text, "stacked")
	guid := d.DataInstance("stacked", "onstack")
	if got := storeRow(d, guid, "root", storeKey(d, guid, "onstack")["root"].(string)); got != "edition 1.0.0  by 2000 in 64 MB" {
		d.T.Errorf("got %q; want the store run by vcap", got)
	}
	if out, err := d.Run("stack", "rm", "storestack", "--data-dir", d.Dir); err == nil || !strings.Contains(out, "service instance "+guid) {
		d.T.Errorf("stack rm: got %s, %v; want the stack kept for the service instance", out, err)
	}
	fileIsReloaded(d, dir, strings.NewReplacer("name: bare", "name: missing", "IMAGE", image+"-missing").Replace(bareFile), "missing")
	if _, err := d.MakeDataInstance("missing", "none"); err == nil || !strings.Contains(err.Error(), "pull docker://"+image+"-missing: ") {
		d.T.Errorf("got %v; want to be told that there is no such image", err)
	}
	for _, guid := range []string{guid, d.First("/v3/service_instances?names=none")} {
		if err := d.Change("DELETE", "/v3/service_instances/"+guid, nil); err != nil {
			d.T.Fatal(err)
		}
	}
}

// fileIsReloaded corrects the bad file, of which the running daemon offers the service then.
func fileIsReloaded(d *e2e.Daemon, dir, text, service string) {
	d.T.Helper()
	if err := os.WriteFile(filepath.Join(dir, "bad.yml"), []byte(text), 0o600); err != nil {
		d.T.Fatal(err)
	}
	if err := d.Cmd.Process.Signal(syscall.SIGHUP); err != nil {
		d.T.Fatal(err)
	}
	d.WaitFor("/v3/service_plans?names=small&service_offering_names=" + service + "&available=true")
}

// storeKey makes a service key, and returns its credentials.
func storeKey(d *e2e.Daemon, instance, name string) (credentials e2e.Doc) {
	d.T.Helper()
	if err := d.Change("POST", "/v3/service_credential_bindings", e2e.Doc{"type": "key", "name": name, "relationships": e2e.Doc{"service_instance": e2e.ToOne(instance)}}); err != nil {
		d.T.Fatal(err)
	}
	var details struct{ Credentials e2e.Doc }
	d.API("GET", "/v3/service_credential_bindings/"+d.First("/v3/service_credential_bindings?names="+name)+"/details", nil, &details)
	return details.Credentials
}

// storeRow asks the store itself, as this machine may, for a row.
func storeRow(d *e2e.Daemon, instance, user, password string) string {
	d.T.Helper()
	req, err := http.NewRequestWithContext(d.T.Context(), "GET", "http://"+dataAddress(d, instance)+":9000/rows/row", nil)
	if err != nil {
		d.T.Fatal(err)
	}
	req.SetBasicAuth(user, password)
	res, err := (&http.Client{Timeout: 5 * time.Second}).Do(req)
	if err != nil {
		return err.Error()
	}
	defer res.Body.Close()
	said, err := io.ReadAll(res.Body)
	if err != nil {
		return err.Error()
	}
	return string(said)
}

// bareShares wants one password for all bindings, and a service that has no backup to say so.
func bareShares(d *e2e.Daemon) {
	d.T.Helper()
	shared := d.DataInstance("bare", "shared")
	if a, b := storeKey(d, shared, "a"), storeKey(d, shared, "b"); a["uri"] != b["uri"] || !strings.HasPrefix(a["uri"].(string), "http://root:") {
		d.T.Errorf("got %v and %v; want the same credentials", a, b)
	}
	if out, err := d.Run("services", "backup", "shared"); err == nil || !strings.Contains(out, "bare has no backup command") {
		d.T.Errorf("got %s, %v; want to be told that there is no backup", out, err)
	}
	if backups := services(d, "backups", "shared"); strings.Contains(backups, "requested") {
		d.T.Errorf("got backups\n%s\nwant none", backups)
	}
}

// storeIsUpgraded upgrades a store to what its file says now. The daemon is killed meanwhile.
func storeIsUpgraded(d *e2e.Daemon, instance string) {
	d.T.Helper()
	var got struct {
		UpgradeAvailable bool `json:"upgrade_available"`
	}
	e2e.Eventually(d.T, time.Minute, func() string {
		if d.API("GET", "/v3/service_instances/"+instance, nil, &got); !got.UpgradeAvailable {
			return "there is no upgrade"
		}
		return ""
	})
	job, err := d.Begin("PATCH", "/v3/service_instances/"+instance, e2e.Doc{"maintenance_info": e2e.Doc{"version": "1.1.0"}})
	if err != nil {
		d.T.Fatal(err)
	}
	killed(d)
	ends(d, job, "COMPLETE")
	stores(d, "GET row -", "edition 1.1.0 kept by 1234 in 64 MB")
}

// storeIsCut unbinds the app: it reaches the store no longer, and its user is gone.
func storeIsCut(d *e2e.Daemon, binding string) {
	d.T.Helper()
	instance := d.First("/v3/service_instances?names=values")
	var details struct {
		Credentials struct{ URI string }
	}
	d.API("GET", "/v3/service_credential_bindings/"+binding+"/details", nil, &details)
	user, password, _ := strings.Cut(strings.TrimPrefix(strings.Split(details.Credentials.URI, "@")[0], "http://"), ":")
	if got := storeRow(d, instance, user, password); !strings.HasPrefix(got, "edition") {
		d.T.Errorf("got %q for the user of a binding", got)
	}
	if err := d.Change("DELETE", "/v3/service_credential_bindings/"+binding, nil); err != nil {
		d.T.Fatal(err)
	}
	if got, err := askStore(d, "GET row -"); err == nil {
		d.T.Errorf("got %q; want an unbound app refused", got)
	}
	if got := storeRow(d, instance, user, password); !strings.HasPrefix(got, "forbidden") {
		d.T.Errorf("got %q for the user of a deleted binding", got)
	}
}

// isRunning wants an instance that runs.
func isRunning(d *e2e.Daemon, guid string) {
	d.T.Helper()
	e2e.Eventually(d.T, time.Minute, func() string {
		if dataAddress(d, guid) == "" {
			return guid + " does not run"
		}
		return ""
	})
}
