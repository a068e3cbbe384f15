package desire

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"

	"cupola/runtime/contract"
	"cupola/store/cf"
)

// ReadResult fills in what a staging's result.json says of the droplet it
// made: buildpacks, process types, sidecars and execution metadata. named tells
// whether the user named the buildpacks; else the last one was detected.
func ReadResult(text []byte, d *cf.Droplet, named bool) error {
	var r contract.Result
	if len(text) > contract.MaxResult {
		return fmt.Errorf("staging result has %d bytes, more than %d", len(text), contract.MaxResult)
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return fmt.Errorf("read staging result: %w", err)
	}
	if r.LifecycleType != contract.LifecycleBuildpack {
		return fmt.Errorf("staging result is of lifecycle %q", r.LifecycleType)
	}
	if err := checkResult(r); err != nil {
		return err
	}
	d.ProcessTypes, d.ExecutionMetadata = r.ProcessTypes, r.ExecutionMetadata
	if d.ProcessTypes == nil {
		d.ProcessTypes = map[string]string{}
	}
	d.Buildpacks = usedBuildpacks(r, named)
	d.Sidecars = nil
	for _, s := range r.Sidecars {
		d.Sidecars = append(d.Sidecars, cf.Sidecar{Name: s.Name, Command: s.Command, ProcessTypes: s.ProcessTypes,
			MemoryMB: max(s.MemoryMB, 0), Origin: "buildpack"})
	}
	return nil
}

// checkResult refuses what is too much for one app.
func checkResult(r contract.Result) error {
	err := errors.Join(contract.CheckCount("process types", len(r.ProcessTypes), contract.MaxProcesses), contract.CheckCount("sidecars", len(r.Sidecars), contract.MaxSidecars),
		contract.CheckCount("buildpacks", len(r.LifecycleMetadata.Buildpacks), contract.MaxBuildpacks), contract.CheckMetadata(r.ExecutionMetadata))
	for kind, command := range r.ProcessTypes {
		err = cmp.Or(err, contract.CheckProcess(kind, command))
	}
	for _, s := range r.Sidecars {
		err = cmp.Or(err, contract.CheckSidecar(s.Name, s.Command, s.ProcessTypes))
	}
	if err != nil {
		return stagingError("result of the buildpacks refused: " + err.Error())
	}
	return nil
}

func usedBuildpacks(r contract.Result, named bool) []cf.DropletBuildpack {
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
