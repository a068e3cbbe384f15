package databroker

import (
	"slices"

	"cupola/store/cf"
)

// service is an offering of the catalog.
type service struct {
	name, description, display string
	tags                       []string
	port                       uint16
	plans                      []plan
	engine                     engine // nil: the volume itself is offered
}

// plan is how large an instance is.
type plan struct {
	name, description string
	memoryMB          int
	volumeBytes       int64
}

// services are all that can be offered.
func services() []service {
	return []service{
		{name: "postgres", description: "PostgreSQL in a container of this machine", display: "PostgreSQL", tags: []string{"postgresql", "postgres", "relational", "sql"},
			port: 5432, plans: plans(), engine: postgres{}},
		{name: "redis", description: "Redis or Valkey in a container of this machine", display: "Redis", tags: []string{"redis", "valkey", "key-value"},
			port: 6379, plans: plans(), engine: redis{}},
		{name: "files", description: "a directory of this machine, mounted into every app that is bound to it", display: "Files", tags: []string{"files", "volume"},
			plans: []plan{{name: "small", description: "1 GB of disk", volumeBytes: 1 << 30}, {name: "large", description: "10 GB of disk", volumeBytes: 10 << 30}}},
	}
}

func plans() []plan {
	return []plan{
		{"small", "256 MB of memory, 1 GB of disk", 256, 1 << 30},
		{"large", "1 GB of memory, 10 GB of disk", 1 << 10, 10 << 30},
	}
}

// Names are the names of what can be offered.
func Names() (names []string) {
	for _, s := range services() {
		names = append(names, s.name)
	}
	return names
}

// serviceOf and planOf find what a row names; they do for all rows of the built-in broker.
func serviceOf(name string) (service, bool) {
	all := services()
	i := slices.IndexFunc(all, func(s service) bool { return s.name == name })
	if i < 0 {
		return service{}, false
	}
	return all[i], true
}

func (s service) plan(name string) (plan, bool) {
	i := slices.IndexFunc(s.plans, func(p plan) bool { return p.name == name })
	if i < 0 {
		return plan{}, false
	}
	return s.plans[i], true
}

// The catalog's IDs: unique in the platform, and the same for ever.
func (s service) id() string           { return "cupola-" + s.name }
func (s service) planID(p plan) string { return s.id() + "-" + p.name }

// find finds the service and the plan that the catalog has these IDs for.
func (b *broker) find(serviceID, planID string) (service, plan, bool) {
	for _, s := range b.offered() {
		for _, p := range s.plans {
			if s.id() == serviceID && s.planID(p) == planID {
				return s, p, true
			}
		}
	}
	return service{}, plan{}, false
}

// offered are the services that the operator wants.
func (b *broker) offered() (list []service) {
	for _, s := range services() {
		if slices.Contains(b.Services, s.name) {
			list = append(list, s)
		}
	}
	return list
}

func (b *broker) catalog() answer {
	list := []object{}
	for _, s := range b.offered() {
		o := object{"id": s.id(), "name": s.name, "description": s.description, "tags": s.tags, "bindable": true, "plan_updateable": false,
			"instances_retrievable": true, "bindings_retrievable": true, "metadata": object{"displayName": s.display}}
		var all []object
		for _, p := range s.plans {
			all = append(all, object{"id": s.planID(p), "name": p.name, "description": p.description, "free": true, "binding_rotatable": true})
		}
		o["plans"] = all
		if s.engine == nil {
			o["requires"] = []string{cf.RequiresVolumes}
		}
		list = append(list, o)
	}
	return answer{200, object{"services": list}}
}

// known finds what a row is an instance of.
func known(i *cf.DataInstance) (service, plan, bool) {
	s, ok := serviceOf(i.Service)
	if !ok {
		return s, plan{}, false
	}
	p, ok := s.plan(i.Plan)
	return s, p, ok
}
