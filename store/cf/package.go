package cf

// PackageState is the state of a package.
type PackageState string

// The states of a package, in Cloud Controller's words.
const (
	PackageAwaiting   PackageState = "AWAITING_UPLOAD"
	PackageProcessing PackageState = "PROCESSING_UPLOAD"
	PackageReady      PackageState = "READY"
	PackageFailed     PackageState = "FAILED"
	PackageCopying    PackageState = "COPYING"
	PackageExpired    PackageState = "EXPIRED"
)

// Package is the source of an app.
type Package struct {
	Resource
	Metadata
	AppGUID string
	Type    string // "bits" or "docker"
	State   PackageState
	Error   string
	Digest  string // sha256 of the blob (a zip), hex; "" until READY
	Size    int64  // bytes
	Image   string // docker
	// Credential is for the registry of Image; sealed at rest.
	Credential Credential
}

// BuildState is the state of a build.
type BuildState string

// The states of a build.
const (
	BuildStaging BuildState = "STAGING"
	BuildStaged  BuildState = "STAGED"
	BuildFailed  BuildState = "FAILED"
)

// Build is one staging of a package.
type Build struct {
	Resource
	Metadata
	AppGUID      string
	PackageGUID  string
	DropletGUID  string // "" until it is staged: while STAGING, the release command of its app runs with it
	State        BuildState
	Error        string // "NoAppDetectedError - An app was not…"
	Lifecycle    Lifecycle
	MemoryMB     int
	DiskMB       int
	LogRateLimit int64
	CreatedBy    Actor
	Env          map[string]string // app env at the time, sealed at rest
	Credentials  Credentials       // sealed at rest
	Placement    Placement         // of the space at the time
	Buildpack    string            // that was asked for first, without secrets; "" for detection
	Inputs       string            // a fingerprint of what it is staged from; "" until it begins, and if they cannot be known
}

// DropletState is the state of a droplet.
type DropletState string

// The states of a droplet.
const (
	DropletAwaiting   DropletState = "AWAITING_UPLOAD"
	DropletProcessing DropletState = "PROCESSING_UPLOAD"
	DropletCopying    DropletState = "COPYING"
	DropletStaged     DropletState = "STAGED"
	DropletExpired    DropletState = "EXPIRED"
	DropletFailed     DropletState = "FAILED"
)

// Droplet is an app made ready to run.
type Droplet struct {
	Resource
	Metadata
	AppGUID           string
	PackageGUID       string // "" for an uploaded one
	BuildGUID         string
	State             DropletState
	Error             string
	Digest            string // sha256 of the tar.gz, hex
	Size              int64
	Stack             string
	Lifecycle         Lifecycle
	Buildpacks        []DropletBuildpack
	ProcessTypes      map[string]string // type → command
	Sidecars          []Sidecar
	ExecutionMetadata string
	Image             string // docker
}

// DropletBuildpack is a buildpack that took part in making a droplet.
type DropletBuildpack struct {
	Name          string `json:"name"`
	DetectOutput  string `json:"detect_output"`
	Version       string `json:"version"`
	BuildpackName string `json:"buildpack_name"`
}
