package desire

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"path"

	"cupola/runtime/contract"
	"cupola/store/cf"
)

// ReadResult fills in what a staging's result.json says of the droplet it
// made: buildpacks, process types, sidecars and execution metadata. Its errors are
// BuildErrors.
func ReadResult(text []byte, d *cf.Droplet) error {
	var r contract.Result
	if len(text) > contract.MaxResult {
		return malformed("it has %d bytes, more than %d", len(text), contract.MaxResult)
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return malformed("%v", err)
	}
	if want := resultType(d.Lifecycle); r.LifecycleType != want {
		return malformed("its lifecycle is %q", r.LifecycleType)
	}
	if err := checkResult(r); err != nil {
		return err
	}
	d.ProcessTypes, d.ExecutionMetadata = r.ProcessTypes, r.ExecutionMetadata
	if d.ProcessTypes == nil {
		d.ProcessTypes = map[string]string{}
	}
	d.Buildpacks = usedBuildpacks(r.LifecycleMetadata)
	d.Sidecars = nil
	for _, s := range r.Sidecars {
		d.Sidecars = append(d.Sidecars, cf.Sidecar{Name: s.Name, Command: s.Command, ProcessTypes: s.ProcessTypes,
			MemoryMB: max(s.MemoryMB, 0), Origin: "buildpack"})
	}
	return nil
}

// resultType is what the result of a lifecycle says that it is.
func resultType(l cf.Lifecycle) string {
	if l.Type == cf.LifecycleCNB {
		return contract.LifecycleCNB
	}
	return contract.LifecycleBuildpack
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

// malformed is the error of a result that cannot be read (CC:
// StagingCompletionHandler#handle_success).
func malformed(format string, args ...any) error {
	e := stagingError("Malformed message from Diego stager")
	e.Cause = fmt.Sprintf("the buildpacks' "+path.Base(contract.StagingResult)+" cannot be read: "+format, args...)
	return e
}

// usedBuildpacks are those of a result. The last one, and others of its name, have
// the detect output, named or detected: it is what the last one says that it is
// called (CC: DropletModel#set_buildpack_receipt, DropletPresenter#droplet_buildpack_info).
func usedBuildpacks(m contract.LifecycleMetadata) []cf.DropletBuildpack {
	var list []cf.DropletBuildpack
	for _, b := range m.Buildpacks {
		list = append(list, cf.DropletBuildpack{Name: b.Key, BuildpackName: b.Name, Version: b.Version})
	}
	for i := range list {
		if list[i].Name == list[len(list)-1].Name {
			list[i].DetectOutput = m.DetectedBuildpack
		}
	}
	return list
}
