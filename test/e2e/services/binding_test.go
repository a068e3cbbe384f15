package services

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

	"cupola/test/e2e"
)

// credentialsFor are what the tests' service instance has.
func credentialsFor(n int) e2e.Doc {
	return e2e.Doc{"user": "joe", "n": n, "again": n, "tls": e2e.Doc{"a": []int{1}}, "none": nil}
}

// bindingForms are the app features, and what an app does to read its bindings
// by each. What it says must be what reading says.
var bindingForms = []struct{ feature, read, says string }{
	{"file-based-vcap-services", `grep -o '"user":"joe"' $VCAP_SERVICES_FILE_PATH`, `"user":"joe"`},
	{"service-binding-k8s", "cd $SERVICE_BINDING_ROOT/db; cat user instance_name tls type; [ -e none ] && echo +none", `joedb{"a":[1]}user-provided`},
	{"file-based-servicebinding-io", "cd $SERVICE_BINDING_ROOT/db; cat user instance-name tls none type", `joedb{"a":[1]}nulluser-provided`},
}

// reading is a script that says in a separate line what read says, if there is
// no variable beside it.
func reading(where, read string) string {
	return `echo "` + where + ` [${VCAP_SERVICES-}] $(` + read + `)"`
}

// TestBindingsAsFiles checks that each of an app's containers reads its bindings from
// files of each form, and those of a running one change.
func TestBindingsAsFiles(t *testing.T) {
	t.Parallel()
	d := e2e.StartDaemon(t, e2e.NeedBinary(t))
	d.PushProbe("probe")
	service := userProvided(d, "db", credentialsFor(0))
	d.Bind("probe", service)
	was := ""
	for _, f := range bindingForms {
		t.Run(f.feature, func(t *testing.T) {
			d := d.On(t)
			says := " [] " + f.says
			if out, err := d.Run("push", readerDir(t, f.feature, was, f.read)); err != nil {
				t.Fatalf("push: %v\n%s", err, out)
			}
			d.Running("probe", "web", 1)
			d.Logged("probe", "staging"+says)
			d.Logged("probe", "sidecar"+says)
			d.Tells(t, "probe", reading("task", f.read), "task"+says)
			if got := inside(d, reading("instance", f.read)); got != "instance"+says+"\n" {
				t.Errorf("got %q; want %q", got, "instance"+says)
			}
		})
		was = f.feature
	}
	t.Run("nobody else", func(t *testing.T) { filesAreItsOwn(d.On(t)) })
	t.Run("kept fresh", func(t *testing.T) { filesAreFresh(d.On(t), service) })
	t.Run("kept from the start", func(t *testing.T) { formOfTheStart(d.On(t), service) })
	t.Run("by a library of npm", func(t *testing.T) { filesByLibrary(d.On(t), t) })
	t.Run("in a docker app", func(t *testing.T) { filesOfAnImage(d.On(t), t, service) })
	t.Run("refused", func(t *testing.T) { filesRefused(d.On(t)) })
}

func userProvided(d *e2e.Daemon, name string, credentials e2e.Doc) (guid string) {
	d.T.Helper()
	space := d.First("/v3/spaces?names=dev")
	var made struct{ GUID string }
	d.API("POST", "/v3/service_instances", e2e.Doc{"type": "user-provided", "name": name, "credentials": credentials, "relationships": e2e.Doc{"space": e2e.ToOne(space)}}, &made)
	return made.GUID
}

// readerDir is the probe's directory with a buildpack that reads bindings, and a
// sidecar that does.
func readerDir(t *testing.T, feature, was, read string) string {
	t.Helper()
	const sh = "#!/bin/sh\n"
	public, _ := e2e.NewOutside(t).Serve(t, e2e.Zipped(map[string]string{"bin/detect": sh + "exit 0\n", "bin/supply": sh + "exit 0\n", "bin/finalize": sh + reading("staging", read) + "\n",
		"bin/release": sh + "echo '---\ndefault_process_types:\n  web: ./hello'\n"}))
	features := e2e.Doc{feature: true}
	if was != "" {
		features[was] = false
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "hello"), e2e.HelloProgram(t), 0o755); err != nil {
		t.Fatal(err)
	}
	e2e.WriteManifest(t, dir, e2e.Doc{"name": "probe", "memory": "64M", "disk_quota": "128M", "stack": "host", "buildpacks": []string{public + "/reader.zip"}, "features": features,
		"command": "./hello", "sidecars": []e2e.Doc{{"name": "reader", "process_types": []string{"web"}, "command": reading("sidecar", read) + "; exec sleep 1000"}}})
	return dir
}

// inside runs a command in the probe's first instance.
func inside(d *e2e.Daemon, command string) string {
	d.T.Helper()
	c := d.Enter(0)
	defer c.Close()
	out, err := d.NewSession(c).CombinedOutput(command)
	if err != nil {
		d.T.Fatalf("%s: %v\n%s", command, err, out)
	}
	return string(out)
}

// filesAreItsOwn: the app's user alone reads them, and writes none.
func filesAreItsOwn(d *e2e.Daemon) {
	const want = "755\n440\ncannot write\ntmpfs ro nosuid nodev noexec\n"
	got := inside(d, `cd $SERVICE_BINDING_ROOT
stat -L -c %a db; stat -L -c %a db/user
(echo x > db/user) 2>/dev/null || (echo x > new) 2>/dev/null || echo cannot write
grep " $SERVICE_BINDING_ROOT " /proc/self/mountinfo | sed 's/.* \(ro\),\(.*\) - \(tmpfs\) .*/\3 \1 \2/' | tr , ' ' | sed 's/ relatime//'`)
	if got != want {
		d.T.Errorf("got %q; want %q", got, want)
	}
	found, err := exec.Command("find", d.Dir, "-path", "*db/user").Output()
	if err != nil || len(found) == 0 {
		d.T.Fatalf("got %q, %v; want the file as root of the machine sees it", found, err)
	}
	path := strings.Fields(string(found))[0]
	cat := exec.Command("cat", path)
	cat.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if out, err := cat.CombinedOutput(); err == nil {
		d.T.Errorf("another user of the machine reads %s: %q", path, out)
	}
}

// rotations is how often credentials change under a reader's eyes.
const rotations = 1000

// filesAreFresh changes the credentials many times while a program in the
// container reads: it must see no set that was never there, and the last soon.
// A set may be removed while it looks for it, or between its two files: cd or cat
// fails then.
func filesAreFresh(d *e2e.Daemon, service string) {
	before := d.Stats("probe", "web")[0].InstanceGUID
	c := d.Enter(0)
	defer c.Close()
	s := d.NewSession(c)
	watcher := `cd $SERVICE_BINDING_ROOT/db; seen=0; last=
while [ "$last" != ` + fmt.Sprint(rotations) + ` ]; do
  at=$(cd -P ..data 2>/dev/null && pwd) && both=$(cat $at/n $at/again 2>/dev/null) || continue
  set -- $(echo "$both" | sed 's/\(.*\)\1/\1 same/')
  [ "$2" = same ] || [ -z "$1" ] || { echo "half: $*"; exit 1; }
  [ "$1" = "$last" ] || { last=$1; seen=$((seen+1)); }
done; echo "whole: $seen"`
	out := make(chan string, 1)
	go func() {
		text, err := s.CombinedOutput(watcher)
		out <- fmt.Sprintf("%s%v", text, err)
	}()
	api := d.Client()
	for n := range rotations {
		if err := api.Call(d.T.Context(), "PATCH", "/v3/service_instances/"+service, e2e.Doc{"credentials": credentialsFor(n + 1)}, nil); err != nil {
			d.T.Fatal(err)
		}
	}
	changed := time.Now()
	e2e.Eventually(d.T, time.Minute, func() string { return differs(inside(d, "cat $SERVICE_BINDING_ROOT/db/n"), fmt.Sprint(rotations)) })
	d.T.Logf("the files were seen to be fresh after %v", time.Since(changed)) // within a second, unless the machine is busy
	select {
	case got := <-out:
		if !strings.HasPrefix(got, "whole: ") || !strings.HasSuffix(got, "<nil>") {
			d.T.Errorf("got %q; want whole sets only", got)
		}
		d.T.Log(got)
	case <-time.After(time.Minute):
		d.T.Error("the watcher has not seen the last of them")
	}
	now := d.Stats("probe", "web")[0]
	if now.InstanceGUID != before {
		d.T.Error("the instance was replaced")
	}
	var events struct {
		Resources []struct {
			Data struct{ Instance, Revision string }
		}
	}
	d.API("GET", "/v3/audit_events?order_by=-created_at&types=audit.app.process.refresh_bindings&target_guids="+d.App("probe"), nil, &events)
	if len(events.Resources) == 0 || events.Resources[0].Data.Instance != before || events.Resources[0].Data.Revision != now.Bindings.Revision || !now.Bindings.Current {
		d.T.Errorf("got %+v, and events %+v; want the current revision in both", now.Bindings, events.Resources[:min(1, len(events.Resources))])
	}
}

// formOfTheStart changes the form while an instance runs: it keeps its files, which still follow their bindings, also when it
// crashes, and an instance that is added has them, too. The next restart brings the new form, and so does a deployment.
func formOfTheStart(d *e2e.Daemon, service string) {
	old, next := bindingForms[2], bindingForms[0]
	features := "/v3/apps/" + d.App("probe") + "/features/"
	swap := func(from, to string) {
		d.API("PATCH", features+from, e2e.Doc{"enabled": false}, nil)
		d.API("PATCH", features+to, e2e.Doc{"enabled": true}, nil)
	}
	first := d.Stats("probe", "web")[0].InstanceGUID
	swap(old.feature, next.feature)
	d.API("PATCH", "/v3/service_instances/"+service, e2e.Doc{"credentials": credentialsFor(-1)}, nil)
	e2e.Eventually(d.T, time.Minute, func() string { return differs(inside(d, "cat $SERVICE_BINDING_ROOT/db/n"), "-1") })
	reads := func(f struct{ feature, read, says string }) {
		d.T.Helper()
		if got := inside(d, reading("instance", f.read)); got != "instance [] "+f.says+"\n" {
			d.T.Errorf("got %q; want what %s has", got, f.feature)
		}
	}
	reads(old)
	stats := d.Stats("probe", "web")[0]
	if stats.InstanceGUID != first || stats.Bindings.Current {
		d.T.Errorf("got %+v; want the same instance, which has to be restarted", stats)
	}
	crashed(d, first)
	reads(old)
	swap(next.feature, old.feature) // for a restart without a change
	if stats := d.Stats("probe", "web")[0]; !stats.Bindings.Current {
		d.T.Errorf("got %+v; want it current: it has the app's form again", stats)
	}
	swap(old.feature, next.feature)
	d.API("POST", "/v3/deployments", e2e.Doc{"relationships": e2e.Doc{"app": e2e.ToOne(d.App("probe"))}}, nil)
	e2e.Eventually(d.T, time.Minute, func() string {
		if stats := d.Stats("probe", "web"); len(stats) == 1 && stats[0].State == "RUNNING" && stats[0].Bindings.Current {
			return ""
		}
		return "the deployment has not replaced the instance"
	})
	reads(next)
	swap(next.feature, old.feature)
	reads(next)
	d.RestartApp("probe")
	reads(old)
}

// crashed kills the app's process in the probe's first instance, and waits for the next.
func crashed(d *e2e.Daemon, instance string) {
	d.T.Helper()
	c := d.Enter(0)
	defer c.Close()
	_ = d.NewSession(c).Run("kill -9 $(pidof hello)") // the session ends with the instance
	e2e.Eventually(d.T, time.Minute, func() string {
		if stats := d.Stats("probe", "web"); len(stats) == 1 && stats[0].State == "RUNNING" && stats[0].InstanceGUID != instance {
			return ""
		}
		return "the instance was not started again"
	})
}

func differs(got, want string) string {
	if strings.TrimSpace(got) == want {
		return ""
	}
	return fmt.Sprintf("got %q; want %q", got, want)
}

// filesOfAnImage lets an app that is an image, with its own user, read them.
func filesOfAnImage(d *e2e.Daemon, t *testing.T, service string) {
	r := e2e.StartRegistry(t)
	f := bindingForms[2]
	users := e2e.LayerOf(t, e2e.TarEntry{Header: tar.Header{Name: "etc/passwd", Mode: 0o644}, Content: []byte("app:x:77:88::/:/bin/sh\n")})
	r.Push(t, "reader", v1.Config{User: "app", Cmd: []string{"/bin/sh", "-c", reading("image", f.read) + "; exec sleep 1000"}}, e2e.SmallStack(t, "reader"), users)
	d.Flag("diego_docker", true)
	if fault := d.PushDocker(t, "image", r.Host+"/stacks/small:reader", e2e.RegistryPassword); fault != "" {
		t.Fatal(fault)
	}
	d.API("PATCH", "/v3/processes/"+d.Process("image"), e2e.Doc{"health_check": e2e.Doc{"type": "process"}}, nil)
	d.Bind("image", service)
	d.API("PATCH", "/v3/apps/"+d.App("image")+"/features/"+f.feature, e2e.Doc{"enabled": true}, nil)
	d.API("POST", "/v3/apps/"+d.App("image")+"/actions/restart", nil, nil)
	d.Logged("image", "image [] "+f.says)
	d.API("DELETE", "/v3/apps/"+d.App("image"), nil, nil)
}

// filesRefused: what cannot be files is refused when it is bound or chosen, and
// changes nothing.
func filesRefused(d *e2e.Daemon) {
	refused := func(method, path string, body e2e.Doc, want string) {
		d.T.Helper()
		err := d.Client().Call(d.T.Context(), method, path, body, nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			d.T.Errorf("%s %s: got %v; want %q", method, path, err, want)
		}
	}
	bind := func(service string) e2e.Doc {
		return e2e.Doc{"type": "app", "relationships": e2e.Doc{"app": e2e.ToOne(d.App("probe")), "service_instance": e2e.ToOne(service)}}
	}
	for name, c := range map[string]struct {
		credentials e2e.Doc
		want        string
	}{
		"upper-case": {e2e.Doc{"jdbcUrl": "x"}, "Cannot build service binding files for app - Invalid file name: jdbcUrl"},
		"Upper":      {e2e.Doc{}, "Invalid binding name: 'Upper'"},
		"large":      {e2e.Doc{"k": strings.Repeat("x", 1_000_000)}, "Bindings exceed the maximum allowed bytesize of 1000000"},
	} {
		refused("POST", "/v3/service_credential_bindings", bind(userProvided(d, name, c.credentials)), c.want)
	}
	features := "/v3/apps/" + d.App("probe") + "/features/"
	refused("PATCH", features+bindingForms[0].feature, e2e.Doc{"enabled": true}, "features cannot be enabled at the same time")

	out, err := d.Run("disable-app-feature", "probe", bindingForms[2].feature)
	if err != nil || !strings.Contains(out, "disabled for probe") {
		d.T.Errorf("got %v\n%s", err, out)
	}
	d.Bind("probe", userProvided(d, "Capital", e2e.Doc{}))
	refused("PATCH", features+bindingForms[2].feature, e2e.Doc{"enabled": true}, "Invalid binding name: 'Capital'")
	if out, err := d.Run("app-feature", "probe", bindingForms[2].feature); err != nil || !strings.Contains(out, "disabled") {
		d.T.Errorf("got %v; want it as it was\n%s", err, out)
	}
	refused("POST", "/v3/service_credential_bindings", bind(userProvided(d, "long", e2e.Doc{"k": strings.Repeat("x", 133_121)})), "file-based-vcap-services")
	var env struct {
		System map[string]json.RawMessage `json:"system_env_json"`
	}
	d.API("GET", "/v3/apps/"+d.App("probe")+"/env", nil, &env)
	if text := string(env.System["VCAP_SERVICES"]); !strings.Contains(text, `"Capital"`) || strings.Contains(text, `"long"`) {
		d.T.Errorf("got %s; want what was bound, and nothing that was refused", text)
	}
}
