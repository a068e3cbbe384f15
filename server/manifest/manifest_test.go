package manifest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"cupola/store/cf"
	"cupola/test/cputime"
)

func TestParse(t *testing.T) {
	m, err := Parse([]byte(`---
version: 1
applications:
- name: hello
  path: /somewhere
  memory: 256M
  disk_quota: 1G
  instances: 2
  command: null
  stack: minifs
  buildpacks: [go_buildpack]
  env: {A: b, N: 1}
  default-route: true
  health-check-type: http
  health-check-http-endpoint: /h
  timeout: 90
  log-rate-limit-per-second: -1
  routes:
  - route: hello.example.com/x
    protocol: http2
  processes:
  - type: worker
    memory: 64MB
    disk-quota: 2G
    health-check-type: process
  features: {ssh: false}
  metadata:
    labels: {team: x, old: null}
  sidecars:
  - name: s
    command: run
    process_types: [web]
`))
	if err != nil {
		t.Fatal(err)
	}
	want := App{Name: "hello", Stack: new("minifs"), Buildpacks: []string{"go_buildpack"}, BuildpackSet: true, Env: map[string]any{"A": "b", "N": 1},
		DefaultRoute: true, RoutesSet: true, Routes: []Route{{URL: "hello.example.com/x", Protocol: "http2"}}, Features: map[string]bool{"ssh": false},
		Metadata: map[string]any{"labels": map[string]any{"team": "x", "old": nil}}, Labels: map[string]*string{"team": new("x"), "old": nil},
		Sidecars: []cf.Sidecar{{Name: "s", Command: "run", ProcessTypes: []string{"web"}}},
		Processes: []Process{
			{Type: "web", Command: new(""), Instances: new(2), MemoryMB: new(256), DiskMB: new(1024), LogRate: new(int64(-1)),
				Health: Check{Type: new("http"), Endpoint: new("/h"), Timeout: new(90)}},
			{Type: "worker", Listed: true, MemoryMB: new(64), DiskMB: new(2048), Health: Check{Type: new("process")}},
		}}
	if d := cmp.Diff(want, m.Apps[0], cmpopts.IgnoreUnexported(App{})); d != "" {
		t.Error(d)
	}
}

func TestFaults(t *testing.T) {
	for text, want := range map[string]string{
		"applications: []":                         "Cannot parse manifest with no 'applications' field.",
		"version: 2\napplications: [{name: a}]":    "Unsupported manifest schema version. Currently supported versions: [1].",
		"applications: [{memory: 1G}]":             "For application at index 0: Name must not be empty",
		"applications: [{name: a, memory: 12}]":    `For application 'a': Process "web": Memory must use a supported unit: B, K, KB, M, MB, G, GB, T, or TB`,
		"applications: [{name: a, memory: 512 M}]": `For application 'a': Process "web": Memory must use a supported unit: B, K, KB, M, MB, G, GB, T, or TB`,
		"applications: [{name: a, sidecars: [{name: s, command: c, process_types: [web], memory: 5 M}]}]": `For application 'a': Sidecar "s": Memory in mb is not a number`,
		"applications: [{name: a, instances: x}]":                                                         `For application 'a': Process "web": Instances is not a number`,
		"applications: [{name: a, instances: -1}]":                                                        `For application 'a': Process "web": Instances must be greater than or equal to 0`,
		"applications: [{name: a, health-check-type: x}]":                                                 `For application 'a': Process "web": Health check type must be "port", "process", or "http"`,
		"applications: [{name: a, buildpack: x, buildpacks: [y]}]":                                        "For application 'a': Buildpack and Buildpacks fields cannot be used together.",
		"applications: [{name: a, features: [{ssh: 1}]}]":                                                 "For application 'a': Features must be a map of valid feature names to booleans (true = enabled, false = disabled)",
		"applications: [{name: a, features: {x: true}}]":                                                  "For application 'a': Features must be a map of valid feature names to booleans (true = enabled, false = disabled)",
		"applications: [{name: a, features: [x]}]":                                                        "For application 'a': Features must be a map of valid feature names to booleans (true = enabled, false = disabled)",
		"applications: [{name: a, processes: [{memory: 1G}]}]":                                            "For application 'a': All Processes must specify a type",
		`applications: [{name: a, stack: ""}]`:                                                            "For application 'a': Stack must be between 1 and 4096 characters",
		"applications: [{name: a, processes: [{type: w, user: 5}]}]":                                      `For application 'a': Process "w": User must be a string`,
		`applications: [{name: a, processes: [{type: w, user: ""}]}]`:                                     `For application 'a': Process "w": User must be between 1 and 255 characters`,
		"applications: [{name: a, health-check-type: port, health-check-http-endpoint: /x}]":              `For application 'a': Process "web": Health check type must be "http" to set a health check HTTP endpoint`,
		"applications: [{name: a, metadata: {labels: {-a: b}}}]":                                          "For application 'a': Metadata label key error: '-a' starts or ends with invalid characters",
		"applications: [{name: a, metadata: {labels: x}}]":                                                "For application 'a': Metadata 'labels' is not an object",
		"applications: [{name: a, metadata: {tags: {}}}]":                                                 "For application 'a': Metadata has unexpected field(s): 'tags'",
		"applications: [{name: {b: c}}]":                                                                  `For application '{"b":"c"}': Name must be a string`,
		"applications: [{name: a, metadata: {labels: {b: {c: 1}}}}]":                                      `For application 'a': Metadata label value error: '{"c":1}' contains invalid characters`,
		"applications: [{name: a, stack: 5}]":                                                             "For application 'a': Stack must be a string",
		"applications: [{name: a, routes: [{route: 5}]}]":                                                 "For application 'a': Routes must be a list of route objects",
		"applications: [{name: a, memory: 1}, {name: b, random-route: maybe}]":                            "For application 'b': Random-route must be a boolean",
		"applications: [{name: a, processes: [{type: web, memory: x}], buildpack: y}]":                    `For application 'a': Process "web": Memory is not a number`,
	} {
		_, err := Parse([]byte(text))
		var faults Invalid
		if !errors.As(err, &faults) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v; want %s", text, err, want)
		}
	}
	if _, err := Parse([]byte("applications: [")); !errors.Is(err, errSyntax) {
		t.Errorf("got %v; want %v", err, errSyntax)
	}
	if _, err := Parse([]byte("applications:\n- &x {name: a}\n- *x")); !errors.Is(err, ErrAliases) {
		t.Errorf("got %v; want %v", err, ErrAliases)
	}
}

// TestDatesAreText keeps dates as they are written: no field is a time.
func TestDatesAreText(t *testing.T) {
	m, err := Parse([]byte("applications: [{name: 2024-05-01, env: {D: 2024-05-01, T: 2024-05-01T10:00:00Z}, metadata: {labels: {d: 2024-05-01}, annotations: {t: 2024-05-01 10:00:00}}}]"))
	if err != nil {
		t.Fatal(err)
	}
	want := App{Name: "2024-05-01", Env: map[string]any{"D": "2024-05-01", "T": "2024-05-01T10:00:00Z"}, Labels: map[string]*string{"d": new("2024-05-01")}, Annotations: map[string]*string{"t": new("2024-05-01 10:00:00")}}
	a := m.Apps[0]
	if diff := cmp.Diff(want, App{Name: a.Name, Env: a.Env, Labels: a.Labels, Annotations: a.Annotations}, cmpopts.IgnoreUnexported(App{})); diff != "" {
		t.Error(diff)
	}
}

// TestOldBooleans reads the words for booleans of YAML 1.1, as Cloud Controller does. Keys,
// and what is quoted or tagged, stay as they are.
func TestOldBooleans(t *testing.T) {
	m, err := Parse([]byte(`applications:
- name: a
  no-route: Yes
  features: {ssh: off}
  metadata: {labels: {no: yes}}
  env: {YES: on, NO: No, Q: "yes", T: !!str off, Y: y}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := App{Name: "a", NoRoute: true, Features: map[string]bool{"ssh": false}, Labels: map[string]*string{"no": new("true")},
		Env: map[string]any{"YES": true, "NO": false, "Q": "yes", "T": "off", "Y": "y"}}
	a := m.Apps[0]
	got := App{Name: a.Name, NoRoute: a.NoRoute, Features: a.Features, Labels: a.Labels, Env: a.Env}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(App{})); diff != "" {
		t.Error(diff)
	}
}

// Lists and texts are bounded, and a fault says which and by how much.
func TestLimits(t *testing.T) {
	entries := func(n int, entry string) string { return strings.Repeat(entry+",", n) }
	for text, want := range map[string]string{
		"applications: [" + entries(2001, "{name: a}") + "]":                                                               "Applications may have at most 2000 entries, it has 2001",
		"applications: [{name: a, routes: [" + entries(1001, "{route: a.b}") + "]}]":                                       "For application 'a': Routes may have at most 1000 entries, it has 1001",
		"applications: [{name: a, services: [" + entries(201, "x") + "]}]":                                                 "For application 'a': Services may have at most 200 entries, it has 201",
		"applications: [{name: a, processes: [" + entries(51, "{type: x}") + "]}]":                                         "For application 'a': Processes may have at most 50 entries, it has 51",
		"applications: [{name: a, sidecars: [" + entries(51, "{name: s, command: c, process_types: [w]}") + "]}]":          "For application 'a': Sidecars may have at most 50 entries, it has 51",
		"applications: [{name: a, command: " + strings.Repeat("x", 4097) + "}]":                                            `For application 'a': Process "web": Command must be between 1 and 4096 characters`,
		"applications: [{name: a, processes: [{type: " + strings.Repeat("x", 256) + "}]}]":                                 "For application 'a': Process types must be between 1 and 255 characters",
		"applications: [{name: a, sidecars: [{name: s, process_types: [w], command: " + strings.Repeat("x", 4097) + "}]}]": `For application 'a': Sidecar "s": Command is too long (maximum is 4096 characters)`,
	} {
		_, err := Parse([]byte(text))
		var faults Invalid
		if !errors.As(err, &faults) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %.200v; want %s", err, want)
		}
	}
	if _, err := Parse([]byte("applications: [" + entries(2000, "{name: a}") + "]")); err != nil {
		t.Errorf("2000 apps: %v", err)
	}
}

func TestDiff(t *testing.T) {
	m, err := Parse([]byte("applications: [{name: a, path: x, memory: 1G, instances: 2, env: {B: c}, processes: [{type: web, disk_quota: 1G}, {type: w}]}, {name: new}]"))
	if err != nil {
		t.Fatal(err)
	}
	got := Diff(m, map[string]map[string]any{"a": {"name": "a", "memory": "1024M", "instances": 1, "env": map[string]any{"A": "b"},
		"processes": []any{map[string]any{"type": "web", "disk_quota": "512M"}}}})
	want := []Change{
		{Op: "add", Path: "/applications/0/env/B", Value: "c"},
		{Op: "replace", Path: "/applications/0/instances", Was: 1, Value: 2},
		{Op: "replace", Path: "/applications/0/processes/0/disk_quota", Was: "512M", Value: "1G"},
		{Op: "add", Path: "/applications/0/processes/1", Value: map[string]any{"type": "w"}},
		{Op: "add", Path: "/applications/1/name", Value: "new"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("applications: [{name: a, memory: 1G, routes: [{route: a.b}], processes: [{type: web}], sidecars: [{}]}]")
	f.Add("applications: [{name: a, services: [{name: 1}], env: {a: [1]}}]")
	f.Fuzz(func(t *testing.T, text string) {
		if m, err := Parse([]byte(text)); err == nil {
			Diff(m, nil)
		}
	})
}

// TestFeatures has Cloud Controller's form and the two that RFC-0030 proposes.
func TestFeatures(t *testing.T) {
	for _, text := range []string{
		"{file-based-servicebinding-io: true, ssh: false}",
		"[{file-based-servicebinding-io: true}, {ssh: false}]",
		"[{name: file-based-servicebinding-io, enabled: true}, {name: ssh, enabled: false}]",
	} {
		m, err := Parse([]byte("applications: [{name: a, features: " + text + "}]"))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if diff := cmp.Diff(map[string]bool{"file-based-servicebinding-io": true, "ssh": false}, m.Apps[0].Features); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

// Texts of a megabyte are read in seconds, whatever they are.
func TestLargeManifestsEnd(t *testing.T) {
	keys := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "k%x: 1\n", i)
		}
		return b.String()
	}
	for name, c := range map[string]struct {
		text string
		want error
	}{
		"keys":      {keys(MaxBytes / 12), ErrLarge},
		"values":    {"[" + strings.Repeat("a,", maxNodes) + "]", ErrLarge},
		"many maps": {strings.Repeat("- {a: b}\n", maxNodes/3), ErrLarge},
	} {
		took := cputime.Of(func() {
			if _, err := Parse([]byte(c.text)); !errors.Is(err, c.want) {
				t.Errorf("%s: got %v; want %v", name, err, c.want)
			}
		})
		if took > 20*time.Second {
			t.Errorf("%s: it took %v", name, took)
		}
	}
	if _, err := Parse([]byte("applications: [{name: a}]\n" + keys(maxKeys-1))); err != nil {
		t.Errorf("got %v of the most keys there may be", err)
	}
}
