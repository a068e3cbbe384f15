package contract

import "time"

// CommandMonit is the command of Helper that runs what BOSH's agent leaves to monit: see the verbs below.
const CommandMonit = "monit"

// The verbs of CommandMonit.
const (
	MonitInstall = "install" // FROM TO GROUP: gives a job its directory, writable as on a BOSH virtual machine
	MonitRun     = "run"     // DIR CHECKS, as JSON: starts them, starts them again, and stops them at SIGTERM; DIR is the job's
	MonitExec    = "exec"    // DIR PROGRAM ARGUMENT…: runs a program where "run" does, or here if that does not run
	MonitDrain   = "drain"   // the same; from then on "run" starts nothing that ends
	MonitTest    = "test"    // MonitCondition, as JSON: fails if it holds for the container that it runs in
	MonitSummary = "summary" // CHECKS, as JSON: fails if a process does not run
)

// MonitCheck is a "check process" of a monit file. Those that it depends on stand before it in a list.
type MonitCheck struct {
	Name    string
	Pidfile string
	Start   MonitProgram
	Stop    MonitProgram
	Depends []string `json:",omitempty"`
	// Conditions are what else is looked at while the process runs.
	Conditions []MonitCondition `json:",omitempty"`
}

// MonitCondition is an "if": when it has held for so many looks in a row, the process is restarted, or else a program is run.
// One of Memory and Port is set.
type MonitCondition struct {
	Text   string        // as in the file
	Memory uint64        `json:",omitempty"` // bytes: the process, with its children, has more
	Port   uint16        `json:",omitempty"` // it does not answer
	Host   string        `json:",omitempty"` // of Port; "" is the container's own
	Path   string        `json:",omitempty"` // of Port: that an HTTP server answers; "" is any server
	Wait   time.Duration `json:",omitempty"` // of Port: how long for
	Looks  int
	Exec   MonitProgram `json:",omitzero"`
}

// MonitProgram is a start or a stop program. Without Args there is none.
type MonitProgram struct {
	Args    []string      `json:",omitempty"`
	User    string        `json:",omitempty"` // a name or a number; "" is root
	Group   string        `json:",omitempty"`
	Timeout time.Duration // the process must run, or have ended, before it is over
}
