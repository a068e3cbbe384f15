package main

import (
	"archive/tar"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// credentialsFor are what the tests' service instance has.
func credentialsFor(n int) doc {
	return doc{"user": "joe", "n": n, "again": n, "tls": doc{"a": []int{1}}}
}

// bindingForms are the app features, and what an app does to read its bindings
// by each. What it says must be what reading says.
var bindingForms = []struct{ feature, read, says string }{
	{"file-based-vcap-services", `grep -o '"user":"joe"' $VCAP_SERVICES_FILE_PATH`, `"user":"joe"`},
	{"service-binding-k8s", "cd $SERVICE_BINDING_ROOT/db; cat user instance_name tls type", `joedb{"a":[1]}user-provided`},
	{"file-based-servicebinding-io", "cd $SERVICE_BINDING_ROOT/db; cat user instance-name tls type", `joedb{"a":[1]}user-provided`},
}

// reading is a script that says in a line of its own what read says, if there is
// no variable beside it.
func reading(where, read string) string {
	return `echo "` + where + ` [${VCAP_SERVICES-}] $(` + read + `)"`
}

// TestBindingsAsFiles has each of an app's containers read its bindings from
// files of each form, and those of a running one change.
func TestBindingsAsFiles(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, needBinary(t))
	d.pushProbe("probe")
	service := d.userProvided("db", credentialsFor(0))
	d.bind("probe", service)
	was := ""
	for _, f := range bindingForms {
		t.Run(f.feature, func(t *testing.T) {
			d := d.on(t)
			says := " [] " + f.says
			if out, err := d.run("push", readerDir(t, f.feature, was, f.read)); err != nil {
				t.Fatalf("push: %v\n%s", err, out)
			}
			d.running("probe", "web", 1)
			d.logged("probe", "staging"+says)
			d.logged("probe", "sidecar"+says)
			d.tells(t, "probe", reading("task", f.read), "task"+says)
			if got := d.inside(reading("instance", f.read)); got != "instance"+says+"\n" {
				t.Errorf("got %q; want %q", got, "instance"+says)
			}
		})
		was = f.feature
	}
	t.Run("nobody else", func(t *testing.T) { d.on(t).filesAreItsOwn() })
	t.Run("kept fresh", func(t *testing.T) { d.on(t).filesAreFresh(service) })
	t.Run("by a library of npm", func(t *testing.T) { d.on(t).filesByLibrary(t) })
	t.Run("in a docker app", func(t *testing.T) { d.on(t).filesOfAnImage(t, service) })
	t.Run("refused", func(t *testing.T) { d.on(t).filesRefused() })
}

func (d *daemon) userProvided(name string, credentials doc) (guid string) {
	d.t.Helper()
	space := d.first("/v3/spaces?names=dev")
	var made struct{ GUID string }
	d.api("POST", "/v3/service_instances", doc{"type": "user-provided", "name": name, "credentials": credentials, "relationships": doc{"space": toOne(space)}}, &made)
	return made.GUID
}

func (d *daemon) bind(app, service string) {
	d.t.Helper()
	d.api("POST", "/v3/service_credential_bindings", doc{"type": "app", "relationships": doc{"app": toOne(d.app(app)), "service_instance": toOne(service)}}, nil)
}

// readerDir is the probe's directory with a buildpack that reads bindings, and a
// sidecar that does.
func readerDir(t *testing.T, feature, was, read string) string {
	t.Helper()
	const sh = "#!/bin/sh\n"
	public, _ := newOutside(t).serve(t, zipped(map[string]string{"bin/detect": sh + "exit 0\n", "bin/supply": sh + "exit 0\n", "bin/finalize": sh + reading("staging", read) + "\n",
		"bin/release": sh + "echo '---\ndefault_process_types:\n  web: ./hello'\n"}))
	features := doc{feature: true}
	if was != "" {
		features[was] = false
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "hello"), helloProgram(t), 0o755); err != nil {
		t.Fatal(err)
	}
	writeManifest(t, dir, doc{"name": "probe", "memory": "64M", "disk_quota": "128M", "stack": "host", "buildpacks": []string{public + "/reader.zip"}, "features": features,
		"command": "./hello", "sidecars": []doc{{"name": "reader", "process_types": []string{"web"}, "command": reading("sidecar", read) + "; exec sleep 1000"}}})
	return dir
}

// inside runs a command in the probe's first instance.
func (d *daemon) inside(command string) string {
	d.t.Helper()
	c := d.enter(0)
	defer c.Close()
	out, err := d.newSession(c).CombinedOutput(command)
	if err != nil {
		d.t.Fatalf("%s: %v\n%s", command, err, out)
	}
	return string(out)
}

// filesAreItsOwn: the app's user alone reads them, and writes none.
func (d *daemon) filesAreItsOwn() {
	const want = "755\n440\ncannot write\ntmpfs ro nosuid nodev noexec\n"
	got := d.inside(`cd $SERVICE_BINDING_ROOT
stat -L -c %a db; stat -L -c %a db/user
(echo x > db/user) 2>/dev/null || (echo x > new) 2>/dev/null || echo cannot write
grep " $SERVICE_BINDING_ROOT " /proc/self/mountinfo | sed 's/.* \(ro\),\(.*\) - \(tmpfs\) .*/\3 \1 \2/' | tr , ' ' | sed 's/ relatime//'`)
	if got != want {
		d.t.Errorf("got %q; want %q", got, want)
	}
	found, err := exec.Command("find", d.dir, "-path", "*db/user").Output()
	if err != nil || len(found) == 0 {
		d.t.Fatalf("got %q, %v; want the file as root of the machine sees it", found, err)
	}
	path := strings.Fields(string(found))[0]
	cat := exec.Command("cat", path)
	cat.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if out, err := cat.CombinedOutput(); err == nil {
		d.t.Errorf("another user of the machine reads %s: %q", path, out)
	}
}

// rotations is how often credentials change under a reader's eyes.
const rotations = 1000

// filesAreFresh changes the credentials many times while a program in the
// container reads: it must see no set that was never there, and the last soon.
func (d *daemon) filesAreFresh(service string) {
	before := d.stats("probe", "web")[0].InstanceGUID
	c := d.enter(0)
	defer c.Close()
	s := d.newSession(c)
	watcher := `cd $SERVICE_BINDING_ROOT/db; seen=0; last=
while [ "$last" != ` + fmt.Sprint(rotations) + ` ]; do
  at=$(cd -P ..data && pwd) && set -- $(cat $at/n $at/again 2>/dev/null | sed 's/\(.*\)\1/\1 same/') || continue
  [ -d $at ] || continue
  [ "$2" = same ] || [ -z "$1" ] || { echo "half: $*"; exit 1; }
  [ "$1" = "$last" ] || { last=$1; seen=$((seen+1)); }
done; echo "whole: $seen"`
	out := make(chan string, 1)
	go func() {
		text, err := s.CombinedOutput(watcher)
		out <- fmt.Sprintf("%s%v", text, err)
	}()
	api := d.client()
	for n := range rotations {
		if err := api.call(d.t.Context(), "PATCH", "/v3/service_instances/"+service, doc{"credentials": credentialsFor(n + 1)}, nil); err != nil {
			d.t.Fatal(err)
		}
	}
	changed := time.Now()
	eventually(d.t, 10*time.Second, func() string { return differs(d.inside("cat $SERVICE_BINDING_ROOT/db/n"), fmt.Sprint(rotations)) })
	d.t.Logf("the files were seen to be fresh after %v", time.Since(changed)) // within a second, unless the machine is busy
	select {
	case got := <-out:
		if !strings.HasPrefix(got, "whole: ") || !strings.HasSuffix(got, "<nil>") {
			d.t.Errorf("got %q; want whole sets only", got)
		}
		d.t.Log(got)
	case <-time.After(20 * time.Second):
		d.t.Error("the watcher has not seen the last of them")
	}
	now := d.stats("probe", "web")[0]
	if now.InstanceGUID != before {
		d.t.Error("the instance was replaced")
	}
	var events struct {
		Resources []struct {
			Data struct{ Instance, Revision string }
		}
	}
	d.api("GET", "/v3/audit_events?order_by=-created_at&types=audit.app.process.refresh_bindings&target_guids="+d.app("probe"), nil, &events)
	if len(events.Resources) == 0 || events.Resources[0].Data.Instance != before || events.Resources[0].Data.Revision != now.Bindings.Revision || !now.Bindings.Current {
		d.t.Errorf("got %+v, and events %+v; want the current revision in both", now.Bindings, events.Resources[:min(1, len(events.Resources))])
	}
}

func differs(got, want string) string {
	if strings.TrimSpace(got) == want {
		return ""
	}
	return fmt.Sprintf("got %q; want %q", got, want)
}

// filesOfAnImage has an app that is an image, with a user of its own, read them.
func (d *daemon) filesOfAnImage(t *testing.T, service string) {
	r := startRegistry(t)
	f := bindingForms[2]
	users := layerOf(t, tarEntry{tar.Header{Name: "etc/passwd", Mode: 0o644}, []byte("app:x:77:88::/:/bin/sh\n")})
	r.push(t, "reader", v1.Config{User: "app", Cmd: []string{"/bin/sh", "-c", reading("image", f.read) + "; exec sleep 1000"}}, smallStack(t, "reader"), users)
	d.flag("diego_docker", true)
	if fault := d.pushDocker(t, "image", r.host+"/stacks/small:reader", registryPassword); fault != "" {
		t.Fatal(fault)
	}
	d.api("PATCH", "/v3/processes/"+d.process("image"), doc{"health_check": doc{"type": "process"}}, nil)
	d.bind("image", service)
	d.api("PATCH", "/v3/apps/"+d.app("image")+"/features/"+f.feature, doc{"enabled": true}, nil)
	d.api("POST", "/v3/apps/"+d.app("image")+"/actions/restart", nil, nil)
	d.logged("image", "image [] "+f.says)
	d.api("DELETE", "/v3/apps/"+d.app("image"), nil, nil)
}

// filesRefused: what cannot be files is refused when it is bound or chosen, and
// changes nothing.
func (d *daemon) filesRefused() {
	refused := func(method, path string, body doc, want string) {
		d.t.Helper()
		err := d.client().call(d.t.Context(), method, path, body, nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			d.t.Errorf("%s %s: got %v; want %q", method, path, err, want)
		}
	}
	bind := func(service string) doc {
		return doc{"type": "app", "relationships": doc{"app": toOne(d.app("probe")), "service_instance": toOne(service)}}
	}
	for name, c := range map[string]struct {
		credentials doc
		want        string
	}{
		"upper-case": {doc{"jdbcUrl": "x"}, "Cannot build service binding files for app - Invalid file name: jdbcUrl"},
		"Upper":      {doc{}, "Invalid binding name: 'Upper'"},
		"large":      {doc{"k": strings.Repeat("x", 1_000_000)}, "Bindings exceed the maximum allowed bytesize of 1000000"},
	} {
		refused("POST", "/v3/service_credential_bindings", bind(d.userProvided(name, c.credentials)), c.want)
	}
	features := "/v3/apps/" + d.app("probe") + "/features/"
	refused("PATCH", features+bindingForms[0].feature, doc{"enabled": true}, "features cannot be enabled at the same time")

	out, err := d.run("disable-app-feature", "probe", bindingForms[2].feature)
	if err != nil || !strings.Contains(out, "disabled for probe") {
		d.t.Errorf("got %v\n%s", err, out)
	}
	d.bind("probe", d.userProvided("Capital", doc{}))
	refused("PATCH", features+bindingForms[2].feature, doc{"enabled": true}, "Invalid binding name: 'Capital'")
	if out, err := d.run("app-feature", "probe", bindingForms[2].feature); err != nil || !strings.Contains(out, "disabled") {
		d.t.Errorf("got %v; want it as it was\n%s", err, out)
	}
	refused("POST", "/v3/service_credential_bindings", bind(d.userProvided("long", doc{"k": strings.Repeat("x", 133_121)})), "file-based-vcap-services")
	var env struct {
		System map[string]json.RawMessage `json:"system_env_json"`
	}
	d.api("GET", "/v3/apps/"+d.app("probe")+"/env", nil, &env)
	if text := string(env.System["VCAP_SERVICES"]); !strings.Contains(text, `"Capital"`) || strings.Contains(text, `"long"`) {
		d.t.Errorf("got %s; want what was bound, and nothing that was refused", text)
	}
}
