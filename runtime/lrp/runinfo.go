package lrp

import "time"

// RunInfo is what a Desired and a Task share: what to run, and in which
// container. Paths are paths inside the container.
type RunInfo struct {
	RootFS string  // "preloaded:<stack>", "docker://host/name@sha256:<digest>"
	Layers []Layer // unpacked once a machine and shared read-only, lowest first
	Inputs []Input // unpacked into this container alone, in order
	Files  []File  // written before the action starts

	Env      []EnvVar // later entries win
	Action   Run
	Sidecars []Sidecar

	Check        Check         // liveness: when it fails the container is stopped
	Readiness    Check         // when it fails the container only loses its routes
	StartTimeout time.Duration // 0: the check may take for ever to pass first
	Timeout      time.Duration // 0: the action may run for ever

	MemoryMB         int   // 0: no limit
	DiskMB           int   // 0: no limit
	MaxPids          int   // 0: the cell's default
	CPUWeight        int   // 1..100, Diego's cpu_weight
	LogRateLimitByte int64 // bytes a second; -1: no limit
	Ports            []uint16
	Egress           []EgressRule

	Constraint Constraint // which cells may run it; immutable
	// VolumeDrivers are the drivers that mount its volumes.
	VolumeDrivers []string

	Log LogTarget

	ResultFile string   // read back into Event.Result; "" for none
	Outputs    []Output // files kept as blobs when the action ends well
}

// EnvVar is one environment variable.
type EnvVar struct{ Name, Value string }

// Run is Diego's RunAction: one process.
type Run struct {
	Path   string
	Args   []string
	Dir    string
	Env    []EnvVar
	User   string // a name of the root filesystem's passwd, or "uid[:gid]"
	Nofile uint64 // 0: the cell's default (16384)
}

// Sidecar is a further process of the same container. When one ends, so does
// the container: Diego's codependent action.
type Sidecar struct {
	Name     string
	Run      Run
	MemoryMB int // 0: shares the container's
}

// Layer is an archive by digest whose content is the same for every container
// that names it.
type Layer struct {
	Digest string // sha256, hex
	Dest   string
}

// Input is an archive (zip or tar.gz) that a container gets a copy of.
type Input struct {
	Digest   string // sha256, hex
	Dest     string
	Optional bool // Diego's try: a missing one is no error
}

// File is a small file of the container, owned by root, readable by all.
type File struct {
	Path    string
	Content []byte
}

// Output is a file that the action leaves behind.
type Output struct {
	Name     string // "droplet", "cache"
	Path     string
	Optional bool
}

// CheckType says how a check looks at a container.
type CheckType string

// The check types of Cloud Foundry.
const (
	CheckProcess CheckType = "process" // it lives: that is enough
	CheckPort    CheckType = "port"
	CheckHTTP    CheckType = "http"
)

// Check is a health check. The zero value is CheckProcess.
type Check struct {
	Type              CheckType
	Port              uint16
	Path              string        // CheckHTTP
	InvocationTimeout time.Duration // 0: 1 s
	Interval          time.Duration // 0: 30 s
}

// EgressRule is a rule of a CF security group: where a container may connect.
type EgressRule struct {
	Protocol     string   // tcp, udp, icmp, icmpv6, all
	Destinations []string // IP, CIDR or "a-b"
	Ports        string   // "443,8000-8100"; tcp and udp only
	ICMPType     int
	ICMPCode     int
	Log          bool
}

// LogTarget says under which name a container's output goes to the log cache.
type LogTarget struct {
	GUID     string            // source_id: the app GUID
	Source   string            // source_type: APP/PROC/WEB, STG, APP/TASK/x
	Instance string            // instance_id: the index; "0" for tasks
	Tags     map[string]string // further tags of each envelope
}
