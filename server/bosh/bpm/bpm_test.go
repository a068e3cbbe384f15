package bpm

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const full = `
processes:
- name: server
  executable: /var/vcap/packages/program/bin/server
  args: [--port, 2424, --debug, true, 1.50, 0x10]
  env: {FOO: BAR, COUNT: 3, ON: yes, OFF: false, NONE: }
  workdir: /work
  hooks: {pre_start: /var/vcap/jobs/program/bin/pre}
  capabilities: [NET_BIND_SERVICE]
  limits: {memory: 1.5G, open_files: 100, processes: 10, core_file_size: 0}
  ephemeral_disk: true
  persistent_disk: true
  additional_volumes:
  - {path: /var/vcap/data/shared, writable: true, allow_executions: true, mount_only: true, shared: true}
  unsafe:
    privileged: true
    host_pid_namespace: true
    unrestricted_volumes: [{path: /etc/*, writable: true}]
  shutdown_signal: INT
- name: worker
  executable: work
  hooks: {}
  limits:
  unsafe:
`

func TestParse(t *testing.T) {
	got, err := Parse([]byte(full))
	if err != nil {
		t.Fatal(err)
	}
	want := Config{Processes: []Process{{
		Name: "server", Executable: "/var/vcap/packages/program/bin/server",
		Args: []string{"--port", "2424", "--debug", "true", "1.50", "0x10"},
		Env:  map[string]string{"FOO": "BAR", "COUNT": "3", "ON": "yes", "OFF": "false", "NONE": ""}, Workdir: "/work",
		Hooks: Hooks{PreStart: "/var/vcap/jobs/program/bin/pre"}, Capabilities: []string{"NET_BIND_SERVICE"},
		Limits:        Limits{Memory: 3 << 29, OpenFiles: 100, Processes: 10, CoreFileSize: new(uint64)},
		EphemeralDisk: true, PersistentDisk: true, ShutdownSignal: "INT",
		AdditionalVolumes: []Volume{{"/var/vcap/data/shared", true, true, true, true}},
		Unsafe:            Unsafe{Privileged: true, HostPIDNamespace: true, UnrestrictedVolumes: []Volume{{Path: "/etc/*", Writable: true}}},
	}, {Name: "worker", Executable: "work"}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if err := got.Check("program"); err != nil {
		t.Error(err)
	}
}

func TestParsePassesOverUnknownKeys(t *testing.T) {
	got, err := Parse([]byte("x: 1\nprocesses:\n- {name: a, executable: b, volumes: [], limits: {ram: 1}, unsafe: {unrestricted_volumes: [{mode: 1}]}}"))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"/x", "/processes/0/volumes", "/processes/0/limits/ram", "/processes/0/unsafe/unrestricted_volumes/0/mode"}
	if diff := cmp.Diff(want, got.Unknown); diff != "" {
		t.Error(diff)
	}
}

func TestParseRefuses(t *testing.T) {
	bomb := "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\n" +
		"e: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\nprocesses: [{name: a, args: [*f]}]"
	for text, want := range map[string]string{
		"processes: 3":                         "cannot unmarshal",
		"- a":                                  "cannot unmarshal",
		"a: [":                                 "bpm.yml: line 1",
		"processes: [{limits: {memory: 12}}]":  "byte quantity must be",
		"processes: [{limits: {memory: -1G}}]": "byte quantity must be",
		"processes: [{limits: {open_files: -1}}]": "cannot unmarshal",
		bomb:                            "",
		strings.Repeat(" ", maxBytes+1): "at most 1048576 are read",
	} {
		_, err := Parse([]byte(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: got %v; want %q", text, err, want)
		}
	}
	if c, err := Parse(nil); err != nil || len(c.Processes) > 0 {
		t.Errorf("got %v, %v; want none for an empty file", c, err)
	}
}

func TestCheck(t *testing.T) {
	volume := func(path string) Process {
		return Process{Name: "a", Executable: "b", AdditionalVolumes: []Volume{{Path: path}}}
	}
	for _, test := range []struct {
		p    Process
		want string
	}{
		{Process{Executable: "b"}, `process 1: invalid config: name`},
		{Process{Name: "a"}, `process "a": invalid config: executable`},
		{Process{Name: "../a", Executable: "b"}, `process "../a": invalid config: name may have letters, digits, _, . and -`},
		{Process{Name: "a", Executable: "b", ShutdownSignal: "HUP"}, `process "a": shutdown signal should either be 'TERM' or 'INT' (or left unspecified), but got 'HUP'`},
		{Process{Name: "a", Executable: "b", Capabilities: []string{"CAP_KILL"}}, `process "a": invalid config: unknown capability "CAP_KILL"`},
		{Process{Name: "a", Executable: "b", Env: map[string]string{"A=B": ""}}, `process "a": invalid config: env "A=B"`},
		{volume("/var/vcap/data/x/"), `process "a": volume path must be canonical, expected /var/vcap/data/x but got /var/vcap/data/x/`},
		{volume("/var/vcap/data/../../x"), `process "a": volume path must be canonical, expected /var/x but got /var/vcap/data/../../x`},
		{volume("/var/vcap/data/j"), `process "a": invalid volume path: /var/vcap/data/j cannot conflict with default job data or store directories`},
		{volume("/var/vcap/store/j"), `process "a": invalid volume path: /var/vcap/store/j cannot conflict with default job data or store directories`},
		{volume("/etc"), `process "a": invalid volume path: /etc must be within /var/vcap`},
		{volume("/var/vcap"), `process "a": invalid volume path: /var/vcap must be within /var/vcap`},
		{volume("/var/vcapx/a"), `process "a": invalid volume path: /var/vcapx/a must be within /var/vcap`},
		{Process{Name: "a", Executable: "b", Unsafe: Unsafe{UnrestrictedVolumes: []Volume{{Path: "/a/../b"}}}}, `process "a": volume path must be canonical, expected /b but got /a/../b`},
		{volume("/var/vcap/data/j/inner"), ""},
	} {
		err := Config{Processes: []Process{test.p}}.Check("j")
		if got := text(err); got != test.want {
			t.Errorf("got %q; want %q", got, test.want)
		}
	}
	twice := Config{Processes: []Process{{Name: "a", Executable: "b"}, {Name: "a"}}}
	if got, want := text(twice.Check("j")), "process \"a\": invalid config: executable\nprocess \"a\" is there twice"; got != want {
		t.Errorf("got %q; want %q", got, want)
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestParseBytes(t *testing.T) {
	for s, want := range map[string]Bytes{
		"1G": 1 << 30, "1GB": 1 << 30, "1gib": 1 << 30, " 256M ": 256 << 20, "1.5K": 1536, "3B": 3, "1T": 1 << 40, "1P": 1 << 50, "1E": 1 << 60, "0G": 0,
		"1": -1, "": -1, "G": -1, "-1G": -1, "1X": -1, "1BB": -1, "1GBB": -1, "99E": -1, "1G1": -1,
	} {
		got, err := parseBytes(s)
		if err != nil {
			got = -1
		}
		if got != want {
			t.Errorf("%q: got %d, %v; want %d", s, got, err, want)
		}
	}
}

func TestMerge(t *testing.T) {
	base, err := Parse([]byte(full))
	if err != nil {
		t.Fatal(err)
	}
	over, err := FromValue(map[string]any{"processes": []any{
		map[string]any{"name": "server", "env": map[string]any{"FOO": 1, "NEW": "x"}, "limits": map[string]any{"memory": "2G"}, "requests": map[string]any{"cpu": "10m"}},
		map[string]any{"name": "more", "executable": "sleep", "args": []any{1000}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	got := base.Merge(over)
	want := base.Processes[0]
	want.Env = map[string]string{"FOO": "1", "COUNT": "3", "ON": "yes", "OFF": "false", "NONE": "", "NEW": "x"}
	want.Limits.Memory = 2 << 30
	want.Requests = map[string]string{"cpu": "10m"}
	if diff := cmp.Diff([]Process{want, base.Processes[1], {Name: "more", Executable: "sleep", Args: []string{"1000"}}}, got.Processes); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(base, base.Merge(Config{})); diff != "" {
		t.Error(diff)
	}
}

func TestWithDefaults(t *testing.T) {
	got := Process{Name: "a", Env: map[string]string{"LANG": "C", "X": "y"}}.WithDefaults("nats")
	want := Process{Name: "a", Workdir: "/var/vcap/jobs/nats", ShutdownSignal: "TERM", Env: map[string]string{
		"LANG": "C", "X": "y", "TMPDIR": "/var/vcap/data/nats/tmp", "HOME": "/var/vcap/data/nats",
		"PATH": "/var/vcap/jobs/nats/bin:/usr/local/bin:/usr/local/sbin:/usr/bin:/usr/sbin:/bin:/sbin:.",
	}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(full))
	f.Add([]byte("processes: [{name: &a x, args: [*a]}]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := Parse(text)
		if err != nil {
			return
		}
		_ = c.Check("job")
		if diff := cmp.Diff(c.Processes, c.Merge(Config{Processes: c.Processes}).Processes); diff != "" && c.Check("job") == nil {
			t.Error(diff)
		}
	})
}
