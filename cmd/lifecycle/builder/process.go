package builder

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"go.yaml.in/yaml/v3"

	"cupola/runtime/contract"
)

// fileLimit bounds Procfile, launch.yml and config.yml, in bytes.
const fileLimit = 1 << 20

// process is one entry of a launch.yml.
type process struct {
	Type      string `yaml:"type"`
	Command   string `yaml:"command"`
	Platforms struct {
		CloudFoundry struct {
			SidecarFor []string `yaml:"sidecar_for"`
		} `yaml:"cloudfoundry"`
	} `yaml:"platforms"`
	Limits struct {
		MemoryMB int `yaml:"memory"`
	} `yaml:"limits"`
}

// processes merges what the buildpacks and the app declare; later entries
// replace earlier ones of the same type: the supply buildpacks' launch.yml,
// the last buildpack's (or else what its release script prints), Procfile.
func (b *builder) processes(dir string) ([]process, error) {
	var all []process
	for i := range b.suppliers() {
		more, _, err := b.launchFile(i)
		if err != nil {
			return nil, err
		}
		all = merge(all, more)
	}
	last, found, err := b.launchFile(len(b.suppliers()))
	if err == nil && !found {
		last, err = b.release(dir)
	}
	if err != nil {
		return nil, err
	}
	all = merge(all, last)
	if err := checkProcesses(all); err != nil {
		return nil, errRelease.by(err)
	}
	procfile, err := readLimited(filepath.Join(b.buildDir, "Procfile"))
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err == nil {
		var own []process
		own, err = parseProcfile(procfile)
		if err == nil {
			err = checkProcesses(own) // before the merge, which compares each with all
		}
		if err == nil {
			all = merge(all, own)
			err = checkProcesses(all)
		}
	}
	if err != nil {
		return nil, errProcfile.by(err)
	}
	return all, nil
}

// launchFile reads deps/<i>/launch.yml and reports whether there is one.
func (b *builder) launchFile(i int) ([]process, bool, error) {
	text, err := readLimited(filepath.Join(b.depsDir(), b.depsIndex(i), "launch.yml"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, true, err
	}
	processes, err := parseLaunch(text)
	if err != nil {
		return nil, true, err
	}
	if err := checkProcesses(processes); err != nil {
		return nil, true, errRelease.by(err)
	}
	return processes, true, nil
}

// checkProcesses refuses processes and sidecars that are too many or too large.
func checkProcesses(all []process) error {
	sidecars := 0
	for _, p := range all {
		targets := p.Platforms.CloudFoundry.SidecarFor
		err := contract.CheckProcess(p.Type, p.Command)
		if len(targets) > 0 {
			sidecars++
			err = contract.CheckSidecar(p.Type, p.Command, targets)
		}
		if err != nil {
			return err
		}
	}
	if err := contract.CheckCount("sidecars", sidecars, contract.MaxSidecars); err != nil {
		return err
	}
	return contract.CheckCount("process types", len(all)-sidecars, contract.MaxProcesses)
}

// release asks the buildpack's release script for the default processes.
func (b *builder) release(dir string) ([]process, error) {
	output, err := b.capture(dir, "release", b.buildDir)
	if err != nil {
		return nil, errRelease.by(err)
	}
	processes, err := parseRelease(output)
	if err == nil {
		err = checkProcesses(processes)
	}
	if err != nil {
		return nil, errRelease.by(fmt.Errorf("buildpack's release output invalid: %w", err))
	}
	return processes, nil
}

func parseLaunch(text []byte) ([]process, error) {
	var file struct {
		Processes []process `yaml:"processes"`
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		return nil, fmt.Errorf("launch.yml: %w", err)
	}
	return file.Processes, nil
}

func parseRelease(text []byte) ([]process, error) {
	var release struct {
		DefaultProcessTypes map[string]string `yaml:"default_process_types"`
	}
	if err := yaml.Unmarshal(text, &release); err != nil {
		return nil, err
	}
	return fromMap(release.DefaultProcessTypes), nil
}

// parseProcfile reads a Procfile, which to Cloud Foundry is a YAML map.
func parseProcfile(text []byte) ([]process, error) {
	var commands map[string]string
	if err := yaml.Unmarshal(text, &commands); err != nil {
		return nil, errors.New("invalid YAML")
	}
	return fromMap(commands), nil
}

func fromMap(commands map[string]string) []process {
	var all []process
	for _, name := range slices.Sorted(maps.Keys(commands)) {
		all = append(all, process{Type: name, Command: commands[name]})
	}
	return all
}

func merge(all, more []process) []process {
	for _, p := range more {
		i := slices.IndexFunc(all, func(q process) bool { return q.Type == p.Type })
		if i < 0 {
			all = append(all, p)
		} else {
			all[i] = p
		}
	}
	return all
}

// readLimited reads a regular file of at most fileLimit bytes.
func readLimited(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", filepath.Base(path))
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, fileLimit+1))
	if err == nil && len(text) > fileLimit {
		err = fmt.Errorf("%s is larger than %d bytes", filepath.Base(path), fileLimit)
	}
	return text, err
}
