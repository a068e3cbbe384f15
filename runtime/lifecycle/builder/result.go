//go:build linux

package builder

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"go.yaml.in/yaml/v3"

	"cupola/runtime/lifecycle/launcher"
	"cupola/runtime/lifecycle/stagelimits"
)

// Result is the file at -outputMetadata; the members are Cloud Foundry's.
type Result struct {
	LifecycleMetadata LifecycleMetadata `json:"lifecycle_metadata"`
	ProcessTypes      map[string]string `json:"process_types"`
	Processes         []Process         `json:"processes,omitempty"`
	Sidecars          []Sidecar         `json:"sidecars,omitempty"`
	ExecutionMetadata string            `json:"execution_metadata"`
	LifecycleType     string            `json:"lifecycle_type"` // always "buildpack"
}

// LifecycleMetadata names the buildpacks; the first two members are those of
// the last.
type LifecycleMetadata struct {
	BuildpackKey      string      `json:"buildpack_key,omitempty"`
	DetectedBuildpack string      `json:"detected_buildpack"`
	Buildpacks        []Buildpack `json:"buildpacks"`
}

// Buildpack is one that took part. Name and version are what it says itself
// in deps/<index>/config.yml.
type Buildpack struct {
	Key            string         `json:"key" yaml:"-"`
	Name           string         `json:"name" yaml:"name"`
	Version        string         `json:"version,omitempty" yaml:"version"`
	Config         *Config        `json:"config,omitempty" yaml:"config"`
	OutputMetadata map[string]any `json:"output_metadata,omitempty" yaml:"output_metadata"`
}

// Config is what a buildpack asks of the launcher.
type Config struct {
	EntrypointPrefix string `json:"entrypoint_prefix,omitempty" yaml:"entrypoint_prefix"`
}

// Process is a process type and its start command.
type Process struct {
	Type    string `json:"type"`
	Command string `json:"command"`
}

// Sidecar is a process that runs beside those of ProcessTypes. MemoryMB is 0
// when the buildpack named none.
type Sidecar struct {
	Name         string   `json:"name"`
	ProcessTypes []string `json:"process_types"`
	Command      string   `json:"command"`
	MemoryMB     int      `json:"memory,omitempty"`
}

func newResult(processes []process) Result {
	r := Result{ProcessTypes: map[string]string{}}
	for _, p := range processes {
		if targets := p.Platforms.CloudFoundry.SidecarFor; len(targets) > 0 {
			r.Sidecars = append(r.Sidecars, Sidecar{p.Type, targets, p.Command, p.Limits.MemoryMB})
			continue
		}
		r.Processes = append(r.Processes, Process{p.Type, p.Command})
		r.ProcessTypes[p.Type] = p.Command
	}
	return r
}

// writeResult completes r with the buildpacks of c and writes it and the
// droplet's staging information.
func (b *builder) writeResult(r Result, c choice) error {
	r.LifecycleType = "buildpack"
	if r.ProcessTypes == nil {
		r.ProcessTypes = map[string]string{}
	}
	for i, key := range c.keys {
		r.LifecycleMetadata.Buildpacks = append(r.LifecycleMetadata.Buildpacks, b.metadata(i, key))
	}
	last := &r.LifecycleMetadata.Buildpacks[len(c.keys)-1]
	if last.Name == "" {
		last.Name = c.detect
	}
	r.LifecycleMetadata.BuildpackKey = last.Key
	r.LifecycleMetadata.DetectedBuildpack = last.Name
	info := launcher.StagingInfo{DetectedBuildpack: last.Name, StartCommand: r.ProcessTypes["web"]}
	if last.Config != nil {
		info.Config.EntrypointPrefix = last.Config.EntrypointPrefix
	}
	if err := writeJSON(filepath.Join(b.contents, launcher.StagingInfoFile), info); err != nil {
		return err
	}
	return b.writeOutput(r)
}

// writeOutput writes the result, or says that it is more than what is read.
func (b *builder) writeOutput(r Result) error {
	text, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode %s: %w", filepath.Base(b.outputMetadata), err)
	}
	if len(text) > stagelimits.Result {
		return fmt.Errorf("the result of staging has %d bytes; at most %d are accepted: the buildpacks' config.yml and launch.yml declare too much", len(text), stagelimits.Result)
	}
	return os.WriteFile(b.outputMetadata, append(text, '\n'), 0o644)
}

// metadata is what the i-th buildpack says of itself; one that says nothing,
// or nothing legible, has just its key.
func (b *builder) metadata(i int, key string) Buildpack {
	bp := Buildpack{}
	text, err := readLimited(filepath.Join(b.depsDir(), b.depsIndex(i), "config.yml"))
	if err == nil {
		err = yaml.Unmarshal(text, &bp)
	}
	if err != nil {
		bp = Buildpack{}
	}
	bp.Key = key
	if _, err := json.Marshal(bp.OutputMetadata); err != nil {
		// YAML allows keys and values that JSON has no words for.
		bp.OutputMetadata = nil
	}
	return bp
}

func writeJSON(path string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode %s: %w", filepath.Base(path), err)
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}
