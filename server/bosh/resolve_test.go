package bosh

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"cupola/server/bosh/bpm"
	"cupola/server/bosh/link"
	"cupola/server/bosh/manifest"
	"cupola/server/bosh/release"
	"cupola/server/bosh/tree"
)

const deployment = `
name: nats-deployment
tags: {maintainer: Fry}
releases:
- {name: nats, version: "26", url: ghcr.io/org/, stemcell: {os: SLE, version: 27.8}, credentials: {username: u, password: p}}
- {name: tests, version: "1", url: ghcr.io/org}
stemcells:
- {alias: default, os: opensuse, version: "42.3"}
update: {canaries: 1, max_in_flight: 2}
instance_groups:
- name: nats
  instances: 3
  azs: [z1, z2]
  persistent_disk: 1024
  vm_resources: {cpu: 2, ram: 512, ephemeral_disk_size: 100}
  env: {bosh: {agent: {settings: {labels: {a: b}}}}}
  jobs:
  - name: nats
    release: nats
    properties:
      nats: {user: me, password: secret, unknown: x}
      quarks:
        ports: [{name: nats, protocol: TCP, internal: 4222}]
        run:
          memory: 128
          virtual-cpus: 0.5
          capabilities: [CHOWN]
          healthcheck: {nats: {readiness: {tcpSocket: {port: 4222}}}}
        envs: [{name: EXTRA, value: 1}, {name: POD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]
        bpm: {processes: [{name: side, executable: /side, limits: {memory: 1G}}]}
- name: tests
  lifecycle: errand
  stemcell: default
  jobs:
  - {name: smoke, release: tests}
`

func jobs(files map[string]string, specs map[string]string) func(context.Context, manifest.Image, string) (release.Job, error) {
	return func(_ context.Context, image manifest.Image, name string) (release.Job, error) {
		spec, ok := specs[name]
		if !ok {
			return release.Job{}, fmt.Errorf("job %q is not in %s", name, image.Reference)
		}
		j, err := release.ParseSpec(name, []byte(spec))
		for i := range j.Templates {
			j.Templates[i].Content, j.Templates[i].Mode = []byte(files[j.Templates[i].Source]), 0o640
		}
		return j, err
	}
}

func example() Resolver {
	return Resolver{Job: jobs(map[string]string{
		"bpm.yml.erb":   "processes:\n- name: nats\n  executable: /nats\n  args: [-i, <%= spec.index %>]\n  persistent_disk: true\n",
		"nats.conf.erb": "<%= p('nats.user') %>@<%= p('nats.port') %> <%= spec.address %> <%= spec.az %> <%= spec.ip %> <%= spec.id %>\n",
		"pre-start":     "#!/bin/sh\n",
		"run.erb":       "curl <%= link('nats').address %> <%= link('nats').instances[1].address %> <%= link('nats').p('nats.password') %> <%= p('nats.password', 'none') %> # <%= spec.job.name %>\n",
	}, map[string]string{
		"nats": `
templates: {bpm.yml.erb: config/bpm.yml, nats.conf.erb: config/nats.conf, pre-start: bin/pre-start}
properties: {nats.user: , nats.password: , nats.port: {default: 4222}}
provides: [{name: nats, type: nats, properties: [nats.password]}]`,
		"smoke": `
templates: {run.erb: bin/run}
properties: {nats.password: }
consumes: [{name: nats, type: nats}]`,
		"quiet": "{}",
	})}
}

func parse(t testing.TB, text string) *manifest.Manifest {
	t.Helper()
	m, found := manifest.Parse([]byte(text))
	if err := found.Err(); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestResolve(t *testing.T) {
	d, err := example().Resolve(t.Context(), parse(t, deployment))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"secret"}, d.Literal); diff != "" {
		t.Errorf("credentials of the manifest: %s", diff)
	}
	nats, tests := d.Groups[0], d.Groups[1]
	var conf []string
	for _, i := range nats.Instances {
		for _, f := range i.Jobs[0].Files {
			if f.Path == "config/nats.conf" {
				conf = append(conf, fmt.Sprintf("%s/%d %s %s", i.AZ, i.Ordinal, i.Address, f.Content))
			}
		}
	}
	want := []string{
		"z1/0 nats-deployment-nats-0 me@4222 nats-deployment-nats-0 z1 @@SPEC_IP@@ nats-0-nats\n",
		"z2/0 nats-deployment-nats-1 me@4222 nats-deployment-nats-1 z2 @@SPEC_IP@@ nats-1-nats\n",
		"z1/1 nats-deployment-nats-2 me@4222 nats-deployment-nats-2 z1 @@SPEC_IP@@ nats-2-nats\n",
	}
	if diff := cmp.Diff(want, conf); diff != "" {
		t.Error(diff)
	}
	if got, want := string(tests.Instances[0].Jobs[0].Files[0].Content), "curl nats-deployment-nats nats-deployment-nats-1 secret none # tests\n"; got != want {
		t.Errorf("got %q; want %q", got, want)
	}
	j := nats.Jobs[0]
	if j.Image.Reference != "ghcr.io/org/nats:SLE-27.8-26" || tests.Jobs[0].Image.Reference != "ghcr.io/org/tests:opensuse-42.3-1" || j.Image.Credentials.Password != "p" {
		t.Errorf("got images %v, %v", j.Image, tests.Jobs[0].Image)
	}
	if !j.Varies || tests.Jobs[0].Varies || j.Scripts != (Scripts{PreStart: true}) || len(j.Envs) != 1 || j.Ports[0].Internal != 4222 {
		t.Errorf("got %+v", j)
	}
	if nats.Address != "nats-deployment-nats" || nats.EphemeralDiskMB != 100 || nats.PersistentDiskMB != 1024 || nats.Settings.Labels["a"] != "b" || nats.Update.CanariesOf(4) != 1 || d.Tags["maintainer"] != "Fry" {
		t.Errorf("got %+v", nats)
	}
	checkProcesses(t, j.Processes, tests.Jobs[0].Processes)
}

func checkProcesses(t *testing.T, nats, smoke []Process) {
	t.Helper()
	env := map[string]string{
		"EXTRA": "1", "TMPDIR": "/var/vcap/data/nats/tmp", "LANG": "en_US.UTF-8", "HOME": "/var/vcap/data/nats",
		"PATH": "/var/vcap/jobs/nats/bin:/usr/local/bin:/usr/local/sbin:/usr/bin:/usr/sbin:/bin:/sbin:.",
	}
	want := []Process{{
		Process: bpm.Process{Name: "nats", Executable: "/nats", Args: []string{"-i", "0"}, Env: env, Workdir: "/var/vcap/jobs/nats", Capabilities: []string{"CHOWN"},
			Limits: bpm.Limits{Memory: 128 << 20}, PersistentDisk: true, ShutdownSignal: "TERM"},
		Container: "nats-nats", CPUs: 0.5, Readiness: &manifest.Probe{TCPPort: "4222"},
	}, {
		Process: bpm.Process{Name: "side", Executable: "/side", Env: env, Workdir: "/var/vcap/jobs/nats", Capabilities: []string{"CHOWN"},
			Limits: bpm.Limits{Memory: 1 << 30}, ShutdownSignal: "TERM"},
		Container: "nats-side", CPUs: 0.5,
	}}
	if diff := cmp.Diff(want, nats, cmpopts.IgnoreUnexported(manifest.Probe{})); diff != "" {
		t.Error(diff)
	}
	if len(smoke) != 1 || smoke[0].Executable != "/var/vcap/jobs/smoke/bin/run" || smoke[0].Container != "smoke-run" {
		t.Errorf("got %+v; want bin/run of the errand", smoke)
	}
}

func TestHash(t *testing.T) {
	resolve := func(old, now string) Group {
		t.Helper()
		if !strings.Contains(deployment, old) {
			t.Fatalf("the example has no %q", old)
		}
		d, err := example().Resolve(t.Context(), parse(t, strings.Replace(deployment, old, now, 1)))
		if err != nil {
			t.Fatal(err)
		}
		return d.Groups[0]
	}
	base := resolve("user: me", "user: me")
	for _, test := range []struct {
		old, now string
		changes  bool
	}{
		{"name: nats-deployment", "\n\nname: nats-deployment", false}, // other lines
		{"canaries: 1", "canaries: 2", false},
		{"persistent_disk: 1024", "persistent_disk: 2048", false},
		{"username: u", "username: x", false},
		{"unknown: x", "unknown: y", false},
		{"instances: 3", "instances: 4", false}, // of the first one
		{"user: me", "user: you", true},
		{"memory: 128", "memory: 256", true},
		{"ram: 512", "ram: 256", false}, // run.memory goes before it
		{"internal: 4222", "internal: 4223", true},
		{"{port: 4222}", "{port: 4223}", true},
		{`version: "26"`, `version: "27"`, true},
		{"{a: b}", "{a: c}", true},
	} {
		got := resolve(test.old, test.now)
		if changed := got.Instances[0].Hash != base.Instances[0].Hash; changed != test.changes {
			t.Errorf("%s: the hash of an instance changes: %v", test.now, changed)
		}
		if test.changes && got.Hash == base.Hash {
			t.Errorf("%s: the hash of the group stays", test.now)
		}
	}
}

func TestResolveRefuses(t *testing.T) {
	for _, test := range []struct{ old, now, want string }{
		{"release: tests}", "release: none}", `instance group "tests", job "smoke": release 'none' not found`},
		{"stemcell: default", "stemcell: other", `instance group "tests", job "smoke": stemcell could not be resolved for instance group tests`},
		{`version: "26"`, `version: latest`, `instance group "nats", job "nats": release version "latest" is not supported`},
		{"name: smoke", "name: none", `instance group "tests", job "none": job "none" is not in ghcr.io/org/tests:opensuse-42.3-1`},
		{"name: smoke", "name: smoke, consumes: {nats: {from: x}}",
			`instance group "tests": cannot resolve non-optional link for provider nats in job smoke: nothing provides type "nats" as "x"; there is "nats"`},
		{"nats: {user: me,", "nats: {", `instance nats/0, job "nats", template nats.conf.erb:1: Can't find property 'nats.user'`},
		{"nats: {user: me, password: secret, unknown: x}", "nats: text",
			"instance group \"nats\", job \"nats\": Property 'nats.password' expects a hash, but received 'String'"},
		{"persistent_disk: 1024", "", `instance group "nats", job "nats": job 'nats' wants to use persistent disk but instance group 'nats' doesn't have any persistent disk declaration`},
		{"healthcheck: {nats:", "healthcheck: {x:", `instance group "nats", job "nats": the healthcheck is of process "x", which the job does not have`},
		{"envs: [{name: EXTRA", "activePassiveProbes: {x: {tcpSocket: {port: 4222}}}\n        envs: [{name: EXTRA", `instance group "nats", job "nats": the activePassiveProbe is of container "x", which the job does not have`},
		{"executable: /side", "x: y", `instance group "nats", job "nats": process "side": invalid config: executable`},
		{"lifecycle: errand", "lifecycle: service", `instance group "tests", job "smoke": has no BPM information: its release renders no config/bpm.yml and has no monit file, and the manifest has no quarks.bpm.processes`},
		{"- {name: smoke, release: tests}", "- {name: smoke, release: tests}\n- {name: nothing, jobs: [{name: quiet, release: nats}]}",
			`instance group "nothing", job "quiet": has no BPM information: its release renders no config/bpm.yml and has no monit file, and the manifest has no quarks.bpm.processes`},
		{"- {name: smoke, release: tests}", "- {name: smoke, release: tests}\n- {name: nothing, jobs: [{name: quiet, release: nats, properties: {quarks: {bpm: {processes: []}}}}]}", ""},
		{"{name: side, ", "{name: na-ts, ", ""},
		{"{name: side, ", "{name: NATS, ", `instance group "nats": process "nats" of job "nats" and process "NATS" of job "nats" would both be the container nats-nats`},
	} {
		_, err := example().Resolve(t.Context(), parse(t, strings.Replace(deployment, test.old, test.now, 1)))
		got := ""
		if err != nil {
			got, _, _ = strings.Cut(err.Error(), "\n")
		}
		if got != test.want {
			t.Errorf("%s:\ngot  %s\nwant %s", test.now, got, test.want)
		}
	}
}

func TestScriptsPatchAJob(t *testing.T) {
	const scripts = "pre_render_scripts: {jobs: [c], bpm: [b], ig_resolver: [a, a2]}\n        envs: [{name: EXTRA"
	m := parse(t, strings.Replace(deployment, "envs: [{name: EXTRA", scripts, 1))
	r := example()
	_, err := r.Resolve(t.Context(), m)
	if want := `instance group "nats", job "nats": there is no sandbox to run pre_render_scripts in`; err == nil || err.Error() != want {
		t.Errorf("got %v; want %s", err, want)
	}
	var got []Patch
	r.Patched = func(ctx context.Context, image manifest.Image, job string, by Patch) (release.Job, error) {
		got = append(got, by)
		j, err := r.Job(ctx, image, job)
		j.Templates = slices.DeleteFunc(j.Templates, func(t release.Template) bool { return t.Destination == "config/nats.conf" })
		return j, err
	}
	d, err := r.Resolve(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	name := func(list string) string { return "pre_render_scripts." + list }
	want := []Patch{{"nats", []Script{{name("ig_resolver[0]"), "a"}, {name("ig_resolver[1]"), "a2"}, {name("bpm[0]"), "b"}, {name("jobs[0]"), "c"}}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if files := d.Groups[0].Instances[0].Jobs[0].Files; len(files) != 2 {
		t.Errorf("got %d files; want those of the patched job", len(files))
	}
}

func TestResolveNeedsRuby(t *testing.T) {
	r := example()
	r.Job = jobs(map[string]string{"a": "<% if true %>x<% end %>", "b": "<% 1 %>"}, map[string]string{
		"nats":  "templates: {a: config/bpm.yml, b: x}\nprovides: [{name: nats, type: nats}]",
		"smoke": "templates: {b: y}",
	})
	_, err := r.Resolve(t.Context(), parse(t, deployment))
	want := `job "nats" needs Ruby to render 2 templates (bpm.yml: yes): install ruby (on Debian and Ubuntu: apt-get install ruby), or make a stack that has it (cupola stack build debian12 --package ruby)
job "smoke" needs Ruby to render 1 templates (bpm.yml: no): install ruby (on Debian and Ubuntu: apt-get install ruby), or make a stack that has it (cupola stack build debian12 --package ruby)`
	if err == nil || err.Error() != want {
		t.Errorf("got %v; want %s", err, want)
	}
}

func TestResolveTakesLinksOfOthers(t *testing.T) {
	r := example()
	r.IP = func(group string, index int) string { return fmt.Sprintf("10.0.0.%d", index+1) }
	r.Shared = func(name string) ([]link.Provider, bool) {
		return []link.Provider{{Name: "nats", Alias: "nats", Type: "nats", Shared: true, Link: link.Link{
			Address: "theirs", Properties: map[string]any{"nats": map[string]any{"password": "other"}}, Instances: make([]link.Instance, 2),
		}}}, name == "other"
	}
	d, err := r.Resolve(t.Context(), parse(t, strings.Replace(deployment, "name: smoke", "name: smoke, consumes: {nats: {from: nats, deployment: other}}", 1)))
	if err != nil {
		t.Fatal(err)
	}
	if got := string(d.Groups[1].Instances[0].Jobs[0].Files[0].Content); !strings.HasPrefix(got, "curl theirs ") {
		t.Errorf("got %q", got)
	}
	if got := string(d.Groups[0].Instances[2].Jobs[0].Files[2].Content); !strings.Contains(got, "10.0.0.3") {
		t.Errorf("got %q", got)
	}
}

func TestVisible(t *testing.T) {
	given := map[string]any{"a": map[string]any{"b": 1, "hidden": 2}, "list": []any{map[string]any{"x": 1}}}
	j := release.Job{Properties: map[string]release.Property{
		"a.b": {Default: 9}, "a.c": {Default: 3}, "a.d": {}, "list": {}, "none.deep": {}, "map": {Default: map[string]any{"k": "v"}}, "map.l": {Default: 1},
	}}
	got, err := visible(j, given)
	want := map[string]any{
		"a": map[string]any{"b": 1, "c": 3, "d": nil}, "list": []any{map[string]any{"x": 1}}, "none": map[string]any{"deep": nil}, "map": map[string]any{"k": "v", "l": 1},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
	if len(j.Properties["map"].Default.(map[string]any)) != 1 {
		t.Error("the release's own default has changed")
	}
}

// TestOrderOfProperties has templates find properties in the order of the spec, and what is
// in them sorted, but for maps in lists: these are as in the manifest or the default.
func TestOrderOfProperties(t *testing.T) {
	spec := "templates: {a.erb: a}\nproperties:\n  z.size: {default: 1}\n  b: {}\n  z.map: {default: {y: 1, x: 2}}\n  a: {default: {d: 1, c: 2}}\n"
	const text = `
name: d
releases: [{name: nats, version: "26", url: ghcr.io/org/, stemcell: {os: SLE, version: 27.8}}]
instance_groups:
- name: one
  jobs: [{name: nats, release: nats, properties: {b: {two: 2, one: {k: 1, j: [{s: 1, r: {u: 1, t: 2}}]}}, a: {q: 1, p: 2}, quarks: {bpm: {processes: []}}}}]
- name: two
  jobs: [{name: nats, release: nats, properties: {quarks: {bpm: {processes: []}}}}]
`
	var sent string
	r := Resolver{Job: jobs(map[string]string{"a.erb": "<% 1 %>"}, map[string]string{"nats": spec}), Ruby: func(_ context.Context, _, input []byte) ([]byte, error) {
		sent = string(input)
		return []byte(strings.Repeat(`{"text":"eA=="}`+"\n", 2)), nil
	}}
	m, found := manifest.Parse([]byte(text))
	if err := found.Err(); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Resolve(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`{"z":{"size":1,"map":{"x":2,"y":1}},"b":{"one":{"j":[{"s":1,"r":{"u":1,"t":2}}],"k":1},"two":2},"a":{"p":2,"q":1}}`, `{"z":{"size":1,"map":{"x":2,"y":1}},"b":null,"a":{"c":2,"d":1}}`} {
		if !strings.Contains(sent, want) {
			t.Errorf("got %s; want %s", sent, want)
		}
	}
}

// TestOrderOfLinks has templates find what a link holds in the order of the provider's spec,
// and what is in it, other than properties, in that of the manifest or of the default; of a manual link in that of the
// manifest. The order of a shared link is stored with it.
func TestOrderOfLinks(t *testing.T) {
	specs := map[string]string{
		"nats": "provides: [{name: nats, type: nats, properties: [z.map, b, a]}]\n" +
			"properties:\n  a: {default: {d: 1, c: 2}}\n  b: {}\n  z.map: {default: {y: 1, x: 2}}\n",
		"app": "templates: {a.erb: a}\nconsumes: [{name: nats, type: nats}]\n",
	}
	const text = `
name: d
releases: [{name: nats, version: "26", url: ghcr.io/org/, stemcell: {os: SLE, version: 27.8}}]
instance_groups:
- name: one
  jobs: [{name: nats, release: nats, properties: {b: {two: 2, one: {k: 1, j: 2}}, quarks: {bpm: {processes: []}}}}]
- name: two
  jobs: [{name: app, release: nats, properties: {quarks: {bpm: {processes: []}}}}]
- name: three
  jobs: [{name: app, release: nats, consumes: {nats: {instances: [{address: a}], properties: {z: {q: 1, p: 2}, c: 3}}}, properties: {quarks: {bpm: {processes: []}}}}]
- name: four
  jobs: [{name: app, release: nats, consumes: {nats: {deployment: other}}, properties: {quarks: {bpm: {processes: []}}}}]
`
	stored, err := json.Marshal([]link.Provider{{Name: "nats", Alias: "nats", Type: "nats", Shared: true, Link: link.Link{
		Properties: map[string]any{"b": 1, "a": 2}, Order: &tree.Order{Keys: []string{"b", "a"}}}}})
	if err != nil {
		t.Fatal(err)
	}
	var sent string
	r := Resolver{
		Job: jobs(map[string]string{"a.erb": "<% 1 %>"}, specs),
		Ruby: func(_ context.Context, _, input []byte) ([]byte, error) {
			sent = string(input)
			return []byte(strings.Repeat(`{"text":"eA=="}`+"\n", 3)), nil
		},
		Shared: func(string) (all []link.Provider, exists bool) { return all, json.Unmarshal(stored, &all) == nil },
	}
	m, found := manifest.Parse([]byte(text))
	if err := found.Err(); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Resolve(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"properties":{"z":{"map":{"y":1,"x":2}},"b":{"two":2,"one":{"k":1,"j":2}},"a":{"d":1,"c":2}}`,
		`"properties":{"z":{"q":1,"p":2},"c":3}`, `"properties":{"b":1,"a":2}`} {
		if !strings.Contains(sent, want) {
			t.Errorf("got %s; want %s", sent, want)
		}
	}
}

// TestMonitFile makes the processes of a job be those of its monit file if neither its release nor the manifest says anything for BPM.
func TestMonitFile(t *testing.T) {
	const file = "check process clock with pidfile /clock.pid\n  start program \"/clock <%= spec.index %>\"\n"
	for _, test := range []struct{ name, monit, spec, more, want string }{
		{"alone", file, "{}", "", "/clock 0, /clock 1"},
		{"none", "# nothing to monitor\n", "{}", "", ","},
		{"with another", file, "templates: {b: second.monit}", "", "/second /clock 0, /second /clock 1"},
		{"for bpm", file, "templates: {a: config/bpm.yml}", "", "none, none"},
		{"with processes of the manifest", file, "{}", "properties: {quarks: {bpm: {processes: [{name: x, executable: /x}]}}}", "none, none"},
		{"with no process by the manifest", file, "{}", "properties: {quarks: {bpm: {processes: []}}}", ","},
		{"of an errand", file, "{}", "}], lifecycle: errand, x: [{", "its monit file has processes, which errands do not run"},
		{"none of an errand", "", "{}", "}], lifecycle: errand, x: [{", ","},
		{"wrong", "\n" + file + "reload", "{}", "", `instance group "g", job "j": monit, line 4: cannot read "reload" here`},
		{"twice", file, "templates: {c: more.monit}", "", `process "clock" is in several monit files`},
	} {
		t.Run(test.name, func(t *testing.T) {
			read := jobs(map[string]string{"a": "processes: [{name: a, executable: /a}]", "b": "check process second with pidfile /b start program \"/second\"", "c": "check process clock pidfile /c"}, map[string]string{"j": test.spec})
			r := Resolver{Job: func(ctx context.Context, of manifest.Image, name string) (release.Job, error) {
				j, err := read(ctx, of, name)
				j.Monit = []byte(test.monit)
				return j, err
			}}
			d, err := r.Resolve(t.Context(), parse(t, "name: d\nreleases: [{name: r, version: '1'}]\nstemcells: [{alias: s, os: o, version: '1'}]\n"+
				"instance_groups: [{name: g, instances: 2, stemcell: s, jobs: [{name: j, release: r, "+test.more+"}]}]"))
			if err != nil {
				if !strings.Contains(err.Error(), test.want) {
					t.Errorf("got %v; want %s", err, test.want)
				}
				return
			}
			var got []string
			for _, i := range d.Groups[0].Instances {
				var programs []string
				for _, p := range i.Jobs[0].Processes {
					if p.Monit == nil {
						programs = append(programs, "none")
					}
					for _, c := range p.Monit {
						programs = append(programs, strings.Join(c.Start.Args, " "))
					}
				}
				got = append(got, strings.Join(programs, " "))
			}
			if text := strings.TrimSpace(strings.Join(got, ", ")); text != test.want {
				t.Errorf("got %q; want %q", text, test.want)
			}
		})
	}
}

// TestMonitFileForBPM takes conditions alone from the monit file of a job for BPM, and tells what has no effect.
func TestMonitFileForBPM(t *testing.T) {
	const file = "check process a\n  with pidfile /var/vcap/sys/run/bpm/j/a.pid\n  if totalmem > 1<%= spec.index %>0 Mb then restart\n  if totalmem > 9 Mb then exec \"/bin/x\"\n  if cpu > 90% then alert\n"
	for monit, want := range map[string]string{
		file:                          `[{if totalmem > 110 Mb then restart 115343360 0   0s 1 {[]   0s}}] [g/j, line 5: if cpu > 90% then alert g/j, if totalmem > 9 Mb then exec "/bin/x"]`,
		file + "set daemon 5":         `[] [g/j, line 6: cannot read "set" here: known are check, with pidfile, start, stop, depends, group, mode, if and, without effect, every and alert]`,
		"<%= raise 'not rendered' %>": `[] []`,
		"check process a with pidfile /a.pid\nif failed url '/?t=<%= p('token') %>' then alert": `[] [g/j, line 2: if failed url "/?t=<redacted>" then alert]`,
	} {
		read := jobs(map[string]string{"a": "processes: [{name: a, executable: /a}]"}, map[string]string{"j": "templates: {a: config/bpm.yml}\nproperties: {token: {default: hunter2}}"})
		r := Resolver{Job: func(ctx context.Context, of manifest.Image, name string) (release.Job, error) {
			j, err := read(ctx, of, name)
			j.Monit = []byte(monit)
			return j, err
		}}
		d, err := r.Resolve(t.Context(), parse(t, "name: d\nreleases: [{name: r, version: '1'}]\nstemcells: [{alias: s, os: o, version: '1'}]\n"+
			"instance_groups: [{name: g, instances: 2, stemcell: s, jobs: [{name: j, release: r}]}]"))
		if err != nil {
			t.Fatal(err)
		}
		one := d.Groups[0].Instances[1].Jobs[0]
		if got := fmt.Sprint(one.Processes[0].Conditions, d.Ignored); got != want {
			t.Errorf("got %s; want %s", got, want)
		}
		if len(one.Files) != 1 {
			t.Errorf("got %d files; want that of bpm alone", len(one.Files))
		}
	}
}
