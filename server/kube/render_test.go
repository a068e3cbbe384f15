package kube

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cupola/server/bosh"
	"cupola/server/bosh/interpolate"
	"cupola/server/bosh/manifest"
	"cupola/server/bosh/release"
	"cupola/server/bosh/tree"
)

var update = flag.Bool("update", false, "write the golden files")

// releases are the jobs of all releases: a spec, and templates by their source.
var releases = map[string]struct {
	spec  string
	files map[string]string
}{
	"nats": {`
templates: {bpm.yml.erb: config/bpm.yml, nats.conf.erb: config/nats.conf, pre-start: bin/pre-start, drain: bin/drain, post-start: bin/post-start}
properties: {nats.user: , nats.password: , nats.domain: }
provides: [{name: nats, type: nats, properties: [nats.password]}]`, map[string]string{
		"bpm.yml.erb": `processes:
- name: nats
  executable: /var/vcap/packages/nats/bin/nats-server
  args: [-c, /var/vcap/jobs/nats/config/nats.conf, "$(HOME)"]
  env: {GREETING: "$(cat /etc/motd)"}
  limits: {memory: 256M, open_files: 100000, processes: 50}
  persistent_disk: true
  hooks: {pre_start: /var/vcap/jobs/nats/bin/check}
  shutdown_signal: INT
  additional_volumes: [{path: /var/vcap/data/shared, writable: true}, {path: /var/vcap/store/seen}]
  unsafe: {unrestricted_volumes: [{path: /etc/extra}, {path: /dev/sd*}]}
`,
		"nats.conf.erb": "user: <%= p('nats.user') %>\npassword: <%= p('nats.password') %>\nname: <%= spec.address %>\nip: <%= spec.ip %>\n",
		"pre-start":     "#!/bin/sh\n", "drain": "#!/bin/sh\necho 0\n", "post-start": "#!/bin/sh\n",
	}},
	"web": {"templates: {bpm.yml.erb: config/bpm.yml}", map[string]string{
		"bpm.yml.erb": "processes:\n- {name: web, executable: /web, capabilities: [NET_BIND_SERVICE], requests: {memory: 64Mi}}\n",
	}},
	"smoke": {`
templates: {run.erb: bin/run}
consumes: [{name: nats, type: nats}]`, map[string]string{"run.erb": "curl <%= link('nats').instances[1].address %>\n"}},
}

func job(_ context.Context, _ manifest.Image, name string) (release.Job, error) {
	of := releases[name]
	j, err := release.ParseSpec(name, []byte(of.spec))
	for i := range j.Templates {
		t := &j.Templates[i]
		t.Content, t.Mode = []byte(of.files[t.Source]), fs.FileMode(0o640)
		if strings.HasPrefix(t.Destination, "bin/") {
			t.Mode = 0o750
		}
	}
	return j, err
}

// resolved is the deployment of a manifest, with values for its variables.
func resolved(t testing.TB, text string) Input {
	t.Helper()
	source := bosh.Source{Manifest: bosh.File{Name: "nats.yml", Text: []byte(text)}, Values: interpolate.Values{"nats_password": "secret", "system_domain": "example.com"}}
	root, _, err := source.Tree()
	if err != nil {
		t.Fatal(err)
	}
	desired, err := tree.Write(root)
	if err != nil {
		t.Fatal(err)
	}
	m, found := manifest.Decode(root)
	if err := found.Err(); err != nil {
		t.Fatal(err)
	}
	d, err := bosh.Resolver{Job: job}.Resolve(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	return Input{Deployment: d, WithOps: []byte(text), Desired: desired, Variables: []Variable{
		{Name: "nats_password", Fields: map[string]string{"password": "secret"}},
		{Name: "system_domain", Implicit: true, Fields: map[string]string{"value": "example.com"}},
	}}
}

func example(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile("testdata/nats.yml")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func render(t testing.TB, text string, o Options) ([]Object, []Warning) {
	t.Helper()
	all, warnings, err := Render(resolved(t, text), o)
	if err != nil {
		t.Fatal(err)
	}
	return all, warnings
}

// golden compares with a file, or writes it.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (go test -update writes it anew):\n%s", name, diff)
	}
}

func TestGolden(t *testing.T) {
	for _, test := range []struct {
		name string
		Options
	}{
		{"nats.golden.yml", Options{}},
		{"nats-secrets.golden.yml", Options{Namespace: "nats", WithSecrets: true, Phase: Canary, Ulimits: true, Zones: map[string]string{"z2": "eu-2"},
			Known: map[string]Version{"nats-deployment.jobs.nats": {N: 4, Digest: "other"}}}},
	} {
		all, warnings := render(t, example(t), test.Options)
		var out bytes.Buffer
		out.WriteString(Header{"v1", "nats.yml", "0123", test.name, test.WithSecrets}.String())
		for _, w := range warnings {
			fmt.Fprintf(&out, "# warning: %s\n", w)
		}
		if err := Write(&out, all); err != nil {
			t.Fatal(err)
		}
		golden(t, test.name, out.Bytes())
		again, _ := render(t, example(t), test.Options)
		if diff := cmp.Diff(all, again); diff != "" {
			t.Errorf("another time it is other:\n%s", diff)
		}
		read, err := Read(&out)
		if err != nil || len(read) != len(all) {
			t.Errorf("read %d of %d objects back: %v", len(read), len(all), err)
		}
	}
}

// TestNames holds the names to those that cf-operator's documents promise.
func TestNames(t *testing.T) {
	all, _ := render(t, example(t), Options{})
	var names []string
	for _, o := range all {
		names = append(names, o.Kind()+" "+o.Name())
	}
	for _, want := range []string{
		"Secret nats-deployment.bpm.nats-v1", "Secret nats-deployment.ig-resolved.nats-v1", "Secret nats-deployment.var-nats-password",
		"Secret nats-deployment.with-ops", "Secret nats-deployment.desired-manifest-v1", "Secret nats-deployment.var-implicit-system-domain",
		"Secret nats-deployment.jobs.nats-v1", "Secret nats-deployment.registry-nats",
		"StatefulSet nats-deployment-nats-v1", "StatefulSet nats-deployment-web-z0-v1", "StatefulSet nats-deployment-web-z1-v1",
		"Service nats-deployment-nats", "Service nats-deployment-nats-0", "Service nats-deployment-nats-1", "Service nats-deployment-web-2",
		"CronJob nats-deployment-smoke-tests", "PodDisruptionBudget nats-deployment-nats",
	} {
		if !slices.Contains(names, want) {
			t.Errorf("there is no %s", want)
		}
	}
	n := manifest.Names{Deployment: "nats-deployment"}
	for got, want := range map[string]string{
		n.Pod("nats-deployment-nats-v1", 1): "nats-deployment-nats-v1-1", n.BPMConfigs(): "bpm-configs-nats-deployment",
		n.DataGathering(): "data-gathering-nats-deployment", n.VarInterpolation(): "var-interpolation-nats-deployment",
	} {
		if got != want {
			t.Errorf("got %s; want %s", got, want)
		}
	}
}

// TestAZsWithoutInstances renders their StatefulSets, too: applied, they end the pods that
// a larger group had there.
func TestAZsWithoutInstances(t *testing.T) {
	text := strings.Replace(example(t), "name: nats\n  instances: 2\n", "name: nats\n  instances: 2\n  azs: [z1, z2, z3]\n", 1)
	if text == example(t) {
		t.Fatal("the example has no AZs now")
	}
	all, _ := render(t, text, Options{})
	replicas, services := map[string]any{}, 0
	for _, o := range all {
		if name, ok := strings.CutPrefix(o.Name(), "nats-deployment-nats-"); ok && o.Kind() == "StatefulSet" {
			replicas[name] = child(o, "spec")["replicas"]
		} else if ok && o.Kind() == "Service" {
			services++
		}
	}
	if diff := cmp.Diff(map[string]any{"z0-v1": 1, "z1-v1": 1, "z2-v1": 0}, replicas); diff != "" || services != 2 {
		t.Errorf("got %d services of instances; want 2, and replicas (-want +got):\n%s", services, diff)
	}
}

func TestVersions(t *testing.T) {
	all, _ := render(t, example(t), Options{})
	known := KnownOf(all)
	if len(known) != 13 {
		t.Errorf("got %d Secrets with versions: %v", len(known), known)
	}
	again, _ := render(t, example(t), Options{Known: known, WithSecrets: true})
	if diff := cmp.Diff(known, KnownOf(again)); diff != "" {
		t.Errorf("nothing has changed, but:\n%s", diff)
	}
	changed, _ := render(t, strings.Replace(example(t), "user: me", "user: you", 1), Options{Known: known})
	var next []string
	for base, v := range KnownOf(changed) {
		if v.N == 2 {
			next = append(next, base)
		}
	}
	slices.Sort(next)
	want := []string{"nats-deployment.desired-manifest", "nats-deployment.ig-resolved.nats", "nats-deployment.jobs.nats"}
	if diff := cmp.Diff(want, next); diff != "" {
		t.Error(diff)
	}
	for _, o := range changed {
		if o.Name() == "nats-deployment-nats-v1" && !strings.Contains(fmt.Sprint(o), "jobs.nats-v2") {
			t.Error("pods keep the files that they had")
		}
	}
}

// TestUnsafe holds what a process asks of its node to fields of the pod, and each to a warning.
func TestUnsafe(t *testing.T) {
	const was = "    properties: {quarks: {ports: [{name: http, protocol: TCP, internal: 80}]}}\n"
	const is = `    properties: {quarks: {bpm: {processes: [{name: web, capabilities: [SYS_NICE], unsafe: {privileged: true, host_pid_namespace: true,
      unrestricted_volumes: [{path: /srv/a}, {path: /srv/b, writable: true}, {path: /var/vcap/data/c}]}}]}}}
`
	text := example(t)
	if !strings.Contains(text, was) {
		t.Fatalf("the example has no %q", was)
	}
	text = strings.Replace(text, was, is, 1)
	for _, hostPaths := range []bool{false, true} {
		all, warnings := render(t, text, Options{HostPaths: hostPaths})
		at := slices.IndexFunc(all, func(o Object) bool { return o.Name() == "nats-deployment-web-z0-v1" && o.Kind() == "StatefulSet" })
		spec := Object(all[at].Map("spec", "template", "spec"))
		container := spec.Items("containers")[0]
		got := fmt.Sprint(spec["hostPID"], container["securityContext"], spec.Items("volumes")[4:], container.Items("volumeMounts")[4:])
		want := "true map[privileged:true runAsGroup:0 runAsUser:0] [map[emptyDir:map[] name:volume-b068a6ce] map[emptyDir:map[] name:volume-6294551d]]"
		mend := "is a directory of the pod's own, empty at first; --host-paths mounts the node's"
		if hostPaths {
			want = "true map[privileged:true runAsGroup:0 runAsUser:0] [map[hostPath:map[path:/srv/a] name:volume-b068a6ce] map[hostPath:map[path:/srv/b] name:volume-6294551d]]"
			mend = "is the node's own: the cluster's policy must allow hostPath volumes"
		}
		want += " [map[mountPath:/srv/a name:volume-b068a6ce readOnly:true] map[mountPath:/srv/b name:volume-6294551d] map[mountPath:/var/vcap/data/c name:data readOnly:true subPath:c]]"
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		for _, what := range []string{`process "web": unsafe.privileged makes the container root's and privileged: the cluster's policy must allow that`,
			`process "web": unsafe.host_pid_namespace holds for all containers of the pod: the cluster's policy must allow that`, "/srv/a " + mend, "/srv/b " + mend} {
			if w := (Warning{"/instance_groups/name=web/jobs/name=web", what}); !slices.Contains(warnings, w) {
				t.Errorf("got the warnings %v; want %v", warnings, w)
			}
		}
	}
}

func TestRefuses(t *testing.T) {
	for _, test := range []struct {
		old, now, want string
		Options
	}{
		{old: "persistent_disk: 1024", now: "persistent_disk: 1024", Options: Options{StsVersion: 2}, want: `instance group "nats": StatefulSets of another version have separate volumes: the persistent disk would be left behind`},
		{old: "internal: 4223", now: "internal: 4222", want: `instance group "nats": jobs "nats" and "nats" both listen at 4222/TCP`},
		{old: "url: registry.example.com/org/", now: "url: file:///images", want: `instance group "nats": job "nats": its image is /images on this machine, which no cluster can pull; give its release a registry's url`},
		{old: "name: web\n  instances", now: "name: nats-0\n  instances", want: `two objects would both be the Service nats-deployment-nats-0: instance group nats and instance group nats-0`},
	} {
		text := example(t)
		if !strings.Contains(text, test.old) {
			t.Fatalf("the example has no %q", test.old)
		}
		_, _, err := Render(resolved(t, strings.Replace(text, test.old, test.now, 1)), test.Options)
		if err == nil || err.Error() != test.want {
			t.Errorf("%s: got %v; want %s", test.now, err, test.want)
		}
	}
}

func TestLongNames(t *testing.T) {
	long := strings.Repeat("long-", 20)
	all, _ := render(t, strings.Replace(example(t), "name: nats-deployment", "name: "+long+"x", 1), Options{})
	limits := map[string]int{"StatefulSet": 52, "CronJob": 52, "Secret": 253}
	for _, o := range all {
		limit := limits[o.Kind()]
		if limit == 0 {
			limit = 63
		}
		if n := len(o.Name()); n > limit {
			t.Errorf("%s %s has %d characters", o.Kind(), o.Name(), n)
		}
	}
}
