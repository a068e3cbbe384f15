package contract

import (
	"fmt"
	"time"
)

// Where a staging's inputs and outputs are in its container: the defaults of
// Cloud Foundry's builder.
const (
	StagingApp        = "/tmp/app"                // the package, unpacked
	StagingBuildpacks = "/tmp/buildpacks"         // those of admins, each in its BuildpackDir
	StagingDownloads  = "/tmp/buildpackdownloads" // those by URL, each in its BuildpackDir
	StagingOldCache   = "/tmp/cache"              // the build cache of the app's last staging, unpacked
	StagingNewCache   = "/tmp/output-cache"       // the build cache of this one, packed
	StagingDroplet    = "/tmp/droplet"
	StagingResult     = "/tmp/result.json" // a Result
)

// BuildpackDir is the name of a buildpack's directory in StagingBuildpacks,
// StagingDownloads and the build cache: 16 hex digits, the XXH64 of its name or
// URL.
func BuildpackDir(buildpack string) string {
	return fmt.Sprintf("%016x", xxh64(buildpack))
}

// Where a staging by Cloud Native Buildpacks has the app and the buildpacks' layers, and
// where a droplet has them: the defaults of cnbapplifecycle.
const (
	CNBWorkspace  = Home + "/workspace"
	CNBLayers     = Home + "/layers"
	StagingImages = "/tmp/buildpackimages" // buildpacks that are images, each in its BuildpackDir
)

// The types of a Result.
const (
	LifecycleBuildpack = "buildpack"
	LifecycleCNB       = "cnb"
)

// Result is what the builder writes to StagingResult.
type Result struct {
	LifecycleMetadata LifecycleMetadata `json:"lifecycle_metadata"`
	ProcessTypes      map[string]string `json:"process_types"`
	Processes         []Process         `json:"processes,omitempty"`
	Sidecars          []Sidecar         `json:"sidecars,omitempty"`
	ExecutionMetadata string            `json:"execution_metadata"`
	LifecycleType     string            `json:"lifecycle_type"`
	Phases            []Phase           `json:"phases,omitempty"` // in order; at most MaxPhases
}

// MaxPhases is how many phases a Result tells of.
const MaxPhases = 100

// Phase is a script of a buildpack that ran.
type Phase struct {
	Name      string    `json:"name"`      // "detect", "supply", "finalize", …
	Buildpack string    `json:"buildpack"` // its key
	Began     time.Time `json:"began"`
	Ended     time.Time `json:"ended"`
	Failed    bool      `json:"failed,omitempty"` // of a detect script: it does not take the app
}

// LifecycleMetadata names the buildpacks; the first two members are those of
// the last.
type LifecycleMetadata struct {
	BuildpackKey      string          `json:"buildpack_key,omitempty"`
	DetectedBuildpack string          `json:"detected_buildpack"`
	Buildpacks        []UsedBuildpack `json:"buildpacks"`
}

// UsedBuildpack is a buildpack that took part in a staging. All but its key is
// what it says of itself in deps/<index>/config.yml.
type UsedBuildpack struct {
	Key            string          `json:"key" yaml:"-"`
	Name           string          `json:"name" yaml:"name"`
	Version        string          `json:"version,omitempty" yaml:"version"`
	Config         *LauncherConfig `json:"config,omitempty" yaml:"config"`
	OutputMetadata map[string]any  `json:"output_metadata,omitempty" yaml:"output_metadata"`
}

// LauncherConfig is the part of a buildpack's config.yml that the launcher obeys.
type LauncherConfig struct {
	EntrypointPrefix string `json:"entrypoint_prefix,omitempty" yaml:"entrypoint_prefix"`
}

// Process is a process type and its start command.
type Process struct {
	Type    string `json:"type"`
	Command string `json:"command"`
}

// Sidecar is a process that runs next to those of ProcessTypes. MemoryMB is 0
// when the buildpack named none.
type Sidecar struct {
	Name         string   `json:"name"`
	ProcessTypes []string `json:"process_types"`
	Command      string   `json:"command"`
	MemoryMB     int      `json:"memory,omitempty"`
}
