package cf

import "encoding/json"

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
	Rev             int         // grows when STARTED becomes STOPPED: instances of an older one are replaced
	CurrentRevision string      // GUID; "" for none
	Credentials     Credentials // sealed at rest
	BindingForm     string      // how it learns of its service bindings: the name of an app feature; "" for VCAP_SERVICES
	PoolGUID        string      // its own placement pool; "" for that of its space
}

// The types of a Lifecycle.
const (
	LifecycleBuildpack = "buildpack"
	LifecycleDocker    = "docker"
	LifecycleCNB       = "cnb" // Cloud Native Buildpacks
)

// Lifecycle says how an app's package becomes a droplet.
type Lifecycle struct {
	Type       string
	Buildpacks []string // names or URLs, in order; empty: detect
	Stack      string   // the name of a stack, or an image's reference
	// Image is the image that Stack, or the docker lifecycle's package, was
	// when a build took it; nil for a stack with a name, and until then.
	Image *StackImage `json:",omitempty"`
	// Packages are the images of those of Buildpacks that are images, once a build took them.
	Packages []BuildpackImage `json:",omitempty"`
}

// BuildpackImage is an image with Cloud Native Buildpacks, which never changes.
type BuildpackImage struct {
	Name      string   // as in Lifecycle.Buildpacks
	Reference string   // with the digest
	Buildpack string   // which of its buildpacks is meant: ID@VERSION
	Layers    []string // as they were pulled, by their SHA-256 in hex; the lowest first
}

// StackImage is an image that containers run on, which never changes.
type StackImage struct {
	Reference string   // with the digest
	Compat    string   // what CF_STACK says
	Kernel    string   `json:",omitempty"` // the release of the machine's kernel at that time; "" of an older cupola
	Env       []string `json:",omitempty"` // NAME=value; of an image of the docker lifecycle
}

// Credentials are those of image registries by their host, as the user wrote
// it.
type Credentials map[string]Credential

// Credential is what a registry asks for: a user with a password, or a token,
// which serves buildpacks only.
type Credential struct {
	Username string `json:"username,omitempty"`
	Password string `json:"password,omitempty"`
	Token    string `json:"token,omitempty"`
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
	RevisionGUID   string    // that it was started with; "" for none
	DropletGUID    string    // that it was started with; "" for the app's
	Rev            int       // grows when it alone is restarted
	Placement      Placement // that it was started with
	// Services are the bindings that it was started with, as server/desire
	// writes them; nil: those that the app has now. Sealed at rest.
	Services json.RawMessage
	// BindingForm is the app's as of the start, as Services are.
	BindingForm string
	User        string
	Sidecars    []Sidecar // of the droplet or the user
}

// CheckTypeMessage is Cloud Controller's message for an unknown type of a
// HealthCheck; it follows the name of the check.
const CheckTypeMessage = ` type must be "port", "process", or "http"`

// IsCheckType reports whether a HealthCheck can have the type.
func IsCheckType(t string) bool { return t == "port" || t == "process" || t == "http" }

// HealthCheck is the health_check or readiness_health_check of a process.
// Durations are in seconds, 0 is unset.
type HealthCheck struct {
	Type              string `json:"type"` // port, process, http
	Endpoint          string `json:"endpoint,omitempty"`
	Timeout           int    `json:"timeout,omitempty"` // of the start
	InvocationTimeout int    `json:"invocation_timeout,omitempty"`
	Interval          int    `json:"interval,omitempty"`
}

// Sidecar is a further process besides processes of some types.
type Sidecar struct {
	GUID         string   `json:"guid"`
	Name         string   `json:"name"`
	Command      string   `json:"command"`
	ProcessTypes []string `json:"process_types"`
	MemoryMB     int      `json:"memory_in_mb,omitempty"`
	Origin       string   `json:"origin,omitempty"` // "user" or "buildpack"
}
