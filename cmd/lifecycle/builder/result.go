package builder

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"go.yaml.in/yaml/v3"

	"cupola/cmd/lifecycle/launch"
	"cupola/runtime/contract"
)

func newResult(processes []process) contract.Result {
	r := contract.Result{ProcessTypes: map[string]string{}}
	for _, p := range processes {
		if targets := p.Platforms.CloudFoundry.SidecarFor; len(targets) > 0 {
			r.Sidecars = append(r.Sidecars, contract.Sidecar{Name: p.Type, ProcessTypes: targets, Command: p.Command, MemoryMB: p.Limits.MemoryMB})
			continue
		}
		r.Processes = append(r.Processes, contract.Process{Type: p.Type, Command: p.Command})
		r.ProcessTypes[p.Type] = p.Command
	}
	return r
}

// writeResult completes r with the buildpacks of c and writes it and the
// droplet's staging information.
func (b *builder) writeResult(r contract.Result, c choice) error {
	r.LifecycleType, r.Phases = contract.LifecycleBuildpack, b.phases
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
	info := launch.StagingInfo{DetectedBuildpack: last.Name, StartCommand: r.ProcessTypes["web"]}
	if last.Config != nil {
		info.Config.EntrypointPrefix = last.Config.EntrypointPrefix
	}
	if err := writeJSON(filepath.Join(b.contents, launch.StagingInfoFile), info); err != nil {
		return err
	}
	return b.writeOutput(r)
}

// writeOutput writes the result, or says that it is more than what is read.
func (b *builder) writeOutput(r contract.Result) error {
	text, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode %s: %w", filepath.Base(b.outputMetadata), err)
	}
	if len(text) > contract.MaxResult {
		return fmt.Errorf("the result of staging has %d bytes; at most %d are accepted: the buildpacks' config.yml and launch.yml declare too much", len(text), contract.MaxResult)
	}
	return os.WriteFile(b.outputMetadata, append(text, '\n'), 0o644)
}

// metadata is what the i-th buildpack says of itself; one that says nothing,
// or nothing legible, has just its key.
func (b *builder) metadata(i int, key string) contract.UsedBuildpack {
	bp := contract.UsedBuildpack{}
	text, err := readLimited(filepath.Join(b.depsDir(), b.depsIndex(i), "config.yml"))
	if err == nil {
		err = yaml.Unmarshal(text, &bp)
	}
	if err != nil {
		bp = contract.UsedBuildpack{}
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
