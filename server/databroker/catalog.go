package databroker

import (
	"cmp"
	"slices"

	"cupola/store/cf"
)

// service is an offering of the catalog.
type service struct {
	name, description, display string
	tags                       []string
	port                       uint16
	morePorts                  []uint16
	tlsPort                    uint16 // for connections with TLS: the same port where the protocol negotiates it; 0: there is no TLS
	tlsAlone                   bool   // it speaks TLS only where that is required: clients who find it insist on a CA that they trust
	plans                      []plan
	engine                     engine // nil: the volume itself is offered
	software                   software
	// complaints come before the text of an error in what the engine's client prints.
	complaints []string
	// quotes come before what the server prints of a client's request, which may have a password.
	quotes []string
	ending string // of the name of a backup's file, for the programs that read it
	// sameVersion: a restore needs a backup of the same version, not of an earlier one.
	sameVersion bool
	version     string // of a service file; "" of a service without one
}

// plan is how large an instance is.
type plan struct {
	name, description string
	memoryMB          int
	volumeBytes       int64
}

// services are all that can be offered. Each is described in the file of its engine.
func services() []service {
	return append([]service{postgresService(), mysqlService(), redisService(), natsService(), rabbitmqService(), smtpService(), filesService()}, fileServices()...)
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

// FileEnding is what a backup's file of a service is called by the programs that read it.
func (*Service) FileEnding(name string) string {
	s, _ := serviceOf(name)
	return cmp.Or(s.ending, "backup")
}

// serviceOf finds a built-in service by its name.
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

// The catalog's IDs: unique in the platform, and the same for ever. A file's are never those of a
// service without one that a later cupola has built in.
func (s service) id() string {
	if s.version != "" {
		return "cupola-file-" + s.name
	}
	return "cupola-" + s.name
}

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
	o := b.offer.Load()
	for _, s := range services() {
		if o.offers(s.name) {
			list = append(list, s)
		}
	}
	for _, f := range o.Files {
		list = append(list, customService(f))
	}
	return list
}

func (b *broker) catalog() answer {
	list := []object{}
	for _, s := range b.offered() {
		description := s.description
		if !b.HasFile.has(s) {
			description += "; not prepared: an operator runs '" + PrepareCommand(s.name) + "'"
		}
		o := object{"id": s.id(), "name": s.name, "description": description, "tags": s.tags, "bindable": true, "plan_updateable": false,
			"instances_retrievable": true, "bindings_retrievable": true, "metadata": object{"displayName": s.display}}
		var all []object
		for _, p := range s.plans {
			one := object{"id": s.planID(p), "name": p.name, "description": p.description, "free": true, "binding_rotatable": true}
			if s.version != "" {
				one["maintenance_info"] = object{"version": s.version, "description": "restarts with the image and the settings of the service's file"}
			}
			all = append(all, one)
		}
		o["plans"] = all
		if s.engine == nil {
			o["requires"] = []string{cf.RequiresVolumes}
		}
		list = append(list, o)
	}
	return answer{Status: 200, Body: object{"services": list}}
}

// known finds what a row is an instance of.
func known(i *cf.DataInstance) (service, plan, bool) {
	s, ok := serviceOf(i.Service)
	if i.Definition != "" {
		s, ok = customOf(i)
	}
	if !ok {
		return s, plan{}, false
	}
	p, ok := s.plan(i.Plan)
	return s, p, ok
}
