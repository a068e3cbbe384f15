package lrp

import "time"

// RunInfo is what a Desired and a Task share: what to run, and in which
// container. Paths are paths inside the container.
type RunInfo struct {
	RootFS        string // "preloaded:<stack>", "docker://host/name@sha256:<digest>"
	ImageUsername string // for a RootFS that is in a registry
	ImagePassword string
	Privileged    bool    // refused: no container is
	Layers        []Layer // lowest first
	// CachedDependencies are fetched and unpacked once a machine, and shown
	// read-only.
	CachedDependencies []CachedDependency
	// Lifecycle shows cupola's programs at contract.LifecycleDir, where Cloud
	// Foundry's apps find theirs.
	Lifecycle bool
	// Files are shown read-only at FilesPath, before anything runs. The cell can
	// replace them while the container runs.
	Files []File
	// Trees are shown read-only, each at its own path. They are in memory, too.
	Trees []Tree
	// AddressMark stands for the container's address in Trees, and in arguments and
	// environments of its processes. "" is none.
	AddressMark string
	// Hostnames are further names of the container's own address, which its /etc/hosts has:
	// it finds itself by them before others may find it in DNS.
	Hostnames []string

	Env      []EnvVar // later entries win
	Setup    Action   // before all else; a failure ends the container
	Action   Action
	Sidecars []Sidecar

	// Checks watch the container. Where there is none, Monitor does: an action
	// that is done again and again, and fails when the container is not healthy.
	Checks       CheckDefinition
	Monitor      Action
	StartTimeout time.Duration // 0: the check may take for ever to pass first

	MemoryMB  int // 0: no limit
	DiskMB    int // 0: no limit
	MaxPids   int // 0: the cell's default
	CPUWeight int // 1..100, Diego's cpu_weight
	// CPUs is how many of the machine's processors it gets at most; 0: no limit.
	CPUs             float64
	LogRateLimitByte int64 // bytes a second; -1: no limit
	Ports            []uint16
	// Pod names the containers that share one network: an address, ports and a
	// loopback. "" is its own network.
	Pod         string
	Egress      []EgressRule // until a Reach has others for EgressGroup
	EgressGroup string       // "": Egress is for good
	// PolicyGroup is whom network policies know it by, Diego's network property
	// policy_group_id; "": it has none.
	PolicyGroup string

	Constraint Constraint // which cells may run it; immutable
	// Volumes are mounted before anything runs.
	Volumes []Volume
	// VolumeDrivers are the drivers that mount its volumes.
	VolumeDrivers []string

	// OrganizationalUnits are those of the instance identity certificate
	// ("app:<guid>", …), Diego's certificate_properties; none: no certificate.
	OrganizationalUnits []string
	// ServerNames are the DNS names of a certificate that servers in the container show to clients; none: no
	// certificate. It replaces that of OrganizationalUnits, and has an ECDSA key.
	ServerNames []string
	// SystemCertificatesPath is where the certificates lie that the container
	// should trust, Diego's trusted_system_certificates_path; "" for nowhere.
	SystemCertificatesPath string

	Log LogTarget

	ResultFile string // read back into Event.Result; "" for none
}

// EnvVar is one environment variable.
type EnvVar struct{ Name, Value string }

// Sidecar is a further action of the same container. When one ends, so does
// the container.
type Sidecar struct {
	Action   Action
	MemoryMB int // 0: no more than the container's limit
	DiskMB   int // counted with the container's
}

// Layer is an archive (tar, plain or compressed, or zip) that lies unpacked in
// the root filesystem.
type Layer struct {
	Source
	Name string // what it is called in the log; "" for not a word
	Dest string
	// Exclusive unpacks it only for this container. Otherwise it is unpacked
	// once per machine, and containers share the files copy-on-write.
	Exclusive bool
	// User is whom the files of an exclusive layer belong to; "": the user of the
	// container's first process.
	User string
}

// CachedDependency is an archive that all containers share, read-only unless it
// is Writable: then each container has its own changes.
type CachedDependency struct {
	Source
	Name      string // what it is called in the log; "" for not a word
	To        string
	LogSource string
	Writable  bool
}

// CheckType says how a check looks at a container.
type CheckType string

// The check types of Cloud Foundry, and those of Kubernetes.
const (
	CheckProcess CheckType = "process" // it lives: that is enough
	CheckPort    CheckType = "port"
	CheckHTTP    CheckType = "http"
	CheckExec    CheckType = "exec" // a program in the container ends well
	CheckGRPC    CheckType = "grpc" // grpc.health.v1 says SERVING at Port
)

// CheckDefinition says how a container is watched. Lists of which no check has
// anything to probe are passed at once.
type CheckDefinition struct {
	// Liveness checks must all pass once before the container counts as running;
	// from then on the first that fails ends it.
	Liveness []Check
	// Readiness checks, while not all of them pass, keep the container from
	// getting requests.
	Readiness []Check
	// Active checks make the container active while all of them pass, and passive
	// while not: it has a Role. Without any it has none.
	Active    []Check
	LogSource string // of failures; "" is HEALTH
}

// Check is a health check. The zero value is CheckProcess.
type Check struct {
	Type              CheckType
	Port              uint16
	Path              string        // CheckHTTP
	MaxStatus         int           // CheckHTTP: answers from 200 to it pass; 0: 200 alone, as in Diego
	TLS               bool          // CheckHTTP: over https, without verifying the certificate
	Host              string        // CheckHTTP: who is asked for; it is the container that is asked
	Headers           []Header      // CheckHTTP
	Service           string        // CheckGRPC; "" is the server itself
	Run               *Run          // CheckExec
	InvocationTimeout time.Duration // 0: 1 s
	Interval          time.Duration // 0: 30 s
	InitialDelay      time.Duration // before the first; of liveness it is not heeded
	// Failures is how many in a row make a container ill, Successes how many make
	// it well; 0: 1.
	Failures, Successes int
}

// Asks reports whether there is anything to ask: the life of a process is seen.
func (c Check) Asks() bool {
	switch c.Type {
	case CheckPort, CheckHTTP, CheckExec, CheckGRPC:
		return true
	}
	return false
}

// Header is a field of a request.
type Header struct{ Name, Value string }

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
