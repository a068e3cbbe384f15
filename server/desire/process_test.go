package desire

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cupola/runtime/lrp"
	"cupola/store/cf"
)

func owner() Owner {
	icmp := 8
	return Owner{
		Platform: Platform{
			API: "http://api.localhost:8080", Running: map[string]string{"GROUP": "running", "KEY": "group"}, Staging: map[string]string{"GROUP": "staging", "KEY": "group"},
			Groups: []*cf.SecurityGroup{
				{GlobalRunning: true, Rules: []cf.SecurityRule{{Protocol: "tcp", Destination: "0.0.0.0-9.255.255.255, 11.0.0.0/8", Ports: "443, 8000-8100"}}},
				{RunningSpaces: []string{"s"}, Rules: []cf.SecurityRule{{Protocol: "icmp", Destination: "10.0.0.1", Type: &icmp, Log: true}}},
				{StagingSpaces: []string{"s"}, Rules: []cf.SecurityRule{{Protocol: "all", Destination: "10.0.0.2"}}},
				{RunningSpaces: []string{"other"}, Rules: []cf.SecurityRule{{Protocol: "all", Destination: "10.0.0.3"}}},
			},
		},
		App:   &cf.App{Resource: cf.Resource{GUID: "a"}, Name: "hello", Env: map[string]string{"KEY": "app", "B": "2"}},
		Space: &cf.Space{Resource: cf.Resource{GUID: "s"}, Name: "dev"},
		Org:   &cf.Org{Resource: cf.Resource{GUID: "o"}, Name: "acme"},
		URIs:  []string{"hello.localhost"},
	}
}

func processIn() ProcessIn {
	return ProcessIn{
		Owner: owner(),
		Process: &cf.Process{Resource: cf.Resource{GUID: "p"}, AppGUID: "a", Type: "web", Instances: 2, MemoryMB: 256, DiskMB: 1024, LogRateLimit: -1,
			HealthCheck: cf.HealthCheck{InvocationTimeout: 3},
			Sidecars:    []cf.Sidecar{{Name: "side", Command: "./side", ProcessTypes: []string{"web"}, MemoryMB: 16, Origin: "buildpack"}}},
		Droplet: &cf.Droplet{Digest: "d", Stack: "minifs", ProcessTypes: map[string]string{"web": "./run", "worker": "./work"}, ExecutionMetadata: "{}",
			Sidecars: []cf.Sidecar{{Name: "side", Command: "./side", ProcessTypes: []string{"web"}, MemoryMB: 16}, {Name: "other", ProcessTypes: []string{"worker"}}}},
		Ports: []uint16{9000, 0, 9000},
	}
}

// lookup is the value that counts of each variable.
func lookup(env []lrp.EnvVar) map[string]string {
	m := map[string]string{}
	for _, v := range env {
		m[v.Name] = v.Value
	}
	return m
}

func TestProcess(t *testing.T) {
	in := processIn()
	got := Process(in)
	env := got.Env
	got.Env = nil
	want := lrp.Desired{
		ProcessGUID: ProcessGUID(in.Process, in.App), Domain: "cf-apps", Instances: 2,
		RunInfo: lrp.RunInfo{
			RootFS: "preloaded:minifs", Lifecycle: true,
			Layers: []lrp.Layer{{Source: lrp.Blobbed("d"), Dest: "/home/vcap"}},
			Action: lrp.Codependent(
				lrp.Run{Path: "/tmp/lifecycle/launcher", Args: []string{"app", "./run", "{}"}, Dir: "/home/vcap", User: "vcap", Nofile: 16384}.Action(),
				lrp.Run{Path: "/tmp/lifecycle/launcher", Args: []string{"app", "./side", "{}"}, Dir: "/home/vcap", User: "vcap", Nofile: 16384,
					Env: in.sidecarEnv(in.Process.Sidecars[0]), LogSource: "APP/PROC/WEB/SIDECAR/SIDE"}.Action()),
			Checks:       lrp.CheckDefinition{Liveness: []lrp.Check{{Type: lrp.CheckPort, Port: 8080, InvocationTimeout: 3 * time.Second}}},
			StartTimeout: 60 * time.Second,
			MemoryMB:     256, DiskMB: 1024, CPUWeight: 3, LogRateLimitByte: -1,
			Ports:       []uint16{8080, 9000},
			EgressGroup: "running/s", PolicyGroup: "a",
			Egress: []lrp.EgressRule{
				{Protocol: "tcp", Destinations: []string{"0.0.0.0-9.255.255.255", "11.0.0.0/8"}, Ports: "443,8000-8100", ICMPType: -1, ICMPCode: -1},
				{Protocol: "icmp", Destinations: []string{"10.0.0.1"}, ICMPType: 8, ICMPCode: -1, Log: true},
			},
			Log: lrp.LogTarget{GUID: "a", Source: "APP/PROC/WEB", Tags: map[string]string{
				"source_id": "a", "app_id": "a", "app_name": "hello", "space_id": "s", "space_name": "dev",
				"organization_id": "o", "organization_name": "acme", "process_id": "p", "process_type": "web"}},
			OrganizationalUnits: []string{"organization:o", "space:s", "app:a"}, SystemCertificatesPath: "/etc/cf-system-certificates",
		},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	vars := lookup(env)
	var vcap map[string]any
	if err := json.Unmarshal([]byte(vars["VCAP_APPLICATION"]), &vcap); err != nil {
		t.Fatal(err)
	}
	delete(vars, "VCAP_APPLICATION")
	wantVars := map[string]string{"LANG": "en_US.UTF-8", "GROUP": "running", "KEY": "app", "B": "2", "MEMORY_LIMIT": "240m", "VCAP_SERVICES": "{}",
		"VCAP_APP_PORT": "8080", "PORT": "8080", "VCAP_APP_HOST": "0.0.0.0"}
	if d := cmp.Diff(wantVars, vars); d != "" {
		t.Error(d)
	}
	v := version(in.Process, in.App)
	wantVCAP := map[string]any{
		"cf_api": "http://api.localhost:8080", "limits": map[string]any{"fds": 16384.0, "mem": 240.0, "disk": 1024.0},
		"application_name": "hello", "name": "hello", "application_id": "a", "application_uris": []any{"hello.localhost"}, "uris": []any{"hello.localhost"},
		"space_name": "dev", "space_id": "s", "organization_id": "o", "organization_name": "acme", "users": nil,
		"process_id": "p", "process_type": "web", "version": v, "application_version": v,
	}
	if d := cmp.Diff(wantVCAP, vcap); d != "" {
		t.Error(d)
	}
}

func TestAUserCannotSetWhatTheSystemKnows(t *testing.T) {
	in := processIn()
	in.App.Env = map[string]string{"VCAP_APPLICATION": "mine", "PORT": "1", "MEMORY_LIMIT": "9g", "LANG": "C"}
	vars := lookup(Process(in).Env)
	if vars["VCAP_APPLICATION"] == "mine" || vars["PORT"] != "8080" || vars["MEMORY_LIMIT"] != "240m" {
		t.Errorf("got %v", vars)
	}
	if vars["LANG"] != "C" {
		t.Errorf("got LANG %q; want the app's", vars["LANG"])
	}
}

func TestTheSameRowsMakeTheSameDesired(t *testing.T) {
	if d := cmp.Diff(Process(processIn()), Process(processIn())); d != "" {
		t.Error(d)
	}
}

func TestCommand(t *testing.T) {
	in := processIn()
	in.Process.Type = "worker"
	if got := Process(in).Action.Runs()[0].Args[1]; got != "./work" {
		t.Errorf("got %q; want the droplet's", got)
	}
	in.Process.Command, in.Process.User = "./mine", "root"
	got := Process(in).Action.Runs()[0]
	if got.Args[1] != "./mine" || got.User != "root" {
		t.Errorf("got %+v; want the user's", got)
	}
}

func TestChecks(t *testing.T) {
	for _, c := range []struct {
		name, processType string
		health, ready     cf.HealthCheck
		check, readiness  []lrp.Check
		timeout           time.Duration
	}{
		{"web", "web", cf.HealthCheck{}, cf.HealthCheck{}, []lrp.Check{{Type: lrp.CheckPort, Port: 8080}}, nil, time.Minute},
		{"worker", "worker", cf.HealthCheck{InvocationTimeout: 9}, cf.HealthCheck{}, nil, nil, time.Minute},
		{"http", "worker", cf.HealthCheck{Type: "http", Timeout: 5, Interval: 7}, cf.HealthCheck{Type: "http", Endpoint: "/r"},
			[]lrp.Check{{Type: lrp.CheckHTTP, Port: 8080, Path: "/", Interval: 7 * time.Second}}, []lrp.Check{{Type: lrp.CheckHTTP, Port: 8080, Path: "/r"}}, 5 * time.Second},
		{"ready by port", "web", cf.HealthCheck{Type: "process"}, cf.HealthCheck{Type: "port"}, nil, []lrp.Check{{Type: lrp.CheckPort, Port: 8080}}, time.Minute},
	} {
		in := processIn()
		in.Process.Type, in.Process.HealthCheck, in.Process.ReadinessCheck = c.processType, c.health, c.ready
		got := Process(in)
		if !cmp.Equal(got.Checks.Liveness, c.check) || !cmp.Equal(got.Checks.Readiness, c.readiness) || got.StartTimeout != c.timeout {
			t.Errorf("%s: got %+v, %+v, %v; want %+v, %+v, %v", c.name, got.Checks.Liveness, got.Checks.Readiness, got.StartTimeout, c.check, c.readiness, c.timeout)
		}
	}
}

// TestPorts: PORT, and with it the health check, is the port that routes lead to.
func TestPorts(t *testing.T) {
	image := processIn()
	image.Droplet.Lifecycle.Type = cf.LifecycleDocker
	image.Droplet.ExecutionMetadata = `{"cmd":["x"],"ports":[{"Port":7000,"Protocol":"tcp"},{"Port":53,"Protocol":"udp"}]}`
	for _, c := range []struct {
		in    ProcessIn
		named []uint16
		want  []uint16
	}{
		{processIn(), nil, []uint16{8080}},
		{processIn(), []uint16{0}, []uint16{8080}},
		{processIn(), []uint16{9000, 0}, []uint16{8080, 9000}},
		{processIn(), []uint16{9001, 9000, 9001}, []uint16{9000, 9001}},
		{image, nil, []uint16{7000}},
		{image, []uint16{0, 9000, 7000}, []uint16{7000, 9000}},
		{image, []uint16{8080}, []uint16{8080}},
	} {
		c.in.Ports = c.named
		got := Process(c.in)
		if port := itoa(c.want[0]); !slices.Equal(got.Ports, c.want) || lookup(got.Env)["PORT"] != port || got.Checks.Liveness[0].Port != c.want[0] {
			t.Errorf("%s, routes to %v: got %v, PORT %s, a check of %d; want %v", c.in.Droplet.Lifecycle.Type, c.named, got.Ports, lookup(got.Env)["PORT"], got.Checks.Liveness[0].Port, c.want)
		}
	}
}

// TestSidecarsHaveTheirMemory: a program that reads how much memory it has, as JVMs do, finds
// its own share of the container's. A sidecar without a limit may use all of it.
func TestSidecarsHaveTheirMemory(t *testing.T) {
	in := processIn()
	in.Process.Sidecars = append(in.Process.Sidecars, cf.Sidecar{Name: "free", Command: "./free", ProcessTypes: []string{"web"}},
		cf.Sidecar{Name: "elsewhere", Command: "./x", ProcessTypes: []string{"worker"}, MemoryMB: 32})
	in.App.DropletGUID, in.Droplet.GUID = "d", "d"
	got := Process(in)
	envs := [][]lrp.EnvVar{got.Env}
	for _, r := range got.Action.Runs()[1:] {
		envs = append(envs, r.Env)
	}
	for n, want := range []int{240, 16, 256} {
		vars := lookup(envs[n])
		var app vcapApplication
		if err := json.Unmarshal([]byte(vars["VCAP_APPLICATION"]), &app); err != nil {
			t.Fatal(err)
		}
		if app.Limits.MemoryMB != want || vars["MEMORY_LIMIT"] != fmt.Sprintf("%dm", want) || app.ProcessID != "p" {
			t.Errorf("%d: got %v; want %d MB", n, vars, want)
		}
	}
	if len(envs) != 3 {
		t.Errorf("got %d programs; want 3", len(envs))
	}
}

// A process has the sidecars of the droplet that it was started with.
func TestSidecarsOfAnotherDroplet(t *testing.T) {
	in := processIn()
	in.App.DropletGUID, in.Droplet.GUID = "next", "d"
	in.Process.Sidecars = []cf.Sidecar{{Name: "side", Command: "./next", ProcessTypes: []string{"web"}, Origin: "buildpack"},
		{Name: "mine", Command: "./mine", ProcessTypes: []string{"web"}, Origin: "user"}}
	var commands []string
	for _, r := range Process(in).Action.Runs() {
		commands = append(commands, r.Args[1])
	}
	if diff := cmp.Diff([]string{"./run", "./mine", "./side"}, commands); diff != "" {
		t.Errorf("commands (-want +got):\n%s", diff)
	}
	in.App.DropletGUID = "d"
	if got := Process(in).Action.Runs()[1].Args[1]; got != "./next" {
		t.Errorf("with the app's droplet: got %q; want the process' own sidecars", got)
	}
}

func TestCPUWeight(t *testing.T) {
	for memory, want := range map[int]int{1: 1, 128: 1, 256: 3, 1024: 12, 8192: 100, 65536: 100} {
		if got := cpuWeight(memory); got != want {
			t.Errorf("%d MB: got %d; want %d", memory, got, want)
		}
	}
}

func TestAStopMakesANewProcessGUID(t *testing.T) {
	p, app := &cf.Process{Resource: cf.Resource{GUID: "0d9b7f2e-guid"}}, &cf.App{}
	first := ProcessGUID(p, app)
	if got := CFProcess(first); got != p.GUID {
		t.Errorf("got %q; want %q", got, p.GUID)
	}
	if !strings.HasPrefix(first, p.GUID+"-") || ProcessGUID(p, app) != first {
		t.Errorf("got %q", first)
	}
	app.Rev++
	if ProcessGUID(p, app) == first {
		t.Error("a new revision has the same process GUID")
	}
}
