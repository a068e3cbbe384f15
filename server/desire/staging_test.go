package desire

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cupola/runtime/lrp"
	"cupola/store/cf"
)

func stagingIn() StagingIn {
	return StagingIn{
		Owner: owner(), Build: &cf.Build{Resource: cf.Resource{GUID: "b"}, MemoryMB: 1024, DiskMB: 4096, LogRateLimit: -1, Env: map[string]string{"KEY": "build", "CF_STACK": "mine"}},
		Package: &cf.Package{Digest: "app"}, Stack: &cf.Stack{Name: "host", Compat: "cflinuxfs4"},
		Buildpacks: []Buildpack{{Key: "go_buildpack", Digest: "b1"}, {Key: "binary_buildpack", Digest: "b2"}}, Named: true, Cache: "c",
	}
}

func TestStaging(t *testing.T) {
	got := Staging(stagingIn())
	env := got.Env
	got.Env, got.Egress, got.Log.Tags = nil, nil, nil
	want := lrp.RunInfo{
		RootFS: "preloaded:host", Lifecycle: true,
		Action: lrp.Within(15*time.Minute, lrp.Serial(
			lrp.Parallel(
				lrp.Download{Source: lrp.Blobbed("b1"), To: "/tmp/buildpacks/c140bb4b47565b59", User: "vcap", Artifact: "go_buildpack"}.Action(),
				lrp.Download{Source: lrp.Blobbed("b2"), To: "/tmp/buildpacks/c72221dcda75b656", User: "vcap", Artifact: "binary_buildpack"}.Action()),
			lrp.Parallel(
				lrp.Download{Source: lrp.Blobbed("app"), To: "/tmp/app", User: "vcap", Artifact: "app package"}.Action(),
				lrp.Tried(lrp.Download{Source: lrp.Blobbed("c"), To: "/tmp/cache", User: "vcap", Artifact: "build artifacts cache"}.Action())),
			lrp.Run{Path: "/tmp/lifecycle/builder", User: "vcap", Nofile: 16384, Args: []string{
				"-buildDir=/tmp/app", "-outputDroplet=/tmp/droplet", "-outputMetadata=/tmp/result.json", "-outputBuildArtifactsCache=/tmp/output-cache",
				"-buildpacksDir=/tmp/buildpacks", "-buildpacksDownloadDir=/tmp/buildpackdownloads", "-buildArtifactsCacheDir=/tmp/cache",
				"-buildpackOrder=go_buildpack,binary_buildpack", "-skipDetect=true", "-skipCertVerify=false"}}.Action(),
			lrp.Action{EmitProgress: &lrp.EmitProgress{
				Start: "Uploading droplet, build artifacts cache...", Success: "Uploading complete", FailurePrefix: "Uploading failed",
				Action: lrp.Parallel(
					lrp.Upload{Artifact: "droplet", From: "/tmp/droplet", To: "blob:droplet", User: "vcap", Like: "app"}.Action(),
					lrp.Tried(lrp.Upload{Artifact: "build artifacts cache", From: "/tmp/output-cache", To: "blob:cache", User: "vcap"}.Action()))}})),
		MemoryMB: 1024, DiskMB: 4096, CPUWeight: 50, LogRateLimitByte: -1,
		EgressGroup: "staging/s", PolicyGroup: "a",
		Log:        lrp.LogTarget{GUID: "a", Source: "STG", Instance: "0"},
		ResultFile: "/tmp/result.json",

		OrganizationalUnits: []string{"organization:o", "space:s", "app:a"}, SystemCertificatesPath: "/etc/cf-system-certificates",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	vars := lookup(env)
	if vars["CF_STACK"] != "cflinuxfs4" || vars["KEY"] != "build" || vars["GROUP"] != "staging" || vars["MEMORY_LIMIT"] != "1024m" || vars["VCAP_SERVICES"] != "{}" {
		t.Errorf("got %v", vars)
	}
	var vcap map[string]any
	if err := json.Unmarshal([]byte(vars["VCAP_APPLICATION"]), &vcap); err != nil {
		t.Fatal(err)
	}
	if _, ok := vcap["process_id"]; ok || vcap["application_id"] != "a" {
		t.Errorf("got %v; want an app and no process", vcap)
	}
}

// downloaded lists the downloads of an action.
func downloaded(a lrp.Action) []*lrp.Download {
	if a.Download != nil {
		return []*lrp.Download{a.Download}
	}
	var all []*lrp.Download
	for _, inner := range a.Inner() {
		all = append(all, downloaded(inner)...)
	}
	return all
}

func TestABuildpackLiesWhereTheBuilderLooks(t *testing.T) {
	// XXH64 of the empty string, and of "a": published test values.
	for key, want := range map[string]string{"": "/tmp/buildpacks/ef46db3751d8e999", "a": "/tmp/buildpacks/d24ec4f1a98c6e5b"} {
		in := stagingIn()
		in.Buildpacks = []Buildpack{{Key: key}}
		if got := downloaded(Staging(in).Action)[0].To; got != want {
			t.Errorf("%q: got %s; want %s", key, got, want)
		}
	}
}

func TestStagingEgress(t *testing.T) {
	got := Staging(stagingIn()).Egress
	if len(got) != 1 || got[0].Destinations[0] != "10.0.0.2" {
		t.Errorf("got %+v; want the space's staging rule alone", got)
	}
}

func TestTask(t *testing.T) {
	in := TaskIn{Owner: owner(), Droplet: processIn().Droplet,
		Task: &cf.Task{Resource: cf.Resource{GUID: "task-1"}, Name: "migrate", Command: "rake db:migrate", MemoryMB: 512, DiskMB: 64, LogRateLimit: 99, Env: map[string]string{"KEY": "task"}}}
	got := Task(in)
	vars := lookup(got.Env)
	if vars["KEY"] != "task" || vars["MEMORY_LIMIT"] != "512m" || vars["PORT"] != "" {
		t.Errorf("got %v", vars)
	}
	if app := vars["VCAP_APPLICATION"]; !strings.Contains(app, `"version":"task-1","application_version":"task-1"`) || strings.Contains(app, "process_id") {
		t.Errorf("got VCAP_APPLICATION %s", app)
	}
	if got.Log.Source != "APP/TASK/migrate" || got.Log.GUID != "a" || got.Log.Instance != "0" {
		t.Errorf("got %+v", got.Log)
	}
	if d := cmp.Diff([]string{"app", "rake db:migrate", "{}"}, got.Action.Run.Args); d != "" {
		t.Error(d)
	}
	if got.CPUWeight != 6 || got.MemoryMB != 512 || got.DiskMB != 64 || got.LogRateLimitByte != 99 || len(got.Ports) != 0 {
		t.Errorf("got %+v", got)
	}
}

func TestChoose(t *testing.T) {
	all := []*cf.Buildpack{
		{Name: "static", Digest: "s0", Enabled: true},
		{Name: "go", Digest: "g0", Enabled: true},
		{Name: "go", Digest: "g1", Enabled: true, Stack: "host"},
		{Name: "java", Digest: "j1", Enabled: true, Stack: "fs4"},
		{Name: "off", Digest: "o1"},
		{Name: "empty", Enabled: true},
	}
	url, secret := "https://example.com/bp.zip", "https://u:p@example.com/a,b"
	for _, c := range []struct {
		name string
		in   []string
		want Choice
		err  string
	}{
		{name: "detect", want: Choice{Buildpacks: []Buildpack{{Key: "static", Digest: "s0"}, {Key: "go", Digest: "g1"}}}},
		{name: "named", in: []string{"go", "static"}, want: Choice{Named: true, Buildpacks: []Buildpack{{Key: "go", Digest: "g1"}, {Key: "static", Digest: "s0"}}}},
		{name: "by URL", in: []string{url}, want: Choice{Named: true, Buildpacks: []Buildpack{{Key: url, URL: url}}}},
		{name: "secret", in: []string{secret}, want: Choice{Named: true, Buildpacks: []Buildpack{{Key: "https://***:***@example.com/a%2Cb", URL: secret}}}},
		{name: "disabled", in: []string{"off"}, err: `StagingError - Staging error: buildpack "off" is not there, is disabled, or has no bits for stack "host"`},
		{name: "of another stack", in: []string{"java"}, err: `StagingError - Staging error: buildpack "java" is not there, is disabled, or has no bits for stack "host"`},
		{name: "empty", in: []string{"empty"}, err: `StagingError - Staging error: buildpack "empty" is not there, is disabled, or has no bits for stack "host"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Choose(cf.Lifecycle{Stack: "host", Buildpacks: c.in}, all)
			if c.err != "" {
				if err == nil || err.Error() != c.err {
					t.Errorf("got %v; want %s", err, c.err)
				}
				return
			}
			if d := cmp.Diff(c.want, got); d != "" || err != nil {
				t.Error(d, err)
			}
		})
	}
	if _, err := Choose(cf.Lifecycle{Stack: "host"}, nil); err == nil || err.Error() != "StagingError - Staging error: There are no buildpacks available" {
		t.Errorf("got %v", err)
	}
}

func TestStagingFailure(t *testing.T) {
	for reason, want := range map[string]string{
		"STG: Exited with status 222":                       "NoAppDetectedError - An app was not successfully detected by any available buildpack",
		"STG: Exited with status 223":                       "BuildpackCompileFailed - App staging failed in the buildpack compile phase",
		"STG: Exited with status 224":                       "BuildpackReleaseFailed - App staging failed in the buildpack release phase",
		"STG: Exited with status 225":                       "StagingError - Staging error: staging failed",
		"insufficient resources: disk, memory":              "InsufficientResources - Insufficient resources",
		"found no compatible cell for required rootfs":      "NoCompatibleCell - Found no compatible cell",
		"unable to communicate to compatible cells":         "StagingError - Staging error: unable to communicate to compatible cells",
		"exceeded 15m0s timeout":                            "StagingTimeExpired - Staging time expired: staging took longer than 15m0s",
		"":                                                  "StagingError - Staging error: staging failed",
		"not started within time limit":                     "StagingError - Staging error: staging failed",
		"failed to create container: no space left on disk": "StagingError - Staging error: staging failed",
		"Copying into the container failed: broken":         "StagingError - Staging error: staging failed",
		"Copying go_buildpack into the container failed: x": "StagingError - Staging error: staging failed",
	} {
		got := StagingFailure(reason)
		if got.Error() != want {
			t.Errorf("%s: got %s; want %s", reason, got.Error(), want)
		}
		// What the container did not say itself, the log has to.
		wantCause := reason
		if strings.HasPrefix(reason, "STG: Exited") || strings.HasPrefix(reason, "Copying go_buildpack") {
			wantCause = ""
		}
		if got.Cause != wantCause {
			t.Errorf("%s: got cause %q; want %q", reason, got.Cause, wantCause)
		}
	}
}

const resultJSON = `{"lifecycle_metadata":{"buildpack_key":"k2","detected_buildpack":"ruby 1.2","buildpacks":[{"key":"k1","name":"go","version":"1"},{"key":"k2","name":"ruby","version":"1.2","config":{}}]},
"process_types":{"web":"./run","worker":"./work"},"processes":[{"type":"web","command":"./run"}],
"sidecars":[{"name":"side","process_types":["web"],"command":"./side","memory":7}],"execution_metadata":"x","lifecycle_type":"buildpack"}`

func TestReadResult(t *testing.T) {
	want := cf.Droplet{ProcessTypes: map[string]string{"web": "./run", "worker": "./work"}, ExecutionMetadata: "x",
		Buildpacks: []cf.DropletBuildpack{{Name: "k1", BuildpackName: "go", Version: "1"}, {Name: "k2", BuildpackName: "ruby", Version: "1.2", DetectOutput: "ruby 1.2"}},
		Sidecars:   []cf.Sidecar{{Name: "side", Command: "./side", ProcessTypes: []string{"web"}, MemoryMB: 7, Origin: "buildpack"}}}
	var got cf.Droplet
	if err := ReadResult([]byte(resultJSON), &got); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	for _, text := range []string{"", "{", `{"lifecycle_type":"docker"}`} {
		e, ok := errors.AsType[BuildError](ReadResult([]byte(text), &got))
		if !ok || e.Error() != "StagingError - Staging error: Malformed message from Diego stager" || !strings.Contains(e.Cause, "result.json cannot be read: ") {
			t.Errorf("%q: got %+v; want it to be malformed", text, e)
		}
	}
}

// A buildpack can write what it likes to result.json. What is too much for one app
// fails its staging, and the build says why.
func TestLargeResultsAreRefused(t *testing.T) {
	sidecar := `{"name":"s","process_types":["web"],"command":"x"},`
	for _, tt := range []struct{ name, more, want string }{
		{"sidecars", `"sidecars":[` + strings.Repeat(sidecar, 2999) + sidecar[:len(sidecar)-1] + `]`, "too many sidecars: 3000; at most 50 are accepted"},
		{"execution metadata", `"execution_metadata":"` + strings.Repeat("x", 300_000) + `"`, "execution metadata is too long: 300000 bytes; at most 65536 are accepted"},
		{"command", `"process_types":{"web":"` + strings.Repeat("x", 40_000) + `"}`, `command of process type "web" is too long`},
		{"type", `"process_types":{"` + strings.Repeat("x", 256) + `":"x"}`, "process type is too long"},
	} {
		var d cf.Droplet
		err := ReadResult([]byte(`{"lifecycle_type":"buildpack",`+tt.more+`}`), &d)
		if _, ok := errors.AsType[BuildError](err); !ok || !strings.Contains(err.Error(), tt.want) || !strings.HasPrefix(err.Error(), "StagingError - ") {
			t.Errorf("%s: got %v; want %s", tt.name, err, tt.want)
		}
		if d.Sidecars != nil || d.ExecutionMetadata != "" || d.ProcessTypes != nil {
			t.Errorf("%s: the droplet has it", tt.name)
		}
	}
}

func FuzzReadResult(f *testing.F) {
	for _, s := range []string{resultJSON, "", "null", "[]", `{"lifecycle_type":"docker"}`, `{"lifecycle_type":"buildpack","process_types":null}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var d cf.Droplet
		if ReadResult(text, &d) != nil {
			return
		}
		if d.ProcessTypes == nil {
			t.Error("process types are nil")
		}
		if slices.ContainsFunc(d.Sidecars, func(s cf.Sidecar) bool { return s.MemoryMB < 0 }) {
			t.Error("a sidecar has negative memory")
		}
	})
}

func TestRedact(t *testing.T) {
	for _, c := range []struct{ url, want string }{
		{"https://example.com/x.git#main", "https://example.com/x.git#main"},
		{"https://user:pa@ss@example.com/x.zip", "https://***:***@example.com/x.zip"},
		{"https://token@example.com", "https://***:***@example.com"},
		{"https://example.com/a@b", "https://example.com/a@b"},
		{"ruby_buildpack", "ruby_buildpack"},
	} {
		if got := Redact(c.url); got != c.want {
			t.Errorf("%s: got %s; want %s", c.url, got, c.want)
		}
	}
}
