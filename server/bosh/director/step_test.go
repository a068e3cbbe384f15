package director

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"cupola/runtime/lrp"
	"cupola/server/bosh/agent"
	"cupola/server/bosh/bpm"
	"cupola/server/bosh/manifest"
	"cupola/store/cf"
)

// fleet is a deployment whose rows a test keeps, and which does what Step says.
type fleet struct {
	t     rapid.TB
	now   time.Time
	task  cf.BOSHTask
	plan  taskPlan
	rows  []cf.BOSHInstance
	specs map[string]*agent.Spec
	calls []cf.BOSHCall
	// broken are processes that never run, by digest; bad are scripts that fail, by
	// "group/index script"; said are what drains write, one after the other.
	broken map[string]bool
	bad    map[string]bool
	said   []string
	log    []string
	most   map[string]int // chosen at once, by group
	guids  int
}

func newFleet(t rapid.TB, groups ...group) *fleet {
	f := &fleet{t: t, now: time.Unix(1e9, 0), specs: map[string]*agent.Spec{}, broken: map[string]bool{}, bad: map[string]bool{}, most: map[string]int{}}
	f.order(Deploy, groups...)
	return f
}

// order begins a task.
func (f *fleet) order(kind Kind, groups ...group) {
	f.guids++
	for n := range groups {
		g := &groups[n]
		g.MaxInFlight = max(g.MaxInFlight, 1)
		if g.UpdateWatch.High == 0 {
			g.UpdateWatch.High, g.CanaryWatch.High = time.Minute, time.Minute
		}
		if g.Lifecycle == "" {
			g.Lifecycle = manifest.Service
		}
	}
	f.plan = taskPlan{Groups: groups}
	text, err := f.plan.encode()
	if err != nil {
		f.t.Fatal(err)
	}
	f.task = cf.BOSHTask{Resource: cf.Resource{GUID: fmt.Sprint("task", f.guids)}, Kind: string(kind), State: cf.BOSHProcessing, Plan: text}
	f.log = nil
	clear(f.most)
}

// want has n instances of a group be of a version, with scripts.
func (f *fleet) want(group string, n int, version string, scripts ...agent.Script) {
	for i := range n {
		digest := fmt.Sprintf("%s/%d %s", group, i, version)
		f.specs[digest] = specWith(group, i, scripts)
		at := slices.IndexFunc(f.rows, func(r cf.BOSHInstance) bool { return r.Group == group && r.Index == i })
		if at < 0 {
			f.rows = append(f.rows, cf.BOSHInstance{Resource: cf.Resource{GUID: fmt.Sprintf("%s-%d", group, i)}, Group: group, Index: i,
				Lifecycle: "service", Goal: cf.BOSHStarted, Phase: cf.BOSHStopped})
			at = len(f.rows) - 1
		}
		f.rows[at].Next, f.rows[at].Goal = digest, cf.BOSHStarted
	}
	for n1 := range f.rows {
		if r := &f.rows[n1]; r.Group == group && r.Index >= n {
			r.Goal = cf.BOSHGone
		}
	}
}

func specWith(group string, index int, scripts []agent.Script) *agent.Spec {
	j := agent.Job{Name: "nats", Processes: []agent.Process{{Process: bpm.Process{Name: "nats", Executable: "x"}}}}
	for _, s := range scripts {
		j.Files = append(j.Files, lrp.File{Path: "bin/" + string(s), Program: true})
	}
	return &agent.Spec{Group: group, Index: index, Jobs: []agent.Job{j}}
}

func (f *fleet) world() world {
	w := world{Now: f.now, Task: f.task, Plan: f.plan}
	slices.SortFunc(f.rows, func(a, b cf.BOSHInstance) int {
		if c := strings.Compare(a.Group, b.Group); c != 0 {
			return c
		}
		return a.Index - b.Index
	})
	for _, r := range f.rows {
		up := r.Phase == cf.BOSHStarting || r.Phase == cf.BOSHPostStart || r.Phase == cf.BOSHRunning
		i := instance{BOSHInstance: r, Spec: f.specs[r.Digest], Next: f.specs[r.Next], Empty: !up, Running: up && !f.broken[r.Digest]}
		for _, c := range f.calls {
			if c.InstanceGUID == r.GUID {
				i.Calls = append(i.Calls, c)
			}
		}
		w.Instances = append(w.Instances, i)
	}
	return w
}

// apply does what a step said.
func (f *fleet) apply(c changes) {
	for _, r := range c.Instances {
		at := slices.IndexFunc(f.rows, func(o cf.BOSHInstance) bool { return o.GUID == r.GUID })
		f.rows[at] = r
	}
	for _, r := range c.Delete {
		f.rows = slices.DeleteFunc(f.rows, func(o cf.BOSHInstance) bool { return o.GUID == r.GUID })
	}
	f.calls = slices.DeleteFunc(f.calls, func(o cf.BOSHCall) bool { return slices.Contains(c.Forget, o.GUID) })
	for _, call := range c.Calls {
		f.guids++
		call.GUID = fmt.Sprint("call", f.guids)
		f.calls = append(f.calls, call)
	}
	for _, e := range c.Events {
		f.log = append(f.log, strings.TrimSuffix(fmt.Sprintf("%s %s: %s", e.State, e.Subject, e.Detail), ": "))
	}
	if c.Task != nil {
		f.task = *c.Task
		f.plan, _ = decodePlan(f.task.Plan)
	}
	n := map[string]int{}
	for _, r := range f.rows {
		if r.Chosen {
			n[r.Group]++
			f.most[r.Group] = max(f.most[r.Group], n[r.Group])
		}
	}
}

// answer ends the calls that are open.
func (f *fleet) answer() {
	for n := range f.calls {
		c := &f.calls[n]
		if c.State != cf.BOSHCalling {
			continue
		}
		i := strings.LastIndex(c.InstanceGUID, "-")
		c.State, c.EndedAt = cf.BOSHSucceeded, f.now
		f.log = append(f.log, fmt.Sprintf("%s %s %s", c.InstanceGUID, c.Script, strings.Join(c.Args, " ")))
		if f.bad[c.InstanceGUID[:i]+"/"+c.InstanceGUID[i+1:]+" "+c.Script] {
			c.State, c.Reason = cf.BOSHFailed, "APP: Exited with status 1"
		}
		if c.Script == string(agent.Drain) {
			c.Result = []byte("0")
			if len(f.said) > 0 {
				c.Result, f.said = []byte(f.said[0]), f.said[1:]
			}
		}
	}
}

// run goes on until the task has ended.
func (f *fleet) run() {
	f.t.Helper()
	for range 500 {
		for {
			c := f.world().step()
			if c.empty() {
				if !c.Wake.IsZero() && c.Wake.After(f.now) && !slices.ContainsFunc(f.calls, func(c cf.BOSHCall) bool { return c.State == cf.BOSHCalling }) {
					f.now = c.Wake
				}
				break
			}
			f.apply(c)
			if f.task.State != cf.BOSHProcessing {
				return
			}
		}
		f.answer()
	}
	f.t.Fatalf("the task did not end: %+v\n%s", f.rows, strings.Join(f.log, "\n"))
}

func (f *fleet) digests() (all []string) {
	for _, r := range f.rows {
		all = append(all, strings.TrimPrefix(r.Digest, fmt.Sprintf("%s/%d ", r.Group, r.Index))+" "+string(r.Phase))
	}
	return all
}

func (f *fleet) wantState(state cf.BOSHTaskState, digests ...string) {
	f.t.Helper()
	if f.task.State != state || !slices.Equal(f.digests(), digests) {
		f.t.Errorf("got %s %q and %q; want %s and %q\n%s", f.task.State, f.task.Result, f.digests(), state, digests, strings.Join(f.log, "\n"))
	}
}

func TestDeployAndUpdate(t *testing.T) {
	g := group{Name: "nats", Canaries: 1, MaxInFlight: 2}
	f := newFleet(t, g)
	f.want("nats", 4, "v1")
	f.run()
	f.wantState(cf.BOSHDone, "v1 running", "v1 running", "v1 running", "v1 running")
	f.order(Deploy, g)
	f.want("nats", 4, "v2")
	f.run()
	f.wantState(cf.BOSHDone, "v2 running", "v2 running", "v2 running", "v2 running")
	if f.log[0] != "started nats/0 (nats-0) (canary)" || f.log[1] != "finished nats/0 (nats-0) (canary)" || f.most["nats"] != 2 {
		t.Errorf("got %d at once and %q; want the canary alone, then two at once", f.most["nats"], f.log)
	}
	f.order(Deploy, g)
	f.run()
	if f.wantState(cf.BOSHDone, "v2 running", "v2 running", "v2 running", "v2 running"); len(f.log) != 0 {
		t.Errorf("got %q; want nothing changed", f.log)
	}
}

// TestBadCanary is an update that stops at its canary, and goes on when it is
// fixed.
func TestBadCanary(t *testing.T) {
	g := group{Name: "nats", Canaries: 1, MaxInFlight: 3}
	f := newFleet(t, g)
	f.want("nats", 3, "v1")
	f.run()
	f.order(Deploy, g)
	f.want("nats", 3, "v2")
	f.broken["nats/0 v2"] = true
	f.run()
	f.wantState(cf.BOSHError, "v2 starting", "v1 running", "v1 running")
	if want := "'nats/0 (nats-0)' is not running after update. Review logs for failed jobs: nats"; f.task.Result != want {
		t.Errorf("got %q; want %q", f.task.Result, want)
	}
	f.order(Deploy, g)
	f.want("nats", 3, "v3")
	f.run()
	f.wantState(cf.BOSHDone, "v3 running", "v3 running", "v3 running")
	clear(f.broken)
	f.broken["nats/1 v4"] = true
	f.order(Deploy, g)
	f.want("nats", 3, "v4")
	f.run()
	f.wantState(cf.BOSHError, "v4 running", "v4 starting", "v4 running")
	clear(f.broken)
	f.order(Deploy, g)
	f.run() // nothing else changed: the one that failed starts again
	f.wantState(cf.BOSHDone, "v4 running", "v4 running", "v4 running")
}

func TestScriptsInBOSHsOrder(t *testing.T) {
	g := group{Name: "nats"}
	all := []agent.Script{agent.PreStart, agent.PostStart, agent.PostDeploy, agent.PreStop, agent.Drain, agent.PostStop}
	f := newFleet(t, g)
	f.want("nats", 1, "v1", all...)
	f.run()
	if got, want := strings.Join(f.log, ", "), "started nats/0 (nats-0), nats-0 pre-start , nats-0 post-start , finished nats/0 (nats-0), nats-0 post-deploy "; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	f.order(Deploy, g)
	f.want("nats", 1, "v2", all...)
	f.said = []string{"-10", "5"}
	before := f.now
	f.run()
	want := "started nats/0 (nats-0), nats-0 pre-stop , nats-0 drain job_changed hash_changed, nats-0 drain job_check_status hash_changed, nats-0 post-stop , " +
		"nats-0 pre-start , nats-0 post-start , finished nats/0 (nats-0), nats-0 post-deploy "
	if got := strings.Join(f.log, ", "); got != want || f.now.Sub(before) != 15*time.Second {
		t.Errorf("got, in %s, %s\nwant, in 15 s, %s", f.now.Sub(before), got, want)
	}
	f.order(Restart, g)
	f.run()
	if f.log != nil {
		t.Errorf("got %q; want nothing where nothing restarts", f.log)
	}
	f.rows[0].Renew++
	f.order(Restart, g)
	f.run()
	want = "started nats/0 (nats-0), nats-0 pre-stop , nats-0 drain job_shutdown hash_unchanged, nats-0 post-stop , " +
		"nats-0 pre-start , nats-0 post-start , finished nats/0 (nats-0), nats-0 post-deploy "
	if got := strings.Join(f.log, ", "); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	for script, result := range map[agent.Script]string{
		agent.PreStart: "1 of 1 pre-start scripts failed. Failed Jobs: nats.",
		agent.Drain:    "1 of 1 drain scripts failed. Failed Jobs: nats.",
	} {
		f.order(Restart, g)
		f.rows[0].Renew++
		f.bad = map[string]bool{"nats/0 " + string(script): true}
		f.run()
		if f.task.State != cf.BOSHError || f.task.Result != result {
			t.Errorf("got %s %q; want %q", f.task.State, f.task.Result, result)
		}
		f.bad = nil
		f.order(Restart, g)
		f.run()
		f.wantState(cf.BOSHDone, "v2 running")
	}
}

func TestScaleInLastFirst(t *testing.T) {
	g := group{Name: "nats"}
	f := newFleet(t, g)
	f.want("nats", 3, "v1", agent.Drain)
	f.run()
	f.order(Deploy, g)
	f.want("nats", 1, "v2", agent.Drain)
	f.run()
	f.wantState(cf.BOSHDone, "v2 running")
	want := "started nats/2 (nats-2), nats-2 drain job_shutdown hash_unchanged, finished nats/2 (nats-2), started nats/1 (nats-1), " +
		"nats-1 drain job_shutdown hash_unchanged, finished nats/1 (nats-1), started nats/0 (nats-0), nats-0 drain job_changed hash_changed, finished nats/0 (nats-0)"
	if got := strings.Join(f.log, ", "); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

func TestSerialGroupsWait(t *testing.T) {
	groups := []group{{Name: "a"}, {Name: "b"}, {Name: "c", Serial: true}, {Name: "d"}}
	f := newFleet(t, groups...)
	for _, g := range groups {
		f.want(g.Name, 1, "v1", agent.PreStart)
	}
	f.run()
	got := strings.Join(f.log, ", ")
	want := "started a/0 (a-0), started b/0 (b-0), a-0 pre-start , b-0 pre-start , finished a/0 (a-0), finished b/0 (b-0), " +
		"started c/0 (c-0), c-0 pre-start , finished c/0 (c-0), started d/0 (d-0), d-0 pre-start , finished d/0 (d-0)"
	if got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}

func TestErrands(t *testing.T) {
	groups := []group{{Name: "smoke", Lifecycle: manifest.Errand}, {Name: "setup", Lifecycle: manifest.AutoErrand}}
	f := newFleet(t, groups...)
	for _, g := range groups {
		f.want(g.Name, 1, "v1")
		f.rows[len(f.rows)-1].Lifecycle = string(g.Lifecycle)
	}
	f.bad["setup/0 run"] = true
	f.run()
	if want := "Errand 'setup' failed. 1 of 1 run scripts failed. Failed Jobs: nats."; f.task.State != cf.BOSHError || f.task.Result != want {
		t.Errorf("got %s %q; want %q", f.task.State, f.task.Result, want)
	}
	if n := strings.Count(strings.Join(f.log, "\n"), "setup-0 run"); n != 1+errandRetries {
		t.Errorf("got %d runs; want one and %d more", n, errandRetries)
	}
	clear(f.bad)
	for _, want := range []int{1, 0} { // once for every change
		f.order(Deploy, groups...)
		f.run()
		if n := strings.Count(strings.Join(f.log, "\n"), "setup-0 run"); n != want || f.task.State != cf.BOSHDone {
			t.Errorf("got %d runs and %s; want %d", n, f.task.State, want)
		}
	}
	for range 2 {
		f.order(RunErrand, groups...)
		f.plan.Errand = "smoke"
		f.run()
		if got := strings.Join(f.log, ", "); got != "started smoke/0 (smoke-0), smoke-0 run , finished smoke/0 (smoke-0)" || f.task.State != cf.BOSHDone {
			t.Errorf("got %s, %s", f.task.State, got)
		}
	}
	f.order(RunErrand, groups...)
	f.plan.Errand, f.plan.WhenChanged = "smoke", true
	if f.run(); len(f.log) > 0 || f.task.State != cf.BOSHDone {
		t.Errorf("got %s, %s; want an errand that ran well left out", f.task.State, f.log)
	}
}

// TestErrandOfAJob runs the script of a job on the running instances of a service: they
// are as well as before, whatever comes of it.
func TestErrandOfAJob(t *testing.T) {
	g := group{Name: "nats", MaxInFlight: 2}
	f := newFleet(t, g)
	f.want("nats", 3, "v1", agent.Errand, agent.PostDeploy)
	f.rows[2].Goal = cf.BOSHHalted
	f.run()
	run := func(p taskPlan) string {
		f.order(RunErrand, g)
		p.Groups, p.ErrandJob = f.plan.Groups, "nats"
		f.plan = p
		f.run()
		return strings.Join(f.log, ", ")
	}
	const both = "started nats/0 (nats-0), started nats/1 (nats-1), nats-0 run , nats-1 run , "
	if got, want := run(taskPlan{}), both+"finished nats/0 (nats-0), finished nats/1 (nats-1)"; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	if got := run(taskPlan{WhenChanged: true}); got != "" || f.task.State != cf.BOSHDone {
		t.Errorf("got %s, %s; want it left out", f.task.State, got)
	}
	f.bad["nats/1 run"] = true
	run(taskPlan{})
	const why = "Errand 'nats' failed. 1 of 1 run scripts failed. Failed Jobs: nats."
	if f.task.State != cf.BOSHError || f.task.Result != why {
		t.Errorf("got %s %q; want %q", f.task.State, f.task.Result, why)
	}
	if ran, err := ErrandResults(&f.task); err != nil || len(ran) != 2 || ran[0].ExitCode != 0 || ran[1].Instance != "nats/1" || ran[1].ExitCode != 1 || ran[1].Reason == "" {
		t.Errorf("got %+v, %v", ran, err)
	}
	if exited, err := Exited(&f.task); err != nil || !exited {
		t.Errorf("got %v, %v of a script that exited with 1", exited, err)
	}
	clear(f.bad)
	if got := run(taskPlan{WhenChanged: true}); !strings.HasPrefix(got, "started nats/1 (nats-1), nats-1 run ") || strings.Contains(got, "nats-0") {
		t.Errorf("got %s; want it run where it failed", got)
	}
	index := 0
	if got := run(taskPlan{Group: "nats", Index: &index}); strings.Contains(got, "nats/1") || !strings.Contains(got, "nats-0 run") {
		t.Errorf("got %s; want it run on nats/0 alone", got)
	}
	f.order(Deploy, g)
	if f.run(); strings.Contains(strings.Join(f.log, "\n"), "started") {
		t.Errorf("got %q; want nothing done after an errand", f.log)
	}
	for n := range f.rows {
		f.rows[n].Goal = cf.BOSHHalted
	}
	f.order(Stop, g)
	f.run()
	run(taskPlan{})
	if want := "Errand 'nats' did not run: no instance that has it is running"; f.task.Result != want || f.task.State != cf.BOSHError {
		t.Errorf("got %s %q; want %q", f.task.State, f.task.Result, want)
	}
}

// TestScriptsLeftOut restarts an instance without its drain scripts, and an
// unresponsive one without any stop script.
func TestScriptsLeftOut(t *testing.T) {
	g := group{Name: "nats"}
	f := newFleet(t, g)
	f.want("nats", 1, "v1", agent.PreStart, agent.PreStop, agent.Drain, agent.PostStop)
	f.run()
	for _, test := range []struct {
		plan taskPlan
		want string
	}{
		{taskPlan{SkipDrain: true}, "nats-0 post-stop , nats-0 pre-start "},
		{taskPlan{Unresponsive: []string{"nats-0"}}, "nats-0 pre-start "},
		{taskPlan{Unresponsive: []string{"nats-1"}}, "nats-0 pre-stop , nats-0 drain job_shutdown hash_unchanged, nats-0 post-stop , nats-0 pre-start "},
	} {
		f.order(Restart, g)
		test.plan.Groups = f.plan.Groups
		f.plan = test.plan
		f.rows[0].Renew++
		f.run()
		if got, want := strings.Join(f.log, ", "), "started nats/0 (nats-0), "+test.want+", finished nats/0 (nats-0)"; got != want {
			t.Errorf("%+v:\ngot  %s\nwant %s", test.plan, got, want)
		}
	}
}

func TestStopStartDelete(t *testing.T) {
	g := group{Name: "nats", MaxInFlight: 2}
	f := newFleet(t, g)
	f.want("nats", 2, "v1")
	f.run()
	for _, tt := range []struct {
		kind Kind
		goal cf.BOSHGoal
		want []string
	}{
		{Stop, cf.BOSHHalted, []string{"v1 stopped", "v1 stopped"}},
		{Start, cf.BOSHStarted, []string{"v1 running", "v1 running"}},
		{Delete, cf.BOSHGone, nil},
	} {
		f.order(tt.kind, g)
		for n := range f.rows {
			f.rows[n].Goal = tt.goal
		}
		f.run()
		f.wantState(cf.BOSHDone, tt.want...)
	}
}

// TestAnErrandsDisksGoWithIt, unless they are to be kept; not before its last try.
func TestAnErrandsDisksGoWithIt(t *testing.T) {
	spec := &agent.Spec{Group: "tests", Jobs: []agent.Job{{Name: "smoke", Files: []lrp.File{{Path: "bin/run"}}}}}
	for _, test := range []struct {
		state     cf.BOSHCallState
		lifecycle manifest.Lifecycle
		keep      bool
		want      int
	}{
		{cf.BOSHSucceeded, manifest.Errand, false, 2}, {cf.BOSHFailed, manifest.Errand, false, 2}, {cf.BOSHCalling, manifest.Errand, false, 0},
		{cf.BOSHSucceeded, manifest.Errand, true, 0}, {cf.BOSHSucceeded, manifest.AutoErrand, false, 2}, {cf.BOSHFailed, manifest.AutoErrand, false, 0},
	} {
		plan := taskPlan{Stage: errands, KeepAlive: test.keep}
		if test.lifecycle == manifest.Errand {
			plan.Errand = "tests"
		}
		i := cf.BOSHInstance{Resource: cf.Resource{GUID: "g"}, Group: "tests", Lifecycle: string(test.lifecycle), Goal: cf.BOSHStarted, Phase: cf.BOSHStopped, Next: "new", TaskGUID: "t", Chosen: true}
		w := world{Now: time.Unix(1e9, 0), Plan: plan, Task: cf.BOSHTask{Resource: cf.Resource{GUID: "t"}, Kind: string(RunErrand), State: cf.BOSHProcessing},
			Instances: []instance{{BOSHInstance: i, Next: spec, Empty: true, Calls: []cf.BOSHCall{{Job: "smoke", Script: "run", Phase: cf.BOSHErrand, State: test.state, EndedAt: time.Unix(1e9, 0)}}}}}
		c := w.step()
		if len(c.Discard) != test.want {
			t.Errorf("%+v: got %q discarded", test, c.Discard)
		}
	}
}

// TestCrashingIsNotRunning starts an instance whose process is seen running each time, but
// crashes between.
func TestCrashingIsNotRunning(t *testing.T) {
	f := newFleet(t, group{Name: "nats", UpdateWatch: manifest.Watch{Low: time.Second, High: 20 * time.Second}})
	f.want("nats", 1, "v1")
	f.rows[0].Phase, f.rows[0].Digest, f.rows[0].Chosen, f.rows[0].Since, f.rows[0].TaskGUID = cf.BOSHStarting, f.rows[0].Next, true, f.now, f.task.GUID
	for _, test := range []struct {
		after, runs time.Duration // since the instance, and its process, was started
		crashed     bool
		want        cf.BOSHPhase
	}{
		{after: 1500 * time.Millisecond, runs: 300 * time.Millisecond, crashed: true, want: cf.BOSHStarting},
		{after: 1500 * time.Millisecond, runs: 300 * time.Millisecond, want: cf.BOSHStarting},
		{after: 500 * time.Millisecond, runs: 500 * time.Millisecond, want: cf.BOSHStarting},
		{after: 2 * time.Second, runs: time.Second, crashed: true, want: cf.BOSHRunning},
		{after: 20 * time.Second, runs: 300 * time.Millisecond, want: cf.BOSHRunning}, // it only came up late
	} {
		w := f.world()
		w.Now = f.now.Add(test.after)
		w.Instances[0].RunsSince, w.Instances[0].Crashed = w.Now.Add(-test.runs), test.crashed
		got := cf.BOSHStarting
		if out := w.step(); len(out.Instances) == 1 {
			got = out.Instances[0].Phase
		} else if out.Wake.IsZero() {
			t.Errorf("%+v: nothing looks again", test)
		}
		if got != test.want {
			t.Errorf("%+v: got %s", test, got)
		}
	}
	w := f.world()
	w.Now = f.now.Add(20 * time.Second)
	w.Instances[0].RunsSince, w.Instances[0].Crashed = w.Now.Add(-300*time.Millisecond), true
	if out := w.step(); len(out.Instances) != 1 || !strings.Contains(out.Instances[0].Failure, "is not running after update") {
		t.Errorf("got %+v; want the update to fail", out.Instances)
	}
}

// TestExited tells errands that exited with a code from others that failed.
func TestExited(t *testing.T) {
	for _, test := range []struct {
		name   string
		ran    []ErrandResult
		failed []string // instances of errands
		faults int      // of services
		want   bool
	}{
		{"a code", []ErrandResult{{GUID: "a", ExitCode: 3}}, []string{"a"}, 0, true},
		{"codes of two jobs of one instance", []ErrandResult{{GUID: "a", ExitCode: 3}, {GUID: "a", ExitCode: 1}}, []string{"a"}, 0, true},
		{"one of two services", []ErrandResult{{GUID: "a", ExitCode: 1}, {GUID: "b"}}, nil, 1, true},
		{"a signal", []ErrandResult{{GUID: "a", ExitCode: -1}}, []string{"a"}, 0, false},
		{"an instance that did not run", []ErrandResult{{GUID: "a", ExitCode: 3}}, []string{"a", "b"}, 0, false},
		{"a fault of the plan", []ErrandResult{{GUID: "a", ExitCode: 3}}, []string{"a"}, 1, false},
	} {
		s := &step{world: world{Task: cf.BOSHTask{Resource: cf.Resource{GUID: "t"}}, Plan: taskPlan{Ran: test.ran, Faults: make([]string, test.faults)}}}
		for _, guid := range test.failed {
			i := cf.BOSHInstance{Resource: cf.Resource{GUID: guid}, TaskGUID: "t", Failure: "why"}
			s.all = append(s.all, &item{instance: instance{BOSHInstance: i}})
		}
		if got := s.exited(); got != test.want {
			t.Errorf("%s: got %v", test.name, got)
		}
	}
}
