package director

import (
	"cmp"

	"cupola/store"
	"cupola/store/cf"
)

// The kinds of what BOSH's director does in a task, and cupola at once: such a task has
// ended when it is recorded.
const (
	DryRun        Kind = "dry-run"
	CreateRelease Kind = "create-release"
	DeleteRelease Kind = "delete-release"
	Resolve       Kind = "resolve-problems" // where nothing had to be done
	CleanUp       Kind = "clean-up"
	ChangeDisk    Kind = "change-disk"
	ListVMs       Kind = "list-vms"
	FetchLogs     Kind = "fetch-logs"
	Scan          Kind = "scan"
	SSH           Kind = "ssh"
)

// Changing returns the kinds of tasks that change something. Lists leave out the others
// unless these are asked for, as BOSH's director does.
func Changing() []string {
	all := []Kind{Deploy, Start, Stop, Restart, Recreate, Delete, RunErrand, ExportRelease, DryRun, CreateRelease, DeleteRelease, Resolve, CleanUp, ChangeDisk}
	names := make([]string, len(all))
	for n, k := range all {
		names[n] = string(k)
	}
	return names
}

// Ended is something that was done at once.
type Ended struct {
	Deployment string // "" if it was done to none
	User       string
	Kind       Kind
	Result     string
	Output     string // of the task's type result
	Events     []cf.BOSHTaskEvent
}

// Record keeps what was done as a task.
func Record(tx *store.Tx, e Ended) (*cf.BOSHTask, error) {
	text, err := taskPlan{Output: e.Output}.encode()
	if err != nil {
		return nil, err
	}
	t := &cf.BOSHTask{DeploymentName: e.Deployment, Kind: string(e.Kind), User: e.User, State: cf.BOSHDone, Plan: text, Result: e.Result, StartedAt: tx.Now, EndedAt: tx.Now}
	if err := store.BOSHTasks.Insert(tx, t); err != nil {
		return nil, err
	}
	for n := range e.Events {
		e.Events[n].TaskGUID = t.GUID
		if err := store.BOSHTaskEvents.Insert(tx, &e.Events[n]); err != nil {
			return nil, err
		}
	}
	return t, store.BOSHTasks.DropEnded(tx, t.Kind, kept(e.Kind))
}

// kept is how many tasks of a kind are kept, those that have not ended apart: of those
// that only read fewer, since clients poll.
func kept(k Kind) int {
	switch k {
	case ListVMs, FetchLogs, Scan, SSH:
		return 20
	}
	return KeptTasks
}

// Output is what a task has for its client, besides the results of errands.
func Output(t *cf.BOSHTask) (string, error) {
	if len(t.Plan) == 0 {
		return "", nil
	}
	p, err := decodePlan(t.Plan)
	return cmp.Or(p.Output, t.Result), err
}
