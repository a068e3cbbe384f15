package cf

// AppState is what a user wants of an app.
type AppState string

// The states of an app.
const (
	Started AppState = "STARTED"
	Stopped AppState = "STOPPED"
)

// App is an app.
type App struct {
	Resource
	Metadata
	Name            string
	SpaceGUID       string
	State           AppState
	Lifecycle       Lifecycle
	Env             map[string]string // sealed at rest
	DropletGUID     string            // the current droplet; "" for none
	SSHEnabled      bool
	RevisionsOn     bool
	Rev             int    // grows when STARTED becomes STOPPED: instances of an older one are replaced
	CurrentRevision string // GUID; "" for none
}

// The types of a Lifecycle.
const (
	LifecycleBuildpack = "buildpack"
	LifecycleDocker    = "docker"
)

// Lifecycle says how an app's package becomes a droplet.
type Lifecycle struct {
	Type       string
	Buildpacks []string // names or URLs, in order; empty: detect
	Stack      string   // the name of a stack
}

// Process is one type of process of an app.
type Process struct {
	Resource
	Metadata
	AppGUID        string
	Type           string // "web", …
	Command        string // "" : the droplet's
	Instances      int
	MemoryMB       int
	DiskMB         int
	LogRateLimit   int64 // bytes a second; -1: no limit
	HealthCheck    HealthCheck
	ReadinessCheck HealthCheck
	Version        string // changes whenever instances must be replaced
	RevisionGUID   string
	User           string
	Sidecars       []Sidecar // of the droplet or the user
}

// HealthCheck is the health_check or readiness_health_check of a process.
// Durations are in seconds, 0 is unset.
type HealthCheck struct {
	Type              string `json:"type"` // port, process, http
	Endpoint          string `json:"endpoint,omitempty"`
	Timeout           int    `json:"timeout,omitempty"` // of the start
	InvocationTimeout int    `json:"invocation_timeout,omitempty"`
	Interval          int    `json:"interval,omitempty"`
}

// Sidecar is a further process beside processes of some types.
type Sidecar struct {
	GUID         string   `json:"guid"`
	Name         string   `json:"name"`
	Command      string   `json:"command"`
	ProcessTypes []string `json:"process_types"`
	MemoryMB     int      `json:"memory_in_mb,omitempty"`
	Origin       string   `json:"origin,omitempty"` // "user" or "buildpack"
}
