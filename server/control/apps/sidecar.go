package apps

import (
	"fmt"
	"slices"
	"unicode/utf8"

	"cupola/runtime/contract"
	"cupola/server/control"
	"cupola/server/control/change"
	"cupola/store"
	"cupola/store/cf"
)

// Sidecar is a sidecar with the app whose processes have it.
type Sidecar struct {
	cf.Sidecar
	App *cf.App
}

// Sidecars are the sidecars of processes of an app, each once.
func Sidecars(app *cf.App, processes ...*cf.Process) (out []*Sidecar) {
	for _, p := range processes {
		for _, s := range p.Sidecars {
			if !slices.ContainsFunc(out, func(have *Sidecar) bool { return have.GUID == s.GUID }) {
				out = append(out, &Sidecar{s, app})
			}
		}
	}
	return out
}

// SidecarChange is a change of a sidecar.
type SidecarChange struct {
	Name         change.Field[string]   `json:"name"`
	Command      change.Field[string]   `json:"command"`
	ProcessTypes change.Field[[]string] `json:"process_types"`
	MemoryMB     change.Field[int]      `json:"memory_in_mb"`
}

func (r SidecarChange) apply(s *cf.Sidecar) error {
	s.Name, s.Command = r.Name.Or(s.Name), r.Command.Or(s.Command)
	s.ProcessTypes, s.MemoryMB = r.ProcessTypes.Or(s.ProcessTypes), r.MemoryMB.Or(s.MemoryMB)
	return control.Invalid(control.Must(s.Name != "", "Name can't be blank", s.Command != "", "Command can't be blank",
		len(s.ProcessTypes) > 0, "Process types must have at least 1 process_type",
		len(s.ProcessTypes) <= contract.MaxProcesses, fmt.Sprintf("Process types may have at most %d entries", contract.MaxProcesses),
		utf8.RuneCountInString(s.Name) <= 255, "Name is too long (maximum is 255 characters)",
		utf8.RuneCountInString(s.Command) <= maxCommand, fmt.Sprintf("Command is too long (maximum is %d characters)", maxCommand),
		r.MemoryMB.Or(1) > 0, "Memory in mb must be greater than 0"))
}

// ChangeSidecar changes a sidecar, or adds a new one.
func ChangeSidecar(c *control.Session, s *Sidecar, req SidecarChange) error {
	if err := req.apply(&s.Sidecar); err != nil {
		return err
	}
	return putSidecar(c, s)
}

// DeleteSidecar takes a sidecar from all processes.
func DeleteSidecar(c *control.Session, s *Sidecar) error {
	s.ProcessTypes = nil
	return putSidecar(c, s)
}

// putSidecar gives a sidecar to the processes of its types, and takes it from
// the others.
func putSidecar(c *control.Session, s *Sidecar) error {
	processes, err := store.Processes.By(c.Tx, "app_guids", s.App.GUID)
	if err != nil {
		return err
	}
	missing := control.Without(s.ProcessTypes, func(t string) bool {
		return slices.ContainsFunc(processes, func(p *cf.Process) bool { return p.Type == t })
	})
	if len(missing) > 0 {
		return cf.Unprocessable("Process types %s are none of the app's", control.Inspect(missing))
	}
	for _, p := range processes {
		if err := putSidecarOf(c, p, s.Sidecar); err != nil {
			return err
		}
	}
	return nil
}

func putSidecarOf(c *control.Session, p *cf.Process, s cf.Sidecar) error {
	had := len(p.Sidecars)
	p.Sidecars = control.Without(p.Sidecars, func(have cf.Sidecar) bool { return have.GUID == s.GUID })
	wanted := slices.Contains(s.ProcessTypes, p.Type)
	if !wanted && len(p.Sidecars) == had {
		return nil
	}
	if wanted {
		p.Sidecars = append(p.Sidecars, s)
	}
	return control.OrElse(SidecarFaults(p), store.Processes.Update(c.Tx, p))
}

// takeSidecars gives the processes of an app the sidecars that the buildpacks of
// its droplet declare, instead of those of its last droplet. One with the name of
// a user's is refused (CC: sidecar_synchronize_from_app_droplet.rb).
func takeSidecars(c *control.Session, app *cf.App, d *cf.Droplet) error {
	processes, err := store.Processes.By(c.Tx, "app_guids", app.GUID)
	if err != nil {
		return err
	}
	declared := slices.Clone(d.Sidecars)
	for i := range declared {
		declared[i].GUID, declared[i].Origin = control.NewGUID(), fromBuildpack
	}
	for _, p := range processes {
		if err := replaceSidecars(c, p, declared); err != nil {
			return err
		}
	}
	return nil
}

// fromBuildpack is the Origin of a sidecar that a droplet declares.
const fromBuildpack = "buildpack"

// replaceSidecars gives a process those of the declared sidecars that are for its
// type, instead of all that earlier droplets declared.
func replaceSidecars(c *control.Session, p *cf.Process, declared []cf.Sidecar) error {
	had := len(p.Sidecars)
	p.Sidecars = control.Without(p.Sidecars, func(s cf.Sidecar) bool { return s.Origin == fromBuildpack })
	left := len(p.Sidecars)
	for _, s := range declared {
		if slices.ContainsFunc(p.Sidecars, func(have cf.Sidecar) bool { return have.Name == s.Name && have.Origin != fromBuildpack }) {
			return cf.Unprocessable("Buildpack defined sidecar '%s' conflicts with an existing user-defined sidecar. Consider renaming '%s'.", s.Name, s.Name)
		}
		if slices.Contains(s.ProcessTypes, p.Type) {
			p.Sidecars = append(p.Sidecars, s)
		}
	}
	if had == left && len(p.Sidecars) == left {
		return nil
	}
	return control.OrElse(SidecarFaults(p), store.Processes.Update(c.Tx, p))
}

// SidecarFaults refuses sidecars with the same name, or that leave their
// process no memory.
func SidecarFaults(p *cf.Process) error {
	if len(p.Sidecars) > contract.MaxSidecars {
		return cf.Unprocessable("Process '%s' has %d sidecars; at most %d are accepted", p.Type, len(p.Sidecars), contract.MaxSidecars)
	}
	memory, names := 0, map[string]bool{}
	for _, s := range p.Sidecars {
		if names[s.Name] {
			return cf.Unprocessable("Sidecar with name '%s' already exists for given app", s.Name)
		}
		names[s.Name] = true
		memory += s.MemoryMB
	}
	if memory >= p.MemoryMB && memory > 0 {
		return cf.Unprocessable("The memory allocation defined is too large to run with the dependent %q process", p.Type)
	}
	return nil
}
