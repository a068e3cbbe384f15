package agent

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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
	p.Readiness = &Probe{Exec: []string{"/bin/look", "twice"}, TimeoutSeconds: 2, PeriodSeconds: 3, Failures: 4, Successes: 5}
	got := instance(p).Desired()[0]
	want := lrp.CheckDefinition{
		Liveness: []lrp.Check{{Type: lrp.CheckHTTP, Port: 80, Path: "/live", MaxStatus: 399, InvocationTimeout: time.Second, Interval: 10 * time.Second, InitialDelay: 5 * time.Second, Failures: 3, Successes: 1}},
		Readiness: []lrp.Check{{Type: lrp.CheckExec, Run: &lrp.Run{Path: "/bin/look", Args: []string{"twice"}, Dir: "/var", Env: []lrp.EnvVar{{Name: "A", Value: "b"}}, User: user},
			InvocationTimeout: 2 * time.Second, Interval: 3 * time.Second, Failures: 4, Successes: 5}},
	}
	if diff := cmp.Diff(want, got.Checks); diff != "" {
		t.Error(diff)
	}
	if !got.Monitor.IsZero() || got.StartTimeout != 35*time.Second {
		t.Errorf("got a monitor %+v and %s; want none, and 35 s to pass the first", got.Monitor, got.StartTimeout)
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
