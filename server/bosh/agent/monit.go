package agent

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"cupola/runtime/contract"
	"cupola/runtime/lrp"
	"cupola/server/bosh/bpm"
)

// monitored reports whether the job's processes are those of its monit file. All run in one container, as root like monit, and see
// the disks whole. The job's directory is on the ephemeral disk, where its scripts may write to it, as on a machine of BOSH's.
func (j *Job) monitored() bool {
	return slices.ContainsFunc(j.Processes, func(p Process) bool { return p.Monit != nil })
}

// treeDir is where the job's rendered files are shown: in its directory, or where they are copied to that from.
func (j *Job) treeDir() string {
	if j.monitored() {
		return "/var/vcap/rendered/" + j.Name
	}
	return bpm.JobDir(j.Name)
}

// prepared makes what a job's scripts, and what monit runs, expect to find.
func (j *Job) prepared() lrp.Action {
	dirs := makeDirectories(j.directories())
	if !j.monitored() {
		return dirs
	}
	return lrp.Serial(dirs, helper(contract.MonitInstall, j.treeDir(), bpm.JobDir(j.Name), user).Action())
}

// monitStop is how long BOSH's agent waits for all processes to stop.
const monitStop = 5 * time.Minute

// monit runs the processes of a monit file, whose programs raise their limit of open files by themselves.
func monit(j *Job, p *Process) lrp.Run {
	run := helper(contract.MonitRun, bpm.JobDir(j.Name), checksOf(p))
	run.Nofile, run.Stop = cmp.Or(p.Limits.OpenFiles, lrp.AllFiles), []lrp.Signal{{Name: "TERM", Wait: monitStop}}
	run.Quiet = false
	return run
}

// inContainer makes a script run in the container of the job's processes, if they run, so that it sees them.
func (j *Job) inContainer(run lrp.Run, s Script) lrp.Run {
	if j.monitored() {
		verb := contract.MonitExec
		if s == Drain {
			verb = contract.MonitDrain
		}
		run.Args = append([]string{contract.CommandMonit, verb, bpm.JobDir(j.Name), run.Path}, run.Args...)
		run.Path = contract.Helper
	}
	return run
}

// The times of checks: they are done as often as monit looks, and may wait for a processor.
const (
	monitInterval = 10 * time.Second
	monitTimeout  = 5 * time.Second
	monitStart    = 30 * time.Second // until conditions count
)

// summary makes the instance ready only while all processes run.
func (p *Process) summary() lrp.Check {
	run := helper(contract.MonitSummary, checksOf(p))
	return lrp.Check{Type: lrp.CheckExec, Run: &run, Interval: monitInterval, InvocationTimeout: monitTimeout, Failures: 1, Successes: 1}
}

// conditionCheck restarts a process when a condition has held for long enough.
func conditionCheck(c contract.MonitCondition) lrp.Check {
	run := helper(contract.MonitTest, encoded(c))
	return lrp.Check{Type: lrp.CheckExec, Run: &run, Interval: monitInterval, InvocationTimeout: c.Wait + monitTimeout, Failures: c.Looks, Successes: 1}
}

func helper(args ...string) lrp.Run {
	return lrp.Run{Path: contract.Helper, Args: append([]string{contract.CommandMonit}, args...), Dir: "/", User: "root", Quiet: true}
}

func checksOf(p *Process) string { return encoded(p.Monit) }

func encoded(of any) string {
	text, err := json.Marshal(of)
	if err != nil {
		panic(err) // it is made of texts and numbers
	}
	return string(text)
}
