package cnb

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"cupola/cmd/lifecycle/builder"
	"cupola/cmd/lifecycle/toml"
	"cupola/runtime/contract"
)

// export writes the cache, the result and the droplet.
func (s *staging) export(all []*descriptor, m metadata) error {
	file := metadataFile(s.layers)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	if err := toml.WriteFile(file, m); err != nil {
		return err
	}
	if err := s.writeCache(all); err != nil {
		return fmt.Errorf("failed to save cached layers: %w", err)
	}
	for _, d := range all {
		if err := dropBuildLayers(s.layersOf(d)); err != nil {
			return err
		}
	}
	if err := s.writeResult(m); err != nil {
		return err
	}
	return builder.Pack(s.droplet,
		builder.Part{Path: s.layers, Name: "./" + filepath.Base(contract.CNBLayers)},
		builder.Part{Path: s.workspace, Name: "./" + filepath.Base(contract.CNBWorkspace)})
}

// writeResult writes what Cloud Foundry learns of the droplet.
func (s *staging) writeResult(m metadata) error {
	r := contract.Result{LifecycleType: contract.LifecycleCNB, ProcessTypes: map[string]string{}}
	for _, b := range m.Buildpacks {
		r.LifecycleMetadata.Buildpacks = append(r.LifecycleMetadata.Buildpacks, contract.UsedBuildpack{Key: b.ID, Name: b.ID + "@" + b.Version, Version: b.Version})
	}
	for _, p := range m.Processes {
		if err := contract.CheckProcess(p.Type, p.line()); err != nil {
			return err
		}
		r.ProcessTypes[p.Type] = p.line()
	}
	if err := errors.Join(contract.CheckCount("process types", len(r.ProcessTypes), contract.MaxProcesses), contract.CheckCount("buildpacks", len(m.Buildpacks), contract.MaxBuildpacks)); err != nil {
		return err
	}
	if r.ProcessTypes[webType] == "" {
		s.say("No web process was declared by the buildpacks.\nApp will not start unless a command is provided at runtime.")
	}
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return os.WriteFile(s.result, append(text, '\n'), 0o644)
}
