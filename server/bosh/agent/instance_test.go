package agent

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cupola/runtime/contract"
	"cupola/runtime/lrp"
	"cupola/server/bosh/bpm"
)

// instance is one with a job of one process.
func instance(p Process) Instance {
	p.Name, p.Executable = "nats", "/bin/nats"
	return Instance{GUID: "g", Digest: "d", Spec: Spec{Deployment: "nats", Group: "nats", Jobs: []Job{{Name: "nats", Processes: []Process{p}}}}}
}

func TestShutdownAsBPM(t *testing.T) {
	for signal, want := range map[string]string{"": "TERM", "TERM": "TERM", "INT": "INT"} {
		got := instance(Process{Process: bpm.Process{ShutdownSignal: signal}}).Desired()[0].Action.Run.Stop
		if diff := cmp.Diff([]lrp.Signal{{Name: want, Wait: 15 * time.Second}, {Name: "QUIT", Wait: 2 * time.Second}}, got); diff != "" {
			t.Errorf("%q: %s", signal, diff)
		}
	}
}

func TestProbesAsKubernetes(t *testing.T) {
	p := Process{Process: bpm.Process{Env: map[string]string{"A": "b"}, Workdir: "/var"}}
	p.Liveness = &Probe{Port: 80, Path: "/live", InitialDelaySecs: 5}
	p.Active = &Probe{Port: 81}
	p.Readiness = &Probe{Exec: []string{"/bin/look", "twice"}, TimeoutSeconds: 2, PeriodSeconds: 3, Failures: 4, Successes: 5}
	got := instance(p).Desired()[0]
	want := lrp.CheckDefinition{
		Liveness: []lrp.Check{{Type: lrp.CheckHTTP, Port: 80, Path: "/live", MaxStatus: 399, InvocationTimeout: time.Second, Interval: 10 * time.Second, InitialDelay: 5 * time.Second, Failures: 3, Successes: 1}},
		Readiness: []lrp.Check{{Type: lrp.CheckExec, Run: &lrp.Run{Path: "/bin/look", Args: []string{"twice"}, Dir: "/var", Env: []lrp.EnvVar{{Name: "A", Value: "b"}}, User: user},
			InvocationTimeout: 2 * time.Second, Interval: 3 * time.Second, Failures: 4, Successes: 5}},
		Active: []lrp.Check{{Type: lrp.CheckPort, Port: 81, InvocationTimeout: time.Second, Interval: 30 * time.Second, Failures: 1, Successes: 1}},
	}
	if diff := cmp.Diff(want, got.Checks); diff != "" {
		t.Error(diff)
	}
	if !got.Monitor.IsZero() || got.StartTimeout != 35*time.Second {
		t.Errorf("got a monitor %+v and %s; want none, and 35 s to pass the first", got.Monitor, got.StartTimeout)
	}
}

func TestConditionsAsMonit(t *testing.T) {
	p := Process{Conditions: []contract.MonitCondition{{Text: "if", Memory: 1 << 20, Looks: 3}}, Liveness: &Probe{Port: 80}}
	got := instance(p).Desired()[0]
	run := lrp.Run{Path: contract.Helper, Args: []string{"monit", "test", `{"Text":"if","Memory":1048576,"Looks":3}`}, Dir: "/", User: "root", Quiet: true}
	want := lrp.Check{Type: lrp.CheckExec, Run: &run, InvocationTimeout: 5 * time.Second, Interval: 10 * time.Second, Failures: 3, Successes: 1}
	if diff := cmp.Diff(want, got.Checks.Liveness[1]); diff != "" || got.StartTimeout != time.Minute {
		t.Errorf("got %s to start, %s", got.StartTimeout, diff)
	}
}

func TestConditionBeforePostStart(t *testing.T) {
	i := instance(Process{})
	post := Call{Job: "nats", Script: PostStart}
	run, err := i.Run(post)
	if err != nil || run.Action.Run == nil {
		t.Fatalf("got %+v, %v; want the script alone", run.Action, err)
	}
	script := *run.Action.Run
	i.Jobs[0].Condition = []string{"/bin/look", "twice"}
	if run, err = i.Run(post); err != nil {
		t.Fatal(err)
	}
	want := lrp.Serial(lrp.Within(15*time.Minute, lrp.Run{
		Path: "/bin/sh", Args: []string{"-c", `until "$0" "$@"; do sleep 3; done`, "/bin/look", "twice"}, Dir: "/", User: "root", Quiet: true, Env: script.Env,
	}.Action()), script.Action())
	if diff := cmp.Diff(want, run.Action); diff != "" {
		t.Error(diff)
	}
	if run, _ = i.Run(Call{Job: "nats", Script: PreStart}); run.Action.Run == nil {
		t.Error("pre-start waits for the condition, too")
	}
}

// TestVolumesAsBPM makes a process see what bpm would show it, each as bpm mounts
// it, and nothing else.
func TestVolumesAsBPM(t *testing.T) {
	p := Process{Process: bpm.Process{PersistentDisk: true, EphemeralDisk: true, AdditionalVolumes: []bpm.Volume{
		{Path: "/var/vcap/data/shared", Writable: true, AllowExecutions: true}, {Path: "/var/vcap/sys/run/nats", Writable: true}, {Path: "/var/vcap/store/other", MountOnly: true},
		{Path: "/var/vcap/jobs/other"}, {Path: "/var/vcap/data/shared"}, {Path: "/var/vcap/data"},
	}}}
	p.Unsafe.UnrestrictedVolumes = []bpm.Volume{{Path: "/var/vcap/data/nats/below"}, {Path: "/var/vcap/data/x*"}, {Path: "/var/vcap/data/["}, {Path: "/etc"}, {Path: "/var/vcap/sys/log"}, {Path: "/var/vcap/data/nats-2"}}
	i := instance(p)
	i.Store = "store"
	v := func(name, at, dir, owner string, readOnly, noExec bool) lrp.Volume {
		return lrp.Volume{Name: name, Path: "/var/vcap/" + at, Dir: dir, Owner: owner, ReadOnly: readOnly, NoExec: noExec}
	}
	pattern := optional(v("bosh-data-g", "data/x*", "x*", "", true, true))
	pattern.Pattern = true
	want := []lrp.Volume{
		v("bosh-data-g", "data", "", "", true, true),
		v("bosh-data-g", "data/nats", "nats", user, false, true),
		optional(v("bosh-data-g", "data/nats-2", "nats-2", "", true, true)),
		v("bosh-data-g", "data/nats/tmp", "nats/tmp", user, false, true),
		v("bosh-data-g", "data/shared", "shared", user, false, false),
		pattern,
		v("store", "store/nats", "nats", user, false, true),
		v("store", "store/other", "other", "", true, true),
		optional(v("bosh-sys-g", "sys/log", "log", "", true, true)),
		v("bosh-sys-g", "sys/log/nats", "log/nats", user, false, true),
		v("bosh-sys-g", "sys/run/nats", "run/nats", user, false, true),
	}
	got := i.Desired()[0]
	if diff := cmp.Diff(want, got.Volumes); diff != "" {
		t.Error(diff)
	}
	if !got.Setup.IsZero() {
		t.Errorf("got %+v before the process; want nothing", got.Setup)
	}
	run, err := i.Run(Call{Job: "nats", Script: PreStart})
	if want := []lrp.Volume{v("bosh-data-g", "data", "", "", false, false), v("store", "store", "", "", false, false), v("bosh-sys-g", "sys", "", "", false, false), v("bosh-sys-g", "sys/run/bpm", "run/bpm/nats", "root", false, false)}; err != nil || !cmp.Equal(want, run.Volumes) {
		t.Errorf("got %+v, %v; want all disks whole for scripts, and pidfiles of the job alone", run.Volumes, err)
	}
}

// TestFilesOfOtherJobs shows a process those files of other jobs that its volumes name.
func TestFilesOfOtherJobs(t *testing.T) {
	p := Process{Process: bpm.Process{AdditionalVolumes: []bpm.Volume{{Path: "/var/vcap/jobs/web/bin"}, {Path: "/var/vcap/jobs/*"}}}}
	p.Unsafe.UnrestrictedVolumes = []bpm.Volume{{Path: "/var/vcap/jobs/*/config/metrics.yml"}, {Path: "/var/vcap/jobs/[d]b/conf*"}, {Path: "["}}
	i := instance(p)
	file := func(at string) lrp.File { return lrp.File{Path: at, Content: []byte(at)} }
	i.Jobs = append(i.Jobs, Job{Name: "db", Files: []lrp.File{file("config/db.conf"), file("bin/run")}}, Job{Name: "quiet", Files: []lrp.File{file("a")}},
		Job{Name: "web", Files: []lrp.File{file("config/metrics.yml"), file("config/web.yml"), file("bin/run")}})
	want := []lrp.Tree{{Path: "/var/vcap/jobs/db", Files: []lrp.File{file("config/db.conf")}}, {Path: "/var/vcap/jobs/web", Files: []lrp.File{file("config/metrics.yml"), file("bin/run")}}}
	if diff := cmp.Diff(want, i.Desired()[0].Trees[1:]); diff != "" {
		t.Error(diff)
	}
}

// TestScriptsSignalProcesses checks which scripts find processes: those that run beside them.
func TestScriptsSignalProcesses(t *testing.T) {
	i := instance(Process{})
	for script, with := range map[Script]bool{PreStart: false, PostStart: true, PostDeploy: true, PreStop: true, Drain: true, PostStop: false, Errand: true} {
		run, err := i.Run(Call{Job: "nats", Script: script})
		if err != nil {
			t.Fatal(err)
		}
		var peers []lrp.Peer
		options := "{}"
		if with {
			peers = []lrp.Peer{{Name: "nats", Key: lrp.Key{ProcessGUID: "nats.nats.0.nats.nats.d"}}}
			options = `{"Peers":[{"Name":"nats","Executable":"/bin/nats"}],"Pidfiles":"/var/vcap/sys/run/bpm/nats"}`
		}
		got := run.Action.Run
		if diff := cmp.Diff(peers, got.Peers); diff != "" || got.Path != contract.Helper || !slices.Equal(got.Args[:2], []string{"script", options}) {
			t.Errorf("%s: got %q %s", script, got.Args, diff)
		}
	}
}

func optional(v lrp.Volume) lrp.Volume {
	v.Optional = true
	return v
}

func TestADiskThatNobodyAsksForIsEverybodys(t *testing.T) {
	i := instance(Process{})
	i.Store = "store"
	got := i.Desired()[0]
	if !slices.Contains(got.Volumes, lrp.Volume{Name: "store", Path: "/var/vcap/store"}) || !slices.Contains(got.Setup.Run.Args, "/var/vcap/store/nats") {
		t.Errorf("got %+v, %+v; want the disk, with a directory of the job's", got.Volumes, got.Setup)
	}
}

func TestLimitsAsBPM(t *testing.T) {
	core := uint64(1 << 20)
	i := instance(Process{Process: bpm.Process{Limits: bpm.Limits{OpenFiles: 10, Processes: 20, CoreFileSize: &core}}, MemoryMB: 30, CPUs: 1.5})
	got := i.Desired()[0]
	if run := got.Action.Run; run.Nofile != 10 || run.Core != core || got.MaxPids != 20 || got.MemoryMB != 30 || got.CPUs != 1.5 || got.CPUWeight != 100 {
		t.Errorf("got %+v, %+v", got, run)
	}
	if run := instance(Process{}).Desired()[0]; run.CPUs != 0 || run.Action.Run.Core != 0 {
		t.Errorf("got %v processors and core files of %d; want no bound, and none", run.CPUs, run.Action.Run.Core)
	}
}

func TestProbesOfServers(t *testing.T) {
	headers := []lrp.Header{{Name: "A", Value: "b"}}
	p := Process{Liveness: &Probe{Port: 443, Path: "/", TLS: true, Host: "me", Headers: headers}, Readiness: &Probe{Port: 9, GRPC: true, Service: "db"}}
	got := instance(p).Desired()[0].Checks
	if c := got.Liveness[0]; c.Type != lrp.CheckHTTP || !c.TLS || c.Host != "me" || !slices.Equal(c.Headers, headers) {
		t.Errorf("got %+v", c)
	}
	if c := got.Readiness[0]; c.Type != lrp.CheckGRPC || c.Port != 9 || c.Service != "db" {
		t.Errorf("got %+v", c)
	}
}

func TestHookAsBPM(t *testing.T) {
	p := Process{Process: bpm.Process{Env: map[string]string{"A": "b"}, Workdir: "/var", Capabilities: []string{"NET_RAW"}}}
	p.Hooks.PreStart = "/bin/prepare"
	i := instance(p)
	i.Jobs[0].Packages = []Package{{Name: "nats", Digest: "d"}}
	got := i.Desired()[0]
	want := lrp.Within(bpm.PreStartLimit, lrp.Run{Path: "/bin/prepare", Dir: "/", Env: []lrp.EnvVar{{Name: "A", Value: "b"}}, User: "root"}.Action())
	if diff := cmp.Diff(want, got.Setup); diff != "" {
		t.Error(diff)
	}
	if !got.CachedDependencies[0].Writable {
		t.Error("the hook cannot write to the packages, as it does on a machine of BOSH's")
	}
}

// TestOwnName makes a container find its instance's name from the start: DNS has only
// instances that are ready.
func TestOwnName(t *testing.T) {
	got := instance(Process{}).Desired()[0].Hostnames
	if diff := cmp.Diff([]string{"nats-nats-0", "nats-nats-0.default.svc.cluster.local"}, got); diff != "" {
		t.Error(diff)
	}
}

// TestUpgradeChangesNoSpec has what an earlier version stored stay the same text, and so the same digest: another one would have
// each instance replaced by the first deploy after an upgrade.
func TestUpgradeChangesNoSpec(t *testing.T) {
	const stored = `{"Deployment":"d","Group":"g","Index":0,"Jobs":[{"Name":"web","Image":"preloaded:host","Packages":[{"Name":"server","Digest":"a"}],` +
		`"Files":[{"Path":"bin/run","Content":"eA==","Program":true}],"Processes":[]}],"DataMB":0}`
	spec, err := Decode([]byte(stored))
	if err != nil {
		t.Fatal(err)
	}
	if text, _, err := spec.Encode(); err != nil || string(text) != stored {
		t.Errorf("got %s, %v", text, err)
	}
	run, err := Instance{Spec: spec}.Run(Call{Job: "web", Script: Errand})
	want := []lrp.Tree{{Path: "/var/vcap/jobs/web", Files: []lrp.File{{Path: "bin/run", Content: []byte("x"), Program: true}, {Path: "packages", Link: "/var/vcap/packages"}}}}
	if diff := cmp.Diff(want, run.Trees); err != nil || diff != "" {
		t.Error(err, diff)
	}
}

// TestOtherJobs shows scripts and monit the directories of all jobs of the instance, as a machine of BOSH's does, and a process of bpm
// its own job's alone.
func TestOtherJobs(t *testing.T) {
	i := instance(Process{})
	i.Jobs = append(i.Jobs, Job{Name: "clock", Processes: []Process{{Monit: []contract.MonitCheck{{Name: "clock"}}}}}, Job{Name: "dns", Files: []lrp.File{{Path: "aliases"}}})
	var seen []string
	look := func(r lrp.RunInfo) {
		for _, tree := range r.Trees {
			seen = append(seen, tree.Path)
		}
		for _, v := range r.Volumes {
			if strings.HasPrefix(v.Path, "/var/vcap/jobs/") {
				seen = append(seen, v.Path+" on a disk")
			}
		}
	}
	script, err := i.Run(Call{Job: "nats", Script: PreStart})
	if err != nil {
		t.Fatal(err)
	}
	look(script)
	for _, d := range i.Desired() { // nats, clock
		look(d.RunInfo)
	}
	want := []string{
		"/var/vcap/jobs/nats", "/var/vcap/jobs/dns", "/var/vcap/jobs/clock on a disk",
		"/var/vcap/jobs/nats",
		"/var/vcap/rendered/clock", "/var/vcap/jobs/nats", "/var/vcap/jobs/dns", "/var/vcap/jobs/clock on a disk",
	}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Error(diff)
	}
}

// TestMonitoredJob has all processes of a monit file in one container, which runs as root, sees the disks whole, has the job's
// directory on one of them, and is ready while all processes run. Its scripts see the same directory.
func TestMonitoredJob(t *testing.T) {
	i := instance(Process{Monit: []contract.MonitCheck{{Name: "nats", Pidfile: "/nats.pid"}}})
	got := i.Desired()[0]
	const checks = `[{"Name":"nats","Pidfile":"/nats.pid","Start":{"Timeout":0},"Stop":{"Timeout":0}}]`
	run := lrp.Run{Path: contract.Helper, Args: []string{"monit", "run", "/var/vcap/jobs/nats", checks}, Dir: "/", User: "root", Nofile: lrp.AllFiles, Stop: []lrp.Signal{{Name: "TERM", Wait: 5 * time.Minute}}}
	if diff := cmp.Diff(run.Action(), got.Action); diff != "" {
		t.Error(diff)
	}
	volumes := []lrp.Volume{{Name: "bosh-data-g", Path: "/var/vcap/data"}, {Name: "bosh-sys-g", Path: "/var/vcap/sys"}, {Name: "bosh-data-g", Path: "/var/vcap/jobs/nats", Dir: "jobs/nats", Owner: "root"}}
	script, err := i.Run(Call{Job: "nats", Script: PreStart})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []lrp.RunInfo{got.RunInfo, script} {
		if diff := cmp.Diff(volumes, r.Volumes); diff != "" || r.Trees[0].Path != "/var/vcap/rendered/nats" {
			t.Error(diff, r.Trees)
		}
		install := lrp.Run{Path: contract.Helper, Args: []string{"monit", "install", "/var/vcap/rendered/nats", "/var/vcap/jobs/nats", "vcap"}, Dir: "/", User: "root", Quiet: true}
		if diff := cmp.Diff(install.Action(), r.Setup.Serial.Actions[1]); diff != "" {
			t.Error(diff)
		}
	}
	exec := []string{"script", "{}", contract.Helper, "monit", "exec", "/var/vcap/jobs/nats", "/var/vcap/jobs/nats/bin/pre-start"}
	if run := script.Action.Run; run.Path != contract.Helper || !slices.Equal(run.Args, exec) {
		t.Errorf("got %s %q; want %q", run.Path, run.Args, exec)
	}
	if drain, err := i.Run(Call{Job: "nats", Script: Drain}); err != nil || !slices.Contains(drain.Action.Run.Args, "drain") || slices.Contains(drain.Action.Run.Args, "exec") {
		t.Errorf("got %+v, %v; want that what ends is not started", drain.Action, err)
	}
	if c := got.Checks.Readiness; len(c) != 1 || c[0].Type != lrp.CheckExec || !slices.Equal(c[0].Run.Args, []string{"monit", "summary", checks}) {
		t.Errorf("got %+v", c)
	}
}
