package desire

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"

	"cupola/runtime/lifecycle/stagelimits"
	"cupola/store/cf"
)

// result is the builder's result.json, as far as it is looked at.
type result struct {
	LifecycleMetadata struct {
		DetectedBuildpack string `json:"detected_buildpack"`
		Buildpacks        []struct {
			Key     string `json:"key"`
			Name    string `json:"name"`
			Version string `json:"version"`
		} `json:"buildpacks"`
	} `json:"lifecycle_metadata"`
	ProcessTypes map[string]string `json:"process_types"`
	Sidecars     []struct {
		Name         string   `json:"name"`
		ProcessTypes []string `json:"process_types"`
		Command      string   `json:"command"`
		MemoryMB     int      `json:"memory"`
	} `json:"sidecars"`
	ExecutionMetadata string `json:"execution_metadata"`
	LifecycleType     string `json:"lifecycle_type"`
}

// ReadResult fills in what a staging's result.json says of the droplet it
// made: buildpacks, process types, sidecars and execution metadata. named tells
// whether the user named the buildpacks; else the last one was detected.
func ReadResult(text []byte, d *cf.Droplet, named bool) error {
	var r result
	if len(text) > stagelimits.Result {
		return fmt.Errorf("staging result has %d bytes, more than %d", len(text), stagelimits.Result)
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return fmt.Errorf("read staging result: %w", err)
	}
	if r.LifecycleType != cf.LifecycleBuildpack {
		return fmt.Errorf("staging result is of lifecycle %q", r.LifecycleType)
	}
	if err := r.check(); err != nil {
		return err
	}
	d.ProcessTypes, d.ExecutionMetadata = r.ProcessTypes, r.ExecutionMetadata
	if d.ProcessTypes == nil {
		d.ProcessTypes = map[string]string{}
	}
	d.Buildpacks = r.buildpacks(named)
	d.Sidecars = nil
	for _, s := range r.Sidecars {
		d.Sidecars = append(d.Sidecars, cf.Sidecar{Name: s.Name, Command: s.Command, ProcessTypes: s.ProcessTypes,
			MemoryMB: max(s.MemoryMB, 0), Origin: "buildpack"})
	}
	return nil
}

// check refuses what is too much for one app.
func (r result) check() error {
	err := errors.Join(stagelimits.Count("process types", len(r.ProcessTypes), stagelimits.Processes), stagelimits.Count("sidecars", len(r.Sidecars), stagelimits.Sidecars),
		stagelimits.Count("buildpacks", len(r.LifecycleMetadata.Buildpacks), stagelimits.Buildpacks), stagelimits.Metadata(r.ExecutionMetadata))
	for kind, command := range r.ProcessTypes {
		err = cmp.Or(err, stagelimits.Process(kind, command))
	}
	for _, s := range r.Sidecars {
		err = cmp.Or(err, stagelimits.Sidecar(s.Name, s.Command, s.ProcessTypes))
	}
	if err != nil {
		return stagingError("result of the buildpacks refused: " + err.Error())
	}
	return nil
}

func (r result) buildpacks(named bool) []cf.DropletBuildpack {
	var list []cf.DropletBuildpack
	for i, b := range r.LifecycleMetadata.Buildpacks {
		p := cf.DropletBuildpack{Name: b.Key, BuildpackName: b.Name, Version: b.Version}
		if !named && i == len(r.LifecycleMetadata.Buildpacks)-1 {
			p.DetectOutput = r.LifecycleMetadata.DetectedBuildpack
		}
		list = append(list, p)
	}
	return list
}
