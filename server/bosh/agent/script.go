package agent

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"cupola/runtime/contract"
	"cupola/runtime/lrp"
	"cupola/server/bosh/bpm"
)

// Script is a program of a job that BOSH's agent runs at its time.
type Script string

// The scripts, in the order in which an instance comes up and goes down again.
// Errand is what an errand does: for a job without processes, its bin/run.
const (
	PreStart   Script = "pre-start"
	PostStart  Script = "post-start"
	PostDeploy Script = "post-deploy"
	PreStop    Script = "pre-stop"
	Drain      Script = "drain"
	PostStop   Script = "post-stop"
	Errand     Script = "run"
)

func (s Script) file() string { return "bin/" + string(s) }

// Call is one run of a script, or of a process of an errand.
type Call struct {
	GUID    string
	Job     string
	Process string // of an errand; "" for a script
	Script  Script
	// Args and Env are those that BOSH passes to a script.
	Args []string
	Env  []lrp.EnvVar
}

// callTag is the tag of an errand's log lines that names the call that wrote them.
const callTag = "bosh_call"

// drainFile is where what a drain script writes is read.
const drainFile = "/tmp/drain.out"

// Run is what runs for a call. Scripts are root's, as on a machine of BOSH's; a
// process of an errand is vcap's.
func (i Instance) Run(c Call) (lrp.RunInfo, error) {
	j := i.job(c.Job)
	if j == nil {
		return lrp.RunInfo{}, fmt.Errorf("instance %s has no job %s", i.name(), c.Job)
	}
	run := i.container(j)
	if c.Script == Errand {
		run.Log.Tags[callTag] = c.GUID
	}
	run.Log.Source = strings.Join([]string{i.Group, j.Name, string(c.Script)}, "/")
	if c.Process == "" {
		i.showWhole(&run, j)
		run.Action = i.script(j, c).Action()
		switch {
		case c.Script == Drain:
			run.ResultFile = drainFile
		case c.Script == PostStart && len(j.Condition) > 0:
			run.Action = lrp.Serial(j.condition(), run.Action)
		}
		return run, nil
	}
	p := j.process(c.Process)
	if p == nil {
		return run, fmt.Errorf("job %s of %s has no process %s", j.Name, i.name(), c.Process)
	}
	i.show(&run, j, p)
	if run.Action.Run != nil {
		run.Action = wrapped(*run.Action.Run, contract.ScriptOptions{}).Action()
	}
	run.Log.Source = strings.Join([]string{i.Group, j.Name, p.Name}, "/")
	return run, nil
}

// script is the process of a script, which finds its job's directory as a
// program of BOSH does, and raises its limit of open files as root may there.
func (i Instance) script(j *Job, c Call) lrp.Run {
	run := lrp.Run{Path: bpm.JobDir(j.Name) + "/" + c.Script.file(), Args: c.Args, Dir: "/", User: "root", Nofile: lrp.AllFiles}
	run.Env = append(scriptEnv(), c.Env...)
	run = j.inContainer(run, c.Script)
	if c.Script == Drain {
		run.Args = append([]string{"-c", `exec "$0" "$@" > ` + drainFile, run.Path}, run.Args...)
		run.Path = "/bin/sh"
	}
	var options contract.ScriptOptions
	if j.hasPidfiles() && c.Script != PreStart && c.Script != PostStop {
		run.Peers, options = i.peers(j)
	}
	return wrapped(run, options)
}

// wrapped runs a program as a script: what it leaves behind has time to end.
func wrapped(run lrp.Run, options contract.ScriptOptions) lrp.Run {
	run.Args = append([]string{contract.CommandScript, encoded(options), run.Path}, run.Args...)
	run.Path = contract.Helper
	return run
}

// The times of a condition, those of the first who ran BOSH releases in pods.
const (
	conditionRetry = "3" // seconds
	conditionLimit = 15 * time.Minute
)

// condition waits until the job's condition holds.
func (j *Job) condition() lrp.Action {
	run := lrp.Run{Path: "/bin/sh", Dir: "/", User: "root", Quiet: true, Env: scriptEnv()}
	run.Args = append([]string{"-c", `until "$0" "$@"; do sleep ` + conditionRetry + `; done`}, j.Condition...)
	return lrp.Within(conditionLimit, run.Action())
}

// scriptEnv is the environment of scripts.
func scriptEnv() []lrp.EnvVar {
	return []lrp.EnvVar{{Name: "PATH", Value: "/usr/sbin:/usr/bin:/sbin:/bin"}}
}

// DrainCall is what a drain script is called with: why the instance stops, for
// the first time or to be asked again.
func DrainCall(job string, changed, again bool) Call {
	why, hash := "job_shutdown", "hash_unchanged"
	if changed {
		why, hash = "job_changed", "hash_changed"
	}
	if again {
		why = "job_check_status"
	}
	return Call{Job: job, Script: Drain, Args: []string{why, hash}}
}

// DrainResult parses the output of a drain script: how long to wait, and
// whether to call it again.
func DrainResult(out []byte) (wait time.Duration, again bool, err error) {
	const longest = 24 * 60 * 60
	n, err := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil || n > longest || n < -longest {
		return 0, false, fmt.Errorf("drain has to write a number of seconds, not %.40q", strings.TrimSpace(string(out)))
	}
	if n < 0 {
		return time.Duration(-n) * time.Second, true, nil
	}
	return time.Duration(n) * time.Second, false, nil
}

// ErrandCalls are what an errand's instance runs: the processes of its jobs, or
// their bin/run.
func (s Spec) ErrandCalls() (calls []Call) {
	for i := range s.Jobs {
		j := &s.Jobs[i]
		for p := range j.Processes {
			calls = append(calls, Call{Job: j.Name, Process: j.Processes[p].Name, Script: Errand})
		}
		if len(j.Processes) == 0 && j.has(Errand) {
			calls = append(calls, Call{Job: j.Name, Script: Errand})
		}
	}
	return calls
}

// CallLine reports whether a log line of a call is its program's own, or else the cell's,
// and whether it is the last one of the call.
func CallLine(call, text string) (own, last bool) {
	switch {
	case strings.HasPrefix(text, "Cell ") && strings.HasSuffix(text, " container for instance "+call):
		return false, strings.Contains(text, "destroy container") || strings.Contains(text, "successfully destroyed")
	case strings.HasPrefix(text, "Exit status "): // of the program, or of what goes before it
		return false, false
	}
	return true, false
}
