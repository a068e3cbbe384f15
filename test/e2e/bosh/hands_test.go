package bosh

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"cupola/test/e2e"
)

// handsDaemon is a daemon with the deployment "hands": two workers with disks, and an
// errand.
type handsDaemon struct{ *boshDaemon }

// startHands deploys hands.
func startHands(t *testing.T) *handsDaemon {
	t.Helper()
	binary := e2e.NeedBinary(t)
	b := &boshDaemon{registry: e2e.StartRegistry(t), name: "hands", manifest: "testdata/hands.yml"}
	b.registry.Push(t, "test-1-1", v1.Config{}, e2e.LayerOf(t, append(systemEntries(), jobEntries(t)...)...))
	b.Daemon = e2e.StartDaemon(t, binary)
	b.must(b.deploy("[]"))
	return &handsDaemon{b}
}

// run runs a command about deployments, which must succeed.
func (h *handsDaemon) run(args ...string) string {
	h.T.Helper()
	return h.must(h.Run(append([]string{"deployment"}, args...)...))
}

// fails runs a command, which must fail and print a text.
func (h *handsDaemon) fails(want string, args ...string) string {
	h.T.Helper()
	out, err := h.Run(append([]string{"deployment"}, args...)...)
	if err == nil || !strings.Contains(out, want) {
		h.T.Errorf("%v: got %v\n%s\nwant it to fail with %q", args, err, out, want)
	}
	return out
}

// output runs a command and returns what it writes to its standard output.
func (h *handsDaemon) output(args ...string) (string, error) {
	h.T.Helper()
	cmd := exec.CommandContext(h.T.Context(), h.Binary, args...)
	cmd.Env = append(os.Environ(), "CUPOLA_API=http://"+h.Addr, "CUPOLA_PASSWORD="+e2e.AdminPassword)
	out, err := cmd.Output()
	return string(out), err
}

// TestErrandsByJob runs errands by group and by job: their output and exit codes are
// printed.
func TestErrandsByJob(t *testing.T) {
	t.Parallel()
	h := startHands(t)
	contains(t, h.run("errands", "hands"), "check\n", "checks\n", "worker\n")
	contains(t, h.run("run-errand", "hands", "worker"), "Instance   worker/0 (worker)\nExit Code  0\nStdout     checked 0\nStderr     nothing is wrong\n", "checked 1\n")
	contains(t, h.run("run-errand", "hands", "worker", "--when-changed"), "Errand 'worker' ran on no instance")
	if out := h.run("run-errand", "hands", "worker", "--instance", "worker/1"); strings.Contains(out, "worker/0") || !strings.Contains(out, "checked 1\n") {
		t.Errorf("got %s; want the errand run on worker/1", out)
	}
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"check", "--keep-alive"}, "Stdout     run 1 with this ephemeral disk\nStderr     -\n"},
		{[]string{"checks"}, "run 2 with this ephemeral disk\n"},
		{[]string{"checks", "--when-changed"}, "Errand 'checks' ran on no instance"},
		{[]string{"check"}, "run 1 with this ephemeral disk\n"},
	} {
		contains(t, h.run(append([]string{"run-errand", "hands"}, test.args...)...), test.want)
	}
	h.fails(`Errand 'worke' doesn't exist (did you mean "worker"?)`, "run-errand", "hands", "worke")

	h.must(h.deploy(`[{"type": "replace", "path": "/instance_groups/name=checks/jobs/0/properties/exit", "value": 3}]`))
	h.fails("Exit Code  3\n", "run-errand", "hands", "checks", "--when-changed")
	var results []struct {
		Instance, Stdout string
		ExitCode         int `json:"exit_code"`
	}
	out, err := h.output("deployment", "run-errand", "hands", "checks", "--json")
	if jsonErr := json.Unmarshal([]byte(out), &results); err == nil || jsonErr != nil || len(results) != 1 || results[0].ExitCode != 3 || results[0].Stdout == "" {
		t.Errorf("got %v, %s; want the results of a failed errand", err, out)
	}
	h.recorded(t)
	h.run("stop", "hands", "worker")
	h.fails("Errand 'worker' did not run: no instance that has it is running", "run-errand", "hands", "worker")
}

// recorded looks for what was done in the tasks and events.
func (h *handsDaemon) recorded(t *testing.T) {
	t.Helper()
	if out := h.run("tasks"); strings.Count(out, "\n") != 1 {
		t.Errorf("got %s; want no task that has not ended", out)
	}
	contains(t, h.run("tasks", "--recent"), "1      done", "deploy", "run-errand", "error")
	if out := h.run("tasks", "--recent=2", "-d", "hands"); strings.Count(out, "\n") != 3 {
		t.Errorf("got %s; want two tasks", out)
	}
	h.fails(`expected a number of tasks from 1 on, got "x"`, "tasks", "--recent=x")
	contains(t, h.run("task", "1", "--event"), `"stage":"Preparing deployment","tags":[],"total":1,"task":"manifest","index":1,"state":"started","progress":0`, `"stage":"Updating instance","tags":["worker"]`)
	contains(t, h.run("task", "2", "--result"), `"instance":"worker/0"`, `"exit_code":0`, `"stdout":"checked 0\n"`)
	contains(t, h.run("task", "--result"), "Errand 'checks' failed. 1 of 1 run scripts failed. Failed Jobs: check.")
	contains(t, h.run("task", "2", "--debug"), "[task 2] Running errand: worker/0", "worker/run] checked 0\n")
	contains(t, h.run("locks"), "TYPE")

	type event struct {
		ID, Task                        int
		Parent                          int `json:"parent_id"`
		User, Action, Deployment, Error string
		ObjectType                      string `json:"object_type"`
		ObjectName                      string `json:"object_name"`
	}
	events := func(filters ...string) (all []event) {
		t.Helper()
		if err := json.Unmarshal([]byte(h.run(append([]string{"events", "--json"}, filters...)...)), &all); err != nil {
			t.Fatal(err)
		}
		return all
	}
	first := events("--task", "1", "--object-type", "deployment")
	if len(first) != 2 || first[1].Action != "create" || first[1].User != "admin" || first[0].Parent != first[1].ID || first[0].Error != "" {
		t.Errorf("got %+v; want the beginning and the end of the first deploy", first)
	}
	if got := events("-d", "hands", "--action", "run", "--task", "2"); len(got) != 4 || !strings.HasPrefix(got[0].ObjectName, "worker/") {
		t.Errorf("got %+v; want the errand on both workers", got)
	}
	if got := events("--object-type", "disk", "--action", "create", "--event-user", "admin"); len(got) != 2 {
		t.Errorf("got %+v; want the disks of both workers", got)
	}
	newest := events()
	if newest[0].Parent == 0 || newest[0].Error == "" {
		t.Errorf("got %+v; want the end of a failed errand first", newest[0])
	}
	if got := events("--before-id", fmt.Sprint(newest[0].ID)); got[0].ID != newest[0].ID-1 {
		t.Errorf("got %+v; want those before %d", got[0], newest[0].ID)
	}
	if got := events("--after", "2999-01-01T00:00:00Z"); len(got) != 0 {
		t.Errorf("got %+v of the future", got)
	}
	h.fails("before_time must be a time like", "events", "--before", "yesterday")
	contains(t, h.run("events", "--task", "1"), " <- 1 ", "worker/")
}

// TestInstancesAreChanged stops, starts, restarts and recreates instances as they are
// asked to be.
func TestInstancesAreChanged(t *testing.T) {
	t.Parallel()
	h := startHands(t)
	h.run("restart", "hands", "worker/0", "--skip-drain")
	h.wantLine("start 2 of 0, 2 with this ephemeral disk")
	h.run("stop", "hands", "worker/1")
	h.run("stop", "hands", "worker/1", "--hard")
	contains(t, h.run("instances", "hands"), "worker/1   stopped")
	h.run("start", "hands", "worker")
	h.wantLine("start 2 of 1, 1 with this ephemeral disk")
	h.run("recreate", "hands", "worker/1", "--fix")
	h.wantLine("start 3 of 1, 1 with this ephemeral disk")
	out := h.must(h.deploy("[]", "--recreate", "--skip-drain", "--canaries", "1", "--max-in-flight", "100%"))
	contains(t, out, "(canary)")
	h.wantLine("start 3 of 0, 1 with this ephemeral disk")
	if out := h.must(h.deploy("[]", "--fix")); strings.Contains(out, "Updating instance") {
		t.Errorf("got %s; want nothing recreated", out)
	}
	const old = "2020-01-01T00:00:00Z"
	if out := h.must(h.deploy("[]", "--recreate-vms-created-before", old)) + h.run("recreate", "hands", "--vms-created-before", old); strings.Contains(out, "Updating instance") {
		t.Errorf("got %s; want nothing recreated that is newer", out)
	}
	var views []instanceView
	h.API("GET", "/v1/deployments/hands/instances", nil, &views)
	h.run("restart", "hands", "worker/"+views[1].GUID)
	h.wantLine("draining 0: job_shutdown")
	if out := h.run("logs", "hands"); strings.Count(out, "draining 0") != 1 {
		t.Errorf("got %s; want worker/0 drained once", out)
	}
	h.fails(`invalid canaries "200%": 200% is more than all instances`, "restart", "hands", "--canaries", "200%")
	h.fails(`invalid max_in_flight "some": expected a number or a percentage`, "stop", "hands", "--max-in-flight", "some")

	contains(t, h.run("instances", "hands", "--ps"), "  worker/worker")
	contains(t, h.run("instances", "--ps"), "DEPLOYMENT   INSTANCE", "hands        worker/0", "  worker/worker")
	contains(t, h.run("instances", "hands", "--details"), "BOOTSTRAP", views[1].GUID)
	if out := h.run("instances", "hands", "--failing"); strings.Contains(out, "worker/") {
		t.Errorf("got %s; want no instance that fails", out)
	}
	h.failing(t)
}

// failing deploys a process that does not start: it is shown as failing.
func (h *handsDaemon) failing(t *testing.T) {
	t.Helper()
	const text = `[{"type": "replace", "path": "/instance_groups/name=worker/jobs/0/properties?/quarks/bpm/processes", "value": [{"name": "worker", "executable": "/bin/none"}]},
		{"type": "replace", "path": "/update/update_watch_time", "value": "1000-4000"}]`
	if out, err := h.deploy(text); err == nil {
		t.Errorf("got %s; want the deploy to fail", out)
	}
	e2e.Eventually(t, time.Minute, func() string {
		if out := h.run("instances", "hands", "--failing", "--ps"); !strings.Contains(out, "worker/0") || strings.Contains(out, "worker/1") || !strings.Contains(out, "  worker/worker") {
			return fmt.Sprintf("got %s; want worker/0 and its process", out)
		}
		return ""
	})
}

// contains checks that a text has all of some parts.
func contains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("got %s\nwant %q", text, part)
		}
	}
}

// TestRepairAndDisks mends an update that was cancelled, and exchanges the disks of a
// stopped instance.
func TestRepairAndDisks(t *testing.T) {
	t.Parallel()
	h := startHands(t)
	var vms []struct {
		Deployment, Group string
		Processes         []struct {
			Memory int64 `json:"memory_bytes"`
		}
	}
	if err := json.Unmarshal([]byte(h.run("vms", "--vitals", "--json")), &vms); err != nil || len(vms) != 2 || vms[1].Deployment != "hands" || vms[0].Processes[0].Memory == 0 {
		t.Errorf("got %v, %+v; want both workers and their memory", err, vms)
	}
	contains(t, h.run("vms", "hands"), "worker/1 (")
	contains(t, h.run("instances", "hands", "--vitals", "--ps"), "CPU", "MEMORY")

	contains(t, h.run("repair", "hands"), "No problems found.")
	h.cancelHalfWay(t)
	h.fails("failed_change", "repair", "hands", "--report")
	h.run("repair", "hands", "--auto")
	contains(t, h.run("cck", "hands"), "No problems found.")
	h.exchangeDisks(t)
}

// cancelHalfWay cancels an update while an instance starts.
func (h *handsDaemon) cancelHalfWay(t *testing.T) {
	t.Helper()
	args := h.deployArgs(`[{"type": "replace", "path": "/update/update_watch_time", "value": "15000-60000"},
		{"type": "replace", "path": "/instance_groups/name=worker/vm_resources/ram", "value": 72}]`, "deploy")
	cmd := exec.CommandContext(t.Context(), h.Binary, args...)
	cmd.Env = append(os.Environ(), "CUPOLA_API=http://"+h.Addr, "CUPOLA_PASSWORD="+e2e.AdminPassword)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	e2e.Eventually(t, time.Minute, func() string {
		var views []instanceView
		h.API("GET", "/v1/deployments/hands/instances", nil, &views)
		for _, i := range views {
			if i.Group == "worker" && i.State == "starting" {
				return ""
			}
		}
		return fmt.Sprintf("got %+v; want an instance that starts", views)
	})
	contains(t, h.run("locks"), "deployment   hands")
	contains(t, h.run("tasks"), "processing")
	h.run("cancel-task", "2")
	if err := cmd.Wait(); err == nil {
		t.Error("the deploy ended well although it was cancelled")
	}
	contains(t, h.run("events", "--task", "2"), "Task 2 cancelled")
}

// diskView is a disk as the CLI shows it.
type diskView struct {
	GUID     string
	Group    string
	Index    int
	Orphaned bool
}

// disks lists disks.
func (h *handsDaemon) disks(args ...string) (all []diskView) {
	h.T.Helper()
	if err := json.Unmarshal([]byte(h.run(append([]string{"disks", "--json"}, args...)...)), &all); err != nil {
		h.T.Fatal(err)
	}
	return all
}

// exchangeDisks gives a stopped instance an empty disk, and then the old one again.
func (h *handsDaemon) exchangeDisks(t *testing.T) {
	t.Helper()
	old := ""
	for _, d := range h.disks() {
		if d.Index == 1 {
			old = d.GUID
		}
	}
	h.fails("Instance worker/1 is not stopped: stop it first", "orphan-disk", old)
	h.run("stop", "hands", "worker/1", "--hard")
	h.run("orphan-disk", old)
	if got := h.disks("--orphaned"); len(got) != 1 || got[0].GUID != old {
		t.Errorf("got %+v; want the disk orphaned", got)
	}
	h.run("start", "hands", "worker/1")
	h.wantLine("start 1 of 1, 1 with this ephemeral disk")
	h.fails("is not stopped", "attach-disk", "hands", "worker/1", old)
	h.run("stop", "hands", "worker/1")
	h.run("attach-disk", "hands", "worker/1", old)
	h.run("start", "hands", "worker/1")
	h.wantLine("start 3 of 1, 2 with this ephemeral disk") // the second was that of the update
	empty := h.disks("--orphaned")
	if len(empty) != 1 || empty[0].GUID == old {
		t.Fatalf("got %+v; want the empty disk orphaned", empty)
	}
	h.run("delete-disk", empty[0].GUID)
	if got := h.disks(); len(got) != 2 || got[0].Orphaned || got[1].Orphaned {
		t.Errorf("got %+v; want a disk for each worker", got)
	}
	contains(t, h.run("events", "--object-type", "disk"), "attach", "orphan", "delete")
}

// largerDisks are large enough to be copied for a while.
const largerDisks = `[{"type": "replace", "path": "/instance_groups/name=worker/persistent_disk", "value": 400}]`

// in runs a command in worker/0, and returns what it prints.
func (h *handsDaemon) in(command string) string {
	h.T.Helper()
	return h.run("ssh", "hands", "worker/0", "-c", command)
}

// TestDisksAreRecreated replaces the disks of running and stopped instances by copies, also
// when the daemon is killed meanwhile.
func TestDisksAreRecreated(t *testing.T) {
	t.Parallel()
	h := startHands(t)
	first := h.disks()
	h.run("stop", "hands", "worker/1")
	contains(t, h.must(h.deploy(largerDisks, "--recreate-persistent-disks")), "Copying disks: "+first[0].GUID, "Orphaning disks: "+first[0].GUID+" of worker/0, kept for 5 days", first[1].GUID+" of worker/1", "Updating instance worker: worker/0")
	h.wantLine("start 2 of 0, 2 with this ephemeral disk")
	h.wantReplaced(t, first)
	h.run("start", "hands", "worker/1")
	h.wantLine("start 2 of 1, 2 with this ephemeral disk")

	const sum = "sha256sum < /var/vcap/store/worker/data"
	h.in("head -c 300000000 /dev/urandom > /var/vcap/store/worker/data")
	before, second := h.in(sum), h.disks()
	h.killedWhileCopying(t)
	h.wantReplaced(t, second)
	if now := h.in(sum); now != before {
		t.Errorf("got %s; want what was on the disk, %s", now, before)
	}
	h.run("restart", "hands")
	for index := range 2 {
		h.wantLine(fmt.Sprintf("start 4 of %d, 4 with this ephemeral disk", index))
	}
	h.must(h.deploy(largerDisks))
	if got := h.disks(); len(got) != 6 {
		t.Errorf("got %+v; want no disk replaced unasked", got)
	}
	volumes, err := filepath.Glob(filepath.Join(h.Dir, "volumes", "bosh-store-*"))
	if err != nil || len(volumes) != 6 {
		t.Errorf("got %v, %v; want a volume for each disk", volumes, err)
	}
}

// wantReplaced checks that some disks are the orphaned ones, and that both workers have another.
func (h *handsDaemon) wantReplaced(t *testing.T, old []diskView) {
	t.Helper()
	used := 0
	for _, d := range h.disks() {
		if was := slices.ContainsFunc(old, func(o diskView) bool { return o.GUID == d.GUID }); was != d.Orphaned {
			t.Errorf("got %+v, of before: %t; want those of before orphaned, and no others", d, was)
		}
		if !d.Orphaned {
			used++
		}
	}
	if used != 2 {
		t.Errorf("got %d disks in use; want that of each worker", used)
	}
}

// killedWhileCopying kills the daemon when a disk is being copied, or was a moment ago. The
// next daemon goes on.
func (h *handsDaemon) killedWhileCopying(t *testing.T) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), h.Binary, append(h.deployArgs(largerDisks, "deploy"), "--recreate-persistent-disks")...)
	cmd.Env = append(os.Environ(), "CUPOLA_API=http://"+h.Addr, "CUPOLA_PASSWORD="+e2e.AdminPassword)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() && !strings.Contains(lines.Text(), "Copying disks") {
	}
	h.Kill()
	_ = cmd.Wait() // its daemon is gone
	h.Start()
	var tasks []struct{ ID int }
	h.API("GET", "/v1/deployment_tasks", nil, &tasks)
	h.run("task", fmt.Sprint(tasks[0].ID))
	if log := h.run("task", fmt.Sprint(tasks[0].ID), "--event"); strings.Count(log, `"stage":"Copying disks"`) < 5 { // two copies, one of them begun twice
		t.Logf("the disk was copied before the daemon was killed:\n%s", log)
	}
}
