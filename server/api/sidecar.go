package api

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

// appSidecar is a sidecar with the app whose processes have it.
type appSidecar struct {
	cf.Sidecar
	app *cf.App
}

func viewSidecar(_ *call, s *appSidecar) doc {
	return with(resource(cf.Resource{GUID: s.GUID, CreatedAt: s.app.CreatedAt}), doc{
		"name": s.Name, "command": s.Command, "process_types": s.ProcessTypes, "memory_in_mb": zeroNil(s.MemoryMB), "origin": s.Origin,
		"relationships": doc{"app": toOne(s.app.GUID)},
	})
}

// sidecarsOf are the sidecars of processes of an app, each once.
func sidecarsOf(app *cf.App, processes ...*cf.Process) (out []*appSidecar) {
	for _, p := range processes {
		for _, s := range p.Sidecars {
			if !slices.ContainsFunc(out, func(have *appSidecar) bool { return have.GUID == s.GUID }) {
				out = append(out, &appSidecar{s, app})
			}
		}
	}
	return out
}

// sidecarRows is what parseQuery knows of sidecars.
type sidecarRows struct{ noRows }

func (sidecarRows) Orders() []string { return []string{"created_at", "updated_at"} }

// listSidecars answers with a page of sidecars.
func (c *call) listSidecars(found []*appSidecar) (*response, error) {
	q, err := parseQuery(c.Request.URL.Query(), sidecarRows{})
	if err != nil {
		return nil, err
	}
	if q.Desc { // all of an app are as old as each other
		slices.Reverse(found)
	}
	return ok(page(c, q, window(found, q), len(found), viewSidecar))
}

func listProcessSidecars(c *call) (*response, error) {
	p, app, err := c.process()
	if err != nil {
		return nil, err
	}
	return c.listSidecars(sidecarsOf(app, p))
}

func listAppSidecars(c *call) (*response, error) {
	app, err := c.app()
	if err != nil {
		return nil, err
	}
	processes, err := store.Processes.By(c.Tx, "app_guids", app.GUID)
	if err != nil {
		return nil, err
	}
	return c.listSidecars(sidecarsOf(app, processes...))
}

// sidecar is the sidecar of {guid}, if the actor sees its app and satisfies
// the rule.
func (c *call) sidecar() (*appSidecar, error) {
	processes, _, err := store.Processes.List(c.Tx, store.Query{Where: map[string][]string{"sidecar_guids": {c.guid()}}, Visible: c.Scope})
	if err != nil {
		return nil, err
	}
	if len(processes) == 0 {
		return nil, cf.Errorf(cf.ResourceNotFound, "Sidecar not found")
	}
	app, err := c.App(processes[0].AppGUID)
	if err != nil {
		return nil, err
	}
	all := sidecarsOf(app, processes...)
	return all[slices.IndexFunc(all, func(s *appSidecar) bool { return s.GUID == c.guid() })], nil
}

func showSidecar(c *call) (*response, error) {
	s, err := c.sidecar()
	if err != nil {
		return nil, err
	}
	return ok(viewSidecar(c, s))
}

type sidecarRequest struct {
	Name         change.Field[string]   `json:"name"`
	Command      change.Field[string]   `json:"command"`
	ProcessTypes change.Field[[]string] `json:"process_types"`
	MemoryMB     change.Field[int]      `json:"memory_in_mb"`
}

func (r sidecarRequest) apply(s *cf.Sidecar) error {
	s.Name, s.Command = r.Name.Or(s.Name), r.Command.Or(s.Command)
	s.ProcessTypes, s.MemoryMB = r.ProcessTypes.Or(s.ProcessTypes), r.MemoryMB.Or(s.MemoryMB)
	return control.Invalid(control.Must(s.Name != "", "Name can't be blank", s.Command != "", "Command can't be blank",
		len(s.ProcessTypes) > 0, "Process types must have at least 1 process_type",
		len(s.ProcessTypes) <= contract.MaxProcesses, fmt.Sprintf("Process types may have at most %d entries", contract.MaxProcesses),
		utf8.RuneCountInString(s.Name) <= 255, "Name is too long (maximum is 255 characters)",
		utf8.RuneCountInString(s.Command) <= maxCommand, fmt.Sprintf("Command is too long (maximum is %d characters)", maxCommand),
		r.MemoryMB.Or(1) > 0, "Memory in mb must be greater than 0"))
}

func createSidecar(c *call) (*response, error) {
	app, err := c.app()
	if err != nil {
		return nil, err
	}
	var req sidecarRequest
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	s := &appSidecar{cf.Sidecar{GUID: control.NewGUID(), Origin: "user"}, app}
	if err := req.apply(&s.Sidecar); err != nil {
		return nil, err
	}
	if err := c.putSidecar(s); err != nil {
		return nil, err
	}
	return created(viewSidecar(c, s))
}

func updateSidecar(c *call) (*response, error) {
	s, err := c.sidecar()
	if err != nil {
		return nil, err
	}
	var req sidecarRequest
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	if err := req.apply(&s.Sidecar); err != nil {
		return nil, err
	}
	if err := c.putSidecar(s); err != nil {
		return nil, err
	}
	return ok(viewSidecar(c, s))
}

func deleteSidecar(c *call) (*response, error) {
	s, err := c.sidecar()
	if err != nil {
		return nil, err
	}
	s.ProcessTypes = nil
	if err := c.putSidecar(s); err != nil {
		return nil, err
	}
	return noContent()
}

// putSidecar gives a sidecar to the processes of its types, and takes it from
// the others.
func (c *call) putSidecar(s *appSidecar) error {
	processes, err := store.Processes.By(c.Tx, "app_guids", s.app.GUID)
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
		if err := c.putSidecarOf(p, s.Sidecar); err != nil {
			return err
		}
	}
	return nil
}

func (c *call) putSidecarOf(p *cf.Process, s cf.Sidecar) error {
	had := len(p.Sidecars)
	p.Sidecars = control.Without(p.Sidecars, func(have cf.Sidecar) bool { return have.GUID == s.GUID })
	wanted := slices.Contains(s.ProcessTypes, p.Type)
	if !wanted && len(p.Sidecars) == had {
		return nil
	}
	if wanted {
		p.Sidecars = append(p.Sidecars, s)
	}
	return control.OrElse(sidecarFaults(p), store.Processes.Update(c.Tx, p))
}

// sidecarFaults refuses sidecars that cannot be told apart, or leave their
// process no memory.
func sidecarFaults(p *cf.Process) error {
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
