package lrp

import (
	"math"
	"time"
)

// Action is what a container does: Diego's nine, of which exactly one field is
// set. The zero value does nothing.
//
// An action without a LogSource has that of the action around it, the outermost
// that of RunInfo.Log.
type Action struct {
	Run          *Run
	Download     *Download
	Upload       *Upload
	Timeout      *Timeout
	EmitProgress *EmitProgress
	Try          *Try
	Parallel     *Group // all at once; ends when all have, or soon after one failed
	Serial       *Group // one after the other, until one fails
	Codependent  *Group // all at once; when one ends, so do the others, and that is a failure
}

// Run is one process.
type Run struct {
	Path      string
	Args      []string
	Dir       string
	Env       []EnvVar
	User      string // a name of the root filesystem's passwd, or "uid[:gid]"
	Nofile    uint64 // open files, cut to the daemon's own limit; 0: the cell's default (16384)
	Core      uint64 // bytes of a core file, cut to the daemon's own limit; 0: none is written
	Nproc     uint64 // processes of the user in this container; 0: no limit but MaxPids
	LogSource string
	// Capabilities are what a process has that is not root, without CAP_. Those that
	// root does not have in a container are left out.
	Capabilities []string
	// Stop is how it is asked to end: one signal after the other, and SIGKILL at
	// last. None is Diego's way: SIGTERM, and SIGKILL after 10 s.
	Stop  []Signal
	Quiet bool   // Diego's suppress_log_output
	Files []File // as RunInfo.Files, as RFC-0030 has it; all of a container's lie together
	// Peers are actions of other containers of the pod. Its standard input lets it send signals
	// to those that run when it starts; see contract.ScriptOptions.
	Peers []Peer
}

// Peer is an instance whose action is one process, by a name.
type Peer struct {
	Name string
	Key  Key
}

// AllFiles is the Nofile of a process that may open as many files as the daemon.
const AllFiles = math.MaxUint64

// Signal asks a process to end, and gives it time for that.
type Signal struct {
	Name string // TERM, INT or QUIT
	Wait time.Duration
}

// Download unpacks an archive (tar, plain or compressed, or zip) into the
// container.
type Download struct {
	Source
	Artifact  string // what it is called in the log; "" for not a word
	To        string // a directory; relative to the home of User
	User      string // whom the files belong to
	LogSource string
}

// Upload takes a file out of the container.
type Upload struct {
	Artifact string // what it is called in the log; "" for not a word
	From     string
	// To is an http or https URL, which gets a POST, or "blob:<name>": the cell
	// keeps the file, and Event.Outputs has it by that name.
	To        string
	User      string // who must be able to read it
	Like      string // sha256 in hex of an archive of the cell's own that the file may have files of, if it is one; "": none
	LogSource string
}

// Timeout fails if its action takes longer.
type Timeout struct {
	Action    Action
	After     time.Duration
	LogSource string
}

// EmitProgress says in the log when its action begins and how it ends.
type EmitProgress struct {
	Action        Action
	Start         string // "": nothing
	Success       string // "": nothing
	FailurePrefix string // "": nothing; else it, and the error after ": "
	LogSource     string
}

// Try never fails.
type Try struct {
	Action    Action
	LogSource string
}

// Group is several actions.
type Group struct {
	Actions   []Action
	LogSource string
}

// Source is where an archive comes from.
type Source struct {
	From     string // an http or https URL, or "blob:<sha256 in hex>": one of the cell's own, or "layer:<sha256 in hex>": of an image
	Checksum Checksum
	// CacheKey lets the cell keep the file, and ask only whether it has changed.
	CacheKey string
}

// Checksum is what a file must have; the zero value is any.
type Checksum struct {
	Algorithm string // md5, sha1, sha256 or sha512
	Value     string // in hex
}

// BlobScheme is the scheme of what the cell itself keeps.
const BlobScheme = "blob:"

// LayerScheme is the scheme of layers of images that the cell has in its cache.
const LayerScheme = "layer:"

// ImageLayer names a layer of an image as it was pulled, by its digest (sha256, hex).
func ImageLayer(digest string) Source { return Source{From: LayerScheme + digest} }

// Blobbed names an archive of the cell's own by its digest (sha256, hex).
func Blobbed(digest string) Source { return Source{From: BlobScheme + digest} }

// Action makes an Action of r.
func (r Run) Action() Action { return Action{Run: &r} }

// Action makes an Action of d.
func (d Download) Action() Action { return Action{Download: &d} }

// Action makes an Action of u.
func (u Upload) Action() Action { return Action{Upload: &u} }

// Within is a that fails if it takes longer than after.
func Within(after time.Duration, a Action) Action {
	return Action{Timeout: &Timeout{Action: a, After: after}}
}

// Tried is a that never fails.
func Tried(a Action) Action { return Action{Try: &Try{Action: a}} }

// Parallel does all actions at once.
func Parallel(all ...Action) Action { return Action{Parallel: &Group{Actions: all}} }

// Serial does one action after the other.
func Serial(all ...Action) Action { return Action{Serial: &Group{Actions: all}} }

// Codependent does all actions at once, as long as none ends.
func Codependent(all ...Action) Action { return Action{Codependent: &Group{Actions: all}} }

// IsZero reports whether a does nothing.
func (a Action) IsZero() bool { return a == Action{} }

// Inner lists the actions that a is made of; none for a leaf.
func (a Action) Inner() []Action {
	switch {
	case a.Timeout != nil:
		return []Action{a.Timeout.Action}
	case a.EmitProgress != nil:
		return []Action{a.EmitProgress.Action}
	case a.Try != nil:
		return []Action{a.Try.Action}
	case a.Parallel != nil:
		return a.Parallel.Actions
	case a.Serial != nil:
		return a.Serial.Actions
	case a.Codependent != nil:
		return a.Codependent.Actions
	}
	return nil
}

// Runs lists the processes of a, in the order in which it names them.
func (a Action) Runs() []*Run {
	if a.Run != nil {
		return []*Run{a.Run}
	}
	var all []*Run
	for _, inner := range a.Inner() {
		all = append(all, inner.Runs()...)
	}
	return all
}
