package quota

import (
	"cmp"

	"cupola/server/control"
)

// excess says in Cloud Controller's words which limits of one quota a change
// breaks; "" for those it keeps.
type excess struct{ memory, instance, instances, logs, tasks, routes, ports, services, keys, domains string }

// over reports whether a change increases a usage above its limit.
func over(limit *int, before, after int) bool {
	return limit != nil && after > before && after > *limit
}

// excess names what is broken with the words for a space, or those for an org.
func (b *Budget) excess() (e excess) {
	l, was, is := b.Limits, b.before, b.after
	say := func(broken bool, space, org string) string {
		switch {
		case !broken:
			return ""
		case b.OfSpace():
			return space
		}
		return org
	}
	instance := l.InstanceMemoryMB != nil && is.larger(*l.InstanceMemoryMB) > was.larger(*l.InstanceMemoryMB)
	if memory := over(l.TotalMemoryMB, was.MemoryMB, is.MemoryMB); is.Tasks > was.Tasks {
		e.memory = say(memory, "memory_in_mb exceeds space memory quota", "memory_in_mb exceeds organization memory quota")
		e.instance = say(instance, "memory_in_mb exceeds space instance memory quota", "memory_in_mb exceeds organization instance memory quota")
	} else {
		e.memory = say(memory, "memory space_quota_exceeded", "memory quota_exceeded")
		e.instance = say(instance, "memory space_instance_memory_limit_exceeded", "memory instance_memory_limit_exceeded")
	}
	e.instances = say(over(l.TotalInstances, was.Instances, is.Instances), "app_instance_limit space_app_instance_limit_exceeded", "app_instance_limit app_instance_limit_exceeded")
	e.logs = b.logs(say)
	e.tasks = say(over(l.AppTasks, was.Tasks, is.Tasks), "app_task_limit quota exceeded", "app_task_limit quota exceeded")
	e.routes = say(over(l.TotalRoutes, was.Routes, is.Routes), "Routes quota exceeded for space '"+b.name+"'.", "Routes quota exceeded for organization '"+b.name+"'.")
	e.ports = say(over(l.TotalReservedRoutePorts, was.Ports, is.Ports), "Reserved route ports quota exceeded for space '"+b.name+"'.", "Reserved route ports quota exceeded for organization '"+b.name+"'.")
	e.services = say(over(l.TotalServiceInstances, was.Services, is.Services), "You have exceeded your space's services limit.", "You have exceeded your organization's services limit.")
	e.keys = say(over(l.TotalServiceKeys, was.Keys, is.Keys), "You have exceeded your space's limit for service binding of type key.",
		"You have exceeded your organization's limit for service binding of type key.")
	e.domains = say(over(l.TotalDomains, was.Domains, is.Domains), "", `The number of private domains exceeds the quota for organization "`+b.name+`"`)
	return e
}

func (b *Budget) logs(say func(bool, string, string) string) string {
	l, was, is := b.Limits.LogRateLimitBytes, b.before, b.after
	if l == nil {
		return ""
	}
	unlimited := "log_rate_limit cannot be unlimited in "
	return cmp.Or(say(is.Unlimited > was.Unlimited, unlimited+"space '"+b.name+"'.", unlimited+"organization '"+b.name+"'."),
		say(is.LogRate > was.LogRate && is.LogRate > int64(*l), "log_rate_limit exceeds space log rate quota", "log_rate_limit exceeds organization log rate quota"))
}

// OfSpace reports whether the quota is a space's, not its org's.
func (b *Budget) OfSpace() bool { return b.area.filter == inSpaces }

// exceeded lists, in Cloud Controller's order, which limits a change breaks. Of routes and services it names the space's alone where both
// are broken.
func exceeded(list []*Budget) []string {
	var org, space excess
	task := false
	for _, b := range list {
		task = task || b.after.Tasks > b.before.Tasks
		if b.OfSpace() {
			space = b.excess()
		} else {
			org = b.excess()
		}
	}
	all := []string{space.memory, org.memory, org.instance, space.instance, org.instances, space.instances, space.logs, org.logs}
	if task {
		all = []string{org.memory, org.instance, space.memory, space.instance, org.logs, space.logs, org.tasks, space.tasks}
	}
	all = append(all, cmp.Or(space.routes, space.ports, org.routes, org.ports), cmp.Or(space.services, org.services), cmp.Or(space.keys, org.keys), org.domains)
	return control.Without(all, func(s string) bool { return s == "" })
}
