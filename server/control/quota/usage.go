// Package quota counts the usage of orgs and spaces, and refuses changes that increase
// a usage beyond the quota.
package quota

import (
	"maps"
	"math"

	"cupola/server/control"
	"cupola/store"
	"cupola/store/cf"
)

// Usage is what an org or a space uses of its quota.
type Usage struct {
	MemoryMB  int         // of started processes, or of those that are awake, and of tasks under way
	Instances int         // started
	Sizes     map[int]int // memory of an instance in MB → instances of that size, and tasks
	Tasks     int
	Routes    int
	Ports     int // routes with a port
	Domains   int
	Services  int // managed
	Keys      int // of services
	LogRate   int64
	Unlimited int // instances and tasks without a log rate limit
}

// larger counts the instances and tasks above a size.
func (u Usage) larger(memoryMB int) (n int) {
	for size, count := range u.Sizes {
		if size > memoryMB {
			n += count
		}
	}
	return n
}

// Area is what a quota counts over: all, an org or a space.
type Area struct{ filter, guid string }

const inOrgs, inSpaces = "organization_guids", "space_guids"

// OfOrg is the area of an org.
func OfOrg(guid string) Area { return Area{inOrgs, guid} }

// OfSpace is the area of a space.
func OfSpace(guid string) Area { return Area{inSpaces, guid} }

// org is the GUID of an area that is one, "" for others; so is space.
func (a Area) org() string {
	if a.filter == inOrgs {
		return a.guid
	}
	return ""
}

func (a Area) space() string {
	if a.filter == inSpaces {
		return a.guid
	}
	return ""
}

// where adds the area to a query; prefix is put before its filter.
func (a Area) where(prefix string, more map[string][]string) map[string][]string {
	w := map[string][]string{}
	maps.Copy(w, more)
	if a.guid != "" {
		w[prefix+a.filter] = []string{a.guid}
	}
	return w
}

// Kind is a set of resources that a change can use more of.
type Kind uint8

// The kinds, and all of them.
const (
	Processes Kind = 1 << iota // and tasks: they share limits
	Routes
	Services // and their keys
	Domains
	All = Processes | Routes | Services | Domains
)

// limited are those of which a quota has a limit.
func limited(l cf.QuotaLimits) (of Kind) {
	some := func(kind Kind, limits ...*int) {
		for _, l := range limits {
			if l != nil {
				of |= kind
			}
		}
	}
	some(Processes, l.TotalMemoryMB, l.InstanceMemoryMB, l.TotalInstances, l.AppTasks, l.LogRateLimitBytes)
	some(Routes, l.TotalRoutes, l.TotalReservedRoutePorts)
	some(Services, l.TotalServiceInstances, l.TotalServiceKeys)
	some(Domains, l.TotalDomains)
	return of
}

// UsageOf counts some of what is in an area. The domains of a space are its
// org's.
func UsageOf(c *control.Session, a, domains Area, of Kind) (u Usage, err error) {
	tx := c.Tx
	u.Sizes = map[int]int{}
	if of&Processes != 0 {
		err = countProcesses(tx, &u, a, c.Platform.QuotaAwakeOnly)
		err = control.OrElse(err, countTasks(tx, &u, a))
	}
	if of&Routes != 0 {
		var rerr error
		u.Routes, u.Ports, rerr = tx.RouteUse(a.org(), a.space())
		err = control.OrElse(err, rerr)
	}
	if of&Services != 0 {
		err = control.OrElse(err, countServices(tx, &u, a))
	}
	if of&Domains != 0 {
		err = control.OrElse(err, countDomains(tx, &u, domains))
	}
	return u, err
}

func countDomains(tx *store.Tx, u *Usage, a Area) error {
	all, err := store.Domains.Where(tx, a.where("", nil))
	u.Domains = len(control.Without(all, func(d *cf.Domain) bool { return d.OrgGUID == "" }))
	return err
}

func countProcesses(tx *store.Tx, u *Usage, a Area, awake bool) error {
	processes, err := tx.ProcessUse(a.org(), a.space(), awake)
	for _, p := range processes {
		u.add(p)
		u.Instances += p.Instances
	}
	return err
}

func countTasks(tx *store.Tx, u *Usage, a Area) error {
	tasks, err := tx.TaskUse(a.org(), a.space())
	for _, t := range tasks {
		u.add(t)
		u.Tasks += t.Instances
	}
	return err
}

// countServices counts what brokers have for the area.
func countServices(tx *store.Tx, u *Usage, a Area) (err error) {
	if u.Services, err = store.ServiceInstances.Count(tx, store.Query{Where: a.where("owner_", map[string][]string{"type": {cf.Managed}})}); err != nil {
		return err
	}
	u.Keys, err = store.ServiceBindings.Count(tx, store.Query{Where: a.where("", map[string][]string{"type": {cf.BindingKey}})})
	return err
}

func (u *Usage) add(v store.Use) {
	if v.Instances == 0 {
		return
	}
	u.MemoryMB += v.Instances * v.MemoryMB
	u.Sizes[v.MemoryMB] += v.Instances
	if v.LogRate < 0 {
		u.Unlimited += v.Instances
		return
	}
	if v.LogRate > (math.MaxInt64-u.LogRate)/int64(v.Instances) {
		u.LogRate = math.MaxInt64 // and no farther, or it would be below nothing
		return
	}
	u.LogRate += int64(v.Instances) * v.LogRate
}
