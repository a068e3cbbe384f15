package desire

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cupola/runtime/lrp"
	"cupola/store/cf"
)

// TestCNBStaging follows CC: lib/cloud_controller/diego/cnb/staging_action_builder.rb.
func TestCNBStaging(t *testing.T) {
	in := stagingIn()
	in.Build.Lifecycle = cf.Lifecycle{Type: "cnb", Stack: "host"}
	in.Build.Credentials = cf.Credentials{"packs.io": {Token: "secret"}}
	in.Buildpacks = []Buildpack{
		{Key: "docker://reg.io/b", Image: &cf.BuildpackImage{Buildpack: "b@1", Layers: []string{"l1", "l2"}}},
		{Key: "https://packs.io/c", URL: "https://packs.io/c"}, {Key: "own", Digest: "d"}}
	got := Staging(in)
	var to []string
	for _, d := range downloaded(got.Action) {
		to = append(to, d.From+" "+d.To)
	}
	image, own := "/tmp/buildpackimages/"+dirName("docker://reg.io/b"), "/tmp/buildpacks/"+dirName("own")
	if want := []string{"layer:l1 " + image, "layer:l2 " + image, "blob:d " + own, "blob:app /home/vcap/workspace", "blob:c /tmp/cache"}; !slices.Equal(to, want) {
		t.Errorf("got the downloads %q; want %q", to, want)
	}
	runs := commands(got.Action)
	if len(runs) != 2 {
		t.Fatalf("got the commands %+v; want a download and the builder", runs)
	}
	if env := lookup(runs[0].Env); env["CNB_REGISTRY_CREDS"] != `{"packs.io":{"token":"secret"}}` || !slices.Contains(runs[0].Args, "-archive") {
		t.Errorf("got the download %+v", runs[0])
	}
	want := []string{"--workspace-dir", "/home/vcap/workspace", "--layers", "/home/vcap/layers", "--cache-dir", "/tmp/cache", "--cache-output", "/tmp/output-cache", "--droplet", "/tmp/droplet", "--result", "/tmp/result.json",
		"--buildpack", image + "=b@1", "--buildpack", "/tmp/buildpackdownloads/" + dirName("https://packs.io/c"), "--buildpack", own,
		"--pass-env-var", "GROUP", "--pass-env-var", "KEY", "--pass-env-var", "CF_STACK", "--pass-env-var", "VCAP_APPLICATION", "--pass-env-var", "MEMORY_LIMIT", "--pass-env-var", "VCAP_SERVICES"}
	if d := cmp.Diff(want, runs[1].Args); runs[1].Path != "/tmp/lifecycle/cnb-builder" || d != "" {
		t.Errorf("got %s: %s", runs[1].Path, d)
	}
	vars := lookup(got.Env)
	if vars["CNB_USER_ID"] != "2000" || vars["CNB_STACK_ID"] != "cflinuxfs4" || vars["KEY"] != "build" || vars["CF_STACK"] != "mine" || vars["CNB_REGISTRY_CREDS"] != "" {
		t.Errorf("got %v", vars)
	}
}

func dirName(key string) string { return dirOf(Buildpack{Key: key})[len("/tmp/buildpacks/"):] }

// commands lists what an action runs.
func commands(a lrp.Action) []*lrp.Run {
	if a.Run != nil {
		return []*lrp.Run{a.Run}
	}
	var all []*lrp.Run
	for _, inner := range a.Inner() {
		all = append(all, commands(inner)...)
	}
	return all
}

// TestCNBProcess follows CC: diego/cnb/desired_lrp_builder.rb, lifecycle_protocol.rb.
func TestCNBProcess(t *testing.T) {
	in := processIn()
	in.Droplet.Lifecycle = cf.Lifecycle{Type: "cnb"}
	in.Droplet.ProcessTypes = map[string]string{"web": "run fast"}
	in.Process.Command = ""
	got := Process(in)
	run := commands(got.Action)[0]
	if run.Path != "/tmp/lifecycle/launcher" || run.Args[1] != "run fast" || run.User != "vcap" {
		t.Errorf("got %+v", run)
	}
	vars := lookup(got.Env)
	if vars["CNB_LAYERS_DIR"] != "/home/vcap/layers" || vars["CNB_APP_DIR"] != "/home/vcap/workspace" || vars["PORT"] == "" || vars["VCAP_APP_PORT"] != "" {
		t.Errorf("got %v", vars)
	}
	task := Task(TaskIn{Owner: in.Owner, Droplet: in.Droplet, Task: &cf.Task{Command: "migrate"}})
	if d := cmp.Diff([]string{"--", "migrate"}, task.Action.Run.Args); d != "" {
		t.Error(d)
	}
}

func TestCNBChoice(t *testing.T) {
	all := []*cf.Buildpack{{Name: "own", Digest: "1", Enabled: true, Lifecycle: "buildpack"}, {Name: "own", Digest: "2", Enabled: true, Lifecycle: "cnb"}}
	l := cf.Lifecycle{Type: "cnb", Stack: "host", Buildpacks: []string{"own", "docker://reg.io/a", "docker://reg.io/b"}, Packages: []cf.BuildpackImage{{Name: "docker://reg.io/b", Buildpack: "b@1"}}}
	c, err := Choose(l, all)
	if err != nil || c.Buildpacks[0].Digest != "2" || !slices.Equal(c.Missing, []string{"docker://reg.io/a"}) || c.Buildpacks[2].Image.Buildpack != "b@1" {
		t.Errorf("got %+v, %v", c, err)
	}
	l.Buildpacks = nil
	if c, err = Choose(l, all); err != nil || c.Named || len(c.Buildpacks) != 1 || c.Buildpacks[0].Digest != "2" {
		t.Errorf("detection: got %+v, %v", c, err)
	}
}

// TestCNBFailures follows CC: failure_reason_sanitizer.rb, errors/v2.yml.
func TestCNBFailures(t *testing.T) {
	for reason, want := range map[string]string{
		"Exited with status 231": "CNBGenericBuildFailed - cnb: generic build failure",
		"Exited with status 232": "CNBDownloadBuildpackFailed - cnb: downloading buildpacks failed: This may be caused by a wrong url, invalid buildpack or invalid credentials. Check the staging logs for more details.",
		"Exited with status 233": "CNBDetectFailed - cnb: detecting failed",
		"Exited with status 234": "CNBBuildFailed - cnb: building failed",
		"Exited with status 235": "CNBExportFailed - cnb: exporting failed",
		"Exited with status 236": "CNBLaunchFailed - cnb: launching failed",
		"Exited with status 237": "CNBRestoreFailed - cnb: restore failed",
	} {
		if got := StagingFailure(reason).Error(); got != want {
			t.Errorf("%s: got %q; want %q", reason, got, want)
		}
	}
}

// TestImageOfBuildpacks has the process types of an image that pack built.
func TestImageOfBuildpacks(t *testing.T) {
	m := DockerMetadata{Entrypoint: []string{"/cnb/process/web"}, Processes: []ImageProcess{{"web"}, {"worker"}, {"a/b"}}}
	want := map[string]string{"web": "/cnb/process/web", "worker": "/cnb/process/worker"}
	if d := cmp.Diff(want, m.ProcessTypes()); d != "" {
		t.Error(d)
	}
	in := processIn()
	in.Process.Command, in.Process.Type = "", "worker"
	in.Droplet = &cf.Droplet{Lifecycle: cf.Lifecycle{Type: "docker"}, ExecutionMetadata: m.Text(), ProcessTypes: want}
	if run := commands(Process(in).Action)[0]; run.Path != "/cnb/process/worker" || len(run.Args) != 0 {
		t.Errorf("got %+v; want the program of the process type, without a shell", run)
	}
	in.Process.Command = "echo x"
	if run := commands(Process(in).Action)[0]; run.Path != "/bin/sh" {
		t.Errorf("got %+v; want a shell", run)
	}
}

func TestBuildpackCredential(t *testing.T) {
	all := cf.Credentials{"reg.io": {Token: "t"}, "other.io": {Username: "u", Password: "p"}}
	if got := BuildpackCredential(all, "reg.io"); got.Token != "t" {
		t.Errorf("got %+v", got)
	}
	if got := CredentialFor(all, "reg.io"); got != (cf.Credential{}) {
		t.Errorf("a stack's registry got a token: %+v", got)
	}
}
