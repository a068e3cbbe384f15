package kube

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"cupola/runtime/lrp"
)

// exampleContainer is an instance of a docker app.
func exampleContainer() lrp.Container {
	return lrp.Container{
		GUID: "5b1a4b5c-0000-4000-8000-0001", Kind: lrp.KindInstance, Domain: lrp.DomainApps, ProcessGUID: "process-version", Index: 2, CellID: "edge",
		RunInfo: lrp.RunInfo{
			RootFS: "docker://registry.example.com/team/web@sha256:" + strings.Repeat("ab", 32),
			Env:    []lrp.EnvVar{{Name: "VCAP_SERVICES", Value: `{"db":[{"password":"$(secret)"}]}`}, {Name: "COLOR", Value: "red"}, {Name: "COLOR", Value: "blue"}, {Name: "odd name", Value: "x"}},
			Action: lrp.Codependent(lrp.Run{Path: "/web", Args: []string{"--at", "$(date)"}, Dir: "/srv", User: "root"}.Action()),
			Checks: lrp.CheckDefinition{
				Liveness:  []lrp.Check{{Type: lrp.CheckPort, Port: 8080}},
				Readiness: []lrp.Check{{Type: lrp.CheckHTTP, Port: 8080, Path: "/ready", Interval: 1500 * time.Millisecond, InvocationTimeout: 2 * time.Second}},
			},
			StartTimeout: time.Minute, MemoryMB: 256, DiskMB: 1024, CPUWeight: 3, LogRateLimitByte: -1, Ports: []uint16{8080, 9000},
			EgressGroup: "running/3cb93aaf-7d9c-4e1e-9a36-0cb1a6d2b111", PolicyGroup: "f25e0bcd-2be3-4e8a-9d0c-4cd3a3a9a3a1",
			Log: lrp.LogTarget{GUID: "f25e0bcd-2be3-4e8a-9d0c-4cd3a3a9a3a1", Source: "APP/PROC/WEB", Instance: "2", Tags: map[string]string{"app_name": "shop"}},
		},
	}
}

func TestInstance(t *testing.T) {
	for name, change := range map[string]func(*lrp.Container){
		"docker": func(*lrp.Container) {},
		"sidecar": func(c *lrp.Container) {
			c.Action = lrp.Codependent(lrp.Run{Path: "/web", User: "1000:1001"}.Action(), lrp.Run{Path: "/agent", User: "vcap", LogSource: "APP/PROC/WEB/SIDECAR/AGENT", Env: []lrp.EnvVar{{Name: "PORT", Value: "1"}}}.Action())
			c.Checks = lrp.CheckDefinition{}
		},
		"task": func(c *lrp.Container) {
			c.Kind, c.Index, c.ProcessGUID, c.Ports, c.Checks, c.MemoryMB, c.DiskMB = lrp.KindTask, 0, "", nil, lrp.CheckDefinition{}, 0, 0
			c.Action, c.Log.Source = lrp.Run{Path: "/bin/sh", Args: []string{"-c", "migrate"}}.Action(), "APP/TASK/migrate"
		},
		"namespaced": func(*lrp.Container) {},
		"files": func(c *lrp.Container) {
			c.Files = []lrp.File{{Path: "db/type", Content: []byte("postgres")}, {Path: "db/password", Content: []byte("s3cret")}}
			c.ImageUsername, c.ImagePassword = "joe", "pass"
			c.CPUs = 0.5
		},
		"droplet": func(c *lrp.Container) {
			c.RootFS, c.Layers = "preloaded:debian12", []lrp.Layer{{Source: lrp.Blobbed(strings.Repeat("ef", 32)), Dest: "/home/vcap"}}
			c.Action = lrp.Run{Path: "/tmp/lifecycle/launcher", Args: []string{"app", "./web", "{}"}, Dir: "/home/vcap", User: "vcap"}.Action()
		},
		"staging": func(c *lrp.Container) {
			c.Kind, c.Domain, c.Index, c.ProcessGUID, c.Ports, c.Checks = lrp.KindTask, lrp.DomainStaging, 0, "", nil, lrp.CheckDefinition{}
			c.RootFS, c.ResultFile, c.Log.Source, c.EgressGroup = "preloaded:debian12", "/tmp/result.json", "STG", "staging/3cb93aaf-7d9c-4e1e-9a36-0cb1a6d2b111"
			c.Action = lrp.Serial(lrp.Download{Source: lrp.Blobbed("ab"), To: "/tmp/app", Artifact: "app package"}.Action(), lrp.Tried(lrp.Download{Source: lrp.ImageLayer("cd"), To: "/tmp/bp"}.Action()),
				lrp.Run{Path: "/tmp/lifecycle/builder", Env: []lrp.EnvVar{{Name: "BUILDPACK_URL", Value: "https://joe:s3cret@example.com"}}}.Action(), lrp.Upload{From: "/tmp/droplet", To: "blob:droplet"}.Action())
		},
		"health": func(c *lrp.Container) {
			c.Checks = lrp.CheckDefinition{Liveness: []lrp.Check{{Type: lrp.CheckHTTP, Port: 9000, TLS: true, Host: "shop", Headers: []lrp.Header{{Name: "A", Value: "b"}}, Failures: 3}}}
			c.StartTimeout = 0
			c.Action.Codependent.Actions[0].Run.Stop = []lrp.Signal{{Name: "TERM", Wait: 20 * time.Second}, {Name: "INT", Wait: 5 * time.Second}}
		},
	} {
		c, o := exampleContainer(), InstanceOptions{Cell: "edge", Owner: "me", UserNamespaces: name == "namespaced"}
		change(&c)
		if Stages(c) {
			o.Stager = &Stager{"https://192.0.2.1:5443/staging/edge/" + c.GUID, "the-token-pass", "the CA"}
		}
		if len(c.Layers) > 0 || Stages(c) {
			o.Image = &PackedImage{"192.0.2.1:5443/droplets/" + strings.Repeat("cd", 32) + "@sha256:" + strings.Repeat("cd", 32), "edge", "the-password-of-edge"}
		}
		got, err := Instance(c, o)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var out bytes.Buffer
		for _, dropped := range got.Dropped {
			fmt.Fprintf(&out, "# dropped: %s\n", dropped)
		}
		if err := Write(&out, append(got.Secrets, got.Pod)); err != nil {
			t.Fatal(err)
		}
		golden(t, "instance-"+name+".golden.yml", out.Bytes())
		if r, err := RecordOf(got.Pod); err != nil || r.Container.GUID != c.GUID || r.Container.Log.Source != c.Log.Source || r.FilesDigest != lrp.FilesDigest(c.Files) {
			t.Errorf("%s: the pod tells of %+v, %v", name, r, err)
		}
		checkNoSecrets(t, name, c, got)
	}
}

// checkNoSecrets checks that who may see the pod sees no value that its container was given, and
// that each Secret is one that is removed with it.
func checkNoSecrets(t *testing.T, name string, c lrp.Container, got RenderedInstance) {
	t.Helper()
	var out bytes.Buffer
	if err := Write(&out, []Object{got.Pod}); err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"$(secret)", "blue", "s3cret", "pass", "joe", "the-password-of-edge"} {
		if strings.Contains(strings.ReplaceAll(out.String(), "db/password", ""), secret) {
			t.Errorf("%s: the pod has the secret %q", name, secret)
		}
	}
	removed := SecretNames(got.Record)
	for _, s := range got.Secrets {
		if !slices.Contains(removed, s.Name()) || SecretGUID(s.Name()) != c.GUID {
			t.Errorf("%s: Secret %s is not removed with the pod", name, s.Name())
		}
	}
}

func TestInstanceRefuses(t *testing.T) {
	for want, change := range map[string]func(*lrp.Container){
		"unpacked into the container":   func(c *lrp.Container) { c.Layers = []lrp.Layer{{Dest: "/x"}} },
		"images of registries alone":    func(c *lrp.Container) { c.RootFS = "preloaded:small" },
		`not as user "node"`:            func(c *lrp.Container) { c.Action = lrp.Run{Path: "/x", User: "node"}.Action() },
		"no other actions":              func(c *lrp.Container) { c.Action = lrp.Within(time.Second, c.Action) },
		"setup or monitor":              func(c *lrp.Container) { c.Setup = c.Action },
		"volumes of this machine":       func(c *lrp.Container) { c.Volumes = []lrp.Volume{{}} },
		"several checks":                func(c *lrp.Container) { c.Checks.Liveness = make([]lrp.Check, 2) },
		"without --kubernetes-registry": func(c *lrp.Container) { c.Domain, c.ResultFile = lrp.DomainStaging, "/r" },
		"a result file":                 func(c *lrp.Container) { c.ResultFile = "/r" },
		"BOSH":                          func(c *lrp.Container) { c.Pod = "p" },
	} {
		c := exampleContainer()
		change(&c)
		if _, err := Instance(c, InstanceOptions{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v; want %q", err, want)
		}
	}
}

func TestFilesPatch(t *testing.T) {
	r := Record{Files: map[string]string{"db/type": "file-0", "db/password": "file-1"}}
	got, err := FilesPatch(r, []lrp.File{{Path: "db/type", Content: []byte("a")}, {Path: "db/password", Content: []byte("b")}})
	if want := map[string]any{"file-0": "YQ==", "file-1": "Yg=="}; err != nil || !maps.Equal(got["data"].(doc), want) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
	for _, files := range [][]lrp.File{nil, {{Path: "db/type"}}, {{Path: "db/type"}, {Path: "db/user"}}} {
		if _, err := FilesPatch(r, files); err == nil {
			t.Errorf("%v is accepted for a pod that has others", files)
		}
	}
}

func status(text string) Object {
	all, err := Read(strings.NewReader(text))
	if err != nil {
		panic(err)
	}
	return all[0]
}

func TestStateOf(t *testing.T) {
	r := Record{Container: exampleContainer(), Sources: map[string]string{"process": "APP/PROC/WEB", "sidecar-1": "APP/PROC/WEB/SIDECAR/AGENT"}}
	for _, c := range []struct {
		name, pod string
		phase     lrp.Phase
		ready     bool
		waits     string
		stuck     bool
		reason    string
	}{
		{name: "new", pod: `{status: {phase: Pending}}`, phase: lrp.PhaseCreating},
		{name: "full", pod: `{status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: 0/1 nodes}]}}`, phase: lrp.PhaseCreating, waits: "Unschedulable: 0/1 nodes"},
		{name: "full, and nothing to evict", pod: `{status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: "0/1 nodes are available: 1 Insufficient memory. no new claims to deallocate, preemption: 0/1 nodes are available: 1 No victims."}]}}`,
			phase: lrp.PhaseCreating, waits: "Unschedulable: 0/1 nodes are available: 1 Insufficient memory"},
		{name: "pulls", pod: `{status: {phase: Pending, containerStatuses: [{name: process, state: {waiting: {reason: ContainerCreating}}}]}}`, phase: lrp.PhaseCreating},
		{name: "first pull", pod: `{status: {phase: Pending, containerStatuses: [{name: process, image: "reg/app:1", state: {waiting: {reason: ErrImagePull, message: absent}}}]}}`, phase: lrp.PhaseCreating, waits: "ErrImagePull: image reg/app:1: absent"},
		{name: "no image", pod: `{status: {phase: Pending, containerStatuses: [{name: process, image: "reg/app:1", state: {waiting: {reason: ImagePullBackOff}}}]}}`, phase: lrp.PhaseCreating, waits: "ImagePullBackOff: image reg/app:1", stuck: true},
		{name: "starts", pod: `{status: {phase: Running, podIP: 10.0.0.1, containerStatuses: [{name: process, started: false, state: {running: {startedAt: "2026-01-01T00:00:00Z"}}}]}}`, phase: lrp.PhaseStarting},
		{name: "a sidecar starts", pod: `{status: {phase: Running, containerStatuses: [{name: process, started: true, state: {running: {startedAt: "2026-01-01T00:00:00Z"}}}, {name: sidecar-1, state: {waiting: {reason: ContainerCreating}}}]}}`, phase: lrp.PhaseStarting},
		{name: "runs", pod: `{status: {phase: Running, conditions: [{type: Ready, status: "False"}], containerStatuses: [{name: process, started: true, state: {running: {startedAt: "2026-01-01T00:00:00Z"}}}]}}`, phase: lrp.PhaseRunning},
		{name: "ready", pod: `{status: {phase: Running, conditions: [{type: Ready, status: "False"}, {type: ContainersReady, status: "True"}], containerStatuses: [{name: process, started: true, state: {running: {startedAt: "2026-01-01T00:00:00Z"}}}]}}`, phase: lrp.PhaseRunning, ready: true},
		{name: "crashed", pod: `{status: {phase: Failed, containerStatuses: [{name: process, state: {terminated: {exitCode: 7, reason: Error}}}]}}`, phase: lrp.PhaseExited, reason: "APP/PROC/WEB: Exited with status 7"},
		{name: "out of memory", pod: `{status: {phase: Failed, containerStatuses: [{name: process, state: {terminated: {exitCode: 137, reason: OOMKilled}}}]}}`, phase: lrp.PhaseExited, reason: "APP/PROC/WEB: Exited with status 137 (out of memory)"},
		{name: "no program", pod: `{status: {phase: Failed, containerStatuses: [{name: process, state: {terminated: {exitCode: 128, reason: StartError, message: no such file}}}]}}`, phase: lrp.PhaseExited, reason: "APP/PROC/WEB: StartError: no such file"},
		{name: "evicted", pod: `{status: {phase: Failed, reason: Evicted, message: too much disk}}`, phase: lrp.PhaseExited, reason: "APP/PROC/WEB: Evicted: too much disk"},
		{name: "sidecar", pod: `{status: {phase: Running, containerStatuses: [{name: process, started: true, state: {running: {startedAt: "2026-01-01T00:00:00Z"}}},
			{name: sidecar-1, state: {terminated: {exitCode: 3, reason: Error, startedAt: "2026-01-01T00:00:00Z", finishedAt: "2026-01-01T00:00:05Z"}}}]}}`, phase: lrp.PhaseExited, reason: "APP/PROC/WEB/SIDECAR/AGENT: Exited with status 3"},
		{name: "first to end", pod: `{status: {phase: Failed, containerStatuses: [{name: process, state: {terminated: {exitCode: 143, reason: Error, startedAt: "2026-01-01T00:00:00Z", finishedAt: "2026-01-01T00:00:09Z"}}},
			{name: sidecar-1, state: {terminated: {exitCode: 3, reason: Error, startedAt: "2026-01-01T00:00:00Z", finishedAt: "2026-01-01T00:00:05Z"}}}]}}`, phase: lrp.PhaseExited, reason: "APP/PROC/WEB/SIDECAR/AGENT: Exited with status 3"},
	} {
		s := StateOf(Abridged(status(c.pod)), r)
		if s.Phase != c.phase || s.Ready != c.ready || s.Waits != c.waits || s.Stuck != c.stuck {
			t.Errorf("%s: got %+v", c.name, s)
		}
		if got := s.End.Reason(FailedProbe{}, len(r.Sources) > 1); s.Phase == lrp.PhaseExited && got != c.reason {
			t.Errorf("%s: got the reason %q; want %q", c.name, got, c.reason)
		}
	}
}

// TestPullWaits: of a failed pull users see the cause, and of cupola's own registry what the nodes need.
func TestPullWaits(t *testing.T) {
	const containerd = `Back-off pulling image "10.0.0.1:5443/droplets/60b5@sha256:60b5": ErrImagePull: failed to pull and unpack image "10.0.0.1:5443/droplets/60b5@sha256:60b5": failed to resolve reference "10.0.0.1:5443/droplets/60b5@sha256:60b5": failed to do request: Head "https://10.0.0.1:5443/v2/droplets/60b5/manifests/sha256:60b5": x509: certificate signed by unknown authority`
	pod := Abridged(Object{"status": doc{"phase": "Pending", "containerStatuses": []any{doc{"name": "process", "image": "10.0.0.1:5443/droplets/60b5@sha256:60b5", "state": doc{"waiting": doc{"reason": "ImagePullBackOff", "message": containerd}}}}}})
	const cause = "x509: certificate signed by unknown authority"
	if got, want := StateOf(pod, Record{}).Waits, "ImagePullBackOff: image 10.0.0.1:5443/droplets/60b5@sha256:60b5: "+cause; got != want {
		t.Errorf("got %q; want %q", got, want)
	}
	want := "ImagePullBackOff: " + cause + "; nodes have to reach 10.0.0.1:5443, the address of --kubernetes-registry, and to trust the CA"
	if got := StateOf(pod, Record{Packed: true}).Waits; !strings.HasPrefix(got, want) {
		t.Errorf("got %q; want %q", got, want)
	}
}

func TestHoldOf(t *testing.T) {
	for text, want := range map[string]string{
		`{items: [{reason: Scheduled, type: Normal, message: to n}]}`:                                                                                                               "",
		`{items: [{reason: FailedScheduling, type: Warning, message: no room}, {reason: Scheduled, type: Normal, message: to n}]}`:                                                  "",
		`{items: [{reason: Scheduled, type: Normal, message: to n}, {reason: Pulling, type: Normal, message: 'Pulling image "a"'}]}`:                                                `Pulling image "a"`,
		`{items: [{reason: FailedMount, type: Warning, message: no Secret}, {reason: Pulling, type: Normal, message: x}, {reason: Pulled, type: Normal, message: y}]}`:              "",
		`{items: [{reason: Scheduled, type: Normal, message: to n}, {reason: FailedMount, type: Warning, message: no Secret}, {reason: SandboxChanged, type: Normal, message: x}]}`: "FailedMount: no Secret",
	} {
		if got := HoldOf(status(text).Items("items")); got != want {
			t.Errorf("%s: got %q; want %q", text, got, want)
		}
	}
}

func TestFailedProbe(t *testing.T) {
	for text, want := range map[string]FailedProbe{
		`{items: [{reason: Unhealthy, message: "Startup probe failed: refused"}]}`: {},
		`{items: [{reason: Unhealthy, message: "Startup probe failed: refused"}, {reason: Unhealthy, message: "Startup probe failed: still refused\n"},
			{reason: Killing, message: "Container process failed startup probe"}]}`: {"still refused", true},
		`{items: [{reason: Unhealthy, message: "Startup probe failed: refused"}, {reason: Unhealthy, message: "Liveness probe failed: 503"},
			{reason: Killing, message: "Stopping container process"}]}`: {"503", false},
		`{items: [{reason: Killing, message: "Container process failed liveness probe, will be restarted"}]}`: {"the liveness probe failed", false},
		`{items: [{reason: Killing, message: "Stopping container process"}]}`:                                 {},
	} {
		if got := FailedProbeOf(status(text).Items("items")); got != want {
			t.Errorf("%s: got %+v; want %+v", text, got, want)
		}
	}
	end := InstanceEnd{Source: "APP", Code: 137, After: time.Minute}
	if got := end.Reason(FailedProbe{"refused", true}, false); got != "Instance never healthy after 1m0s: refused" {
		t.Error(got)
	}
	if got := end.Reason(FailedProbe{"refused", false}, false); got != "Instance became unhealthy: Liveness check unsuccessful: refused" {
		t.Error(got)
	}
}

func TestRoomOf(t *testing.T) {
	const allocatable = `allocatable: {cpu: 1930m, memory: 2Gi, ephemeral-storage: "1073741824", pods: "110"}`
	for text, want := range map[string]Room{
		`{status: {conditions: [{type: Ready, status: "True"}], ` + allocatable + `}}`: {2048, 1024, 110, 1.93, false, false},
		`{status: {nodeInfo: {kernelVersion: 6.8.0-31-generic}, runtimeHandlers: [{name: runc}, {name: "", features: {userNamespaces: true}}], conditions: [{type: Ready, status: "True"}], ` + allocatable + `}}`: {2048, 1024, 110, 1.93, true, false},
		`{status: {nodeInfo: {kernelVersion: 6.1.0-18-amd64}, runtimeHandlers: [{name: "", features: {userNamespaces: true}}], conditions: [{type: Ready, status: "True"}], ` + allocatable + `}}`:                 {2048, 1024, 110, 1.93, false, false},
		`{status: {nodeInfo: {kernelVersion: "6.18"}, runtimeHandlers: [{name: runc, features: {userNamespaces: true}}, {name: ""}], conditions: [{type: Ready, status: "True"}], ` + allocatable + `}}`:           {2048, 1024, 110, 1.93, false, false},
		`{status: {conditions: [{type: Ready, status: Unknown}], ` + allocatable + `}}`:                                                                                                                            {Silent: true},
		`{spec: {unschedulable: true}, status: {conditions: [{type: Ready, status: "True"}], ` + allocatable + `}}`:                                                                                                {},
	} {
		if got := RoomOf(status(text)); got != want {
			t.Errorf("%s: got %+v; want %+v", text, got, want)
		}
	}
}

func FuzzQuantity(f *testing.F) {
	for _, s := range []string{"16Gi", "1e3", "100m", "-1", "", "9E", "NaNMi", "0x1p9"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if n := quantity(s); n < 0 {
			t.Errorf("%q is %d", s, n)
		}
	})
}

// FuzzPod takes pods of a cluster that says anything.
func FuzzPod(f *testing.F) {
	f.Add(`{metadata: {name: a, annotations: {cupola.dev/container: "{\"guid\":\"a\"}"}}, status: {containerStatuses: [{name: process, state: {terminated: {exitCode: 1}}}]}}`)
	f.Add(`{metadata: {name: a, deletionTimestamp: "2026-01-01T00:00:00Z"}, spec: {nodeName: n, terminationGracePeriodSeconds: 20, containers: [{}, {ports: [{containerPort: 8080}]}]}, status: {phase: Running}}`)
	f.Fuzz(func(t *testing.T, text string) {
		all, err := Read(strings.NewReader(text))
		if err != nil || len(all) == 0 {
			return
		}
		r, _ := RecordOf(all[0])
		s := StateOf(all[0], r)
		if short := Abridged(all[0]); !reflect.DeepEqual(StateOf(short, r), s) || Deleted(short) != Deleted(all[0]) || NodeOf(short) != NodeOf(all[0]) || GraceOf(short) != GraceOf(all[0]) || PortOf(short) != PortOf(all[0]) {
			t.Errorf("abridged it is another pod: %v", short)
		}
		_, _ = s.End.Reason(FailedProbeOf(all[0].Items("items")), true), s.End.Line()
		_ = RoomOf(all[0])
	})
}
