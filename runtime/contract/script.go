package contract

// CommandScript is the command of Helper that runs a script of a BOSH job: OPTIONS PROGRAM ARGUMENT…, the first of which are
// ScriptOptions as JSON. It ends as the program does, after what that left behind has had time to end.
const CommandScript = "script"

// ScriptOptions say what a script finds.
type ScriptOptions struct {
	// Peers are the processes of other containers that the script may send signals to. Each that runs is a packet on the socket that
	// is the standard input: its name, with the socket that takes the numbers of signals as bytes, and ends with the process.
	Peers []ScriptPeer `json:",omitempty"`
	// Pidfiles is the directory of their pidfiles: PEER.pid.
	Pidfiles string `json:",omitempty"`
}

// ScriptPeer is a process by its name, and what it runs.
type ScriptPeer struct{ Name, Executable string }

// Flags of Init, which then is not a container's first process.
const (
	InitRelay   = "--relay"    // DESCRIPTOR: signals the process that a pidfd is of as its standard input says
	InitStandIn = "--stand-in" // NAME: says on its standard input what it is signalled
)
