package api

import (
	"maps"
	"math"

	"cupola/store"
	"cupola/store/cf"
)

// usage is what an org or a space uses of its quota.
type usage struct {
	memoryMB  int         // of started processes and tasks under way
	instances int         // started
	sizes     map[int]int // memory of an instance in MB → instances of that size, and tasks
	tasks     int
	routes    int
	ports     int // routes with a port
	domains   int
	services  int // managed
	keys      int // of services
	logRate   int64
	unlimited int // instances and tasks without a log rate limit
}

// larger counts the instances and tasks above a size.
func (u usage) larger(memoryMB int) (n int) {
	for size, count := range u.sizes {
		if size > memoryMB {
			n += count
		}
	}
	return n
}

// area is what a quota counts over: all, an org or a space.
type area struct{ filter, guid string }

const inOrgs, inSpaces = "organization_guids", "space_guids"

func ofOrg(guid string) area   { return area{inOrgs, guid} }
func ofSpace(guid string) area { return area{inSpaces, guid} }

// org is the GUID of an area that is one, "" for others; so is space.
func (a area) org() string {
	if a.filter == inOrgs {
		return a.guid
	}
	return ""
}

func (a area) space() string {
	if a.filter == inSpaces {
		return a.guid
	}
	return ""
}

// where adds the area to a query; prefix is put before its filter.
func (a area) where(prefix string, more map[string][]string) map[string][]string {
	w := map[string][]string{}
	maps.Copy(w, more)
	if a.guid != "" {
		w[prefix+a.filter] = []string{a.guid}
	}
	return w
}

// counted is what a change can use more of: only that is counted for it.
type counted uint8

const (
	ofProcesses counted = 1 << iota // and of tasks: they share limits
	ofRoutes
	ofServices // and of their keys
	ofDomains
	ofAll = ofProcesses | ofRoutes | ofServices | ofDomains
)

// limited are those of which a quota has a limit.
func limited(l cf.QuotaLimits) (of counted) {
	some := func(kind counted, limits ...*int) {
		for _, l := range limits {
			if l != nil {
				of |= kind
			}
		}
	}
	some(ofProcesses, l.TotalMemoryMB, l.InstanceMemoryMB, l.TotalInstances, l.AppTasks, l.LogRateLimitBytes)
	some(ofRoutes, l.TotalRoutes, l.TotalReservedRoutePorts)
	some(ofServices, l.TotalServiceInstances, l.TotalServiceKeys)
	some(ofDomains, l.TotalDomains)
	return of
}

// usageOf counts some of what is in an area. The domains of a space are its
// org's.
func (c *call) usageOf(a, domains area, of counted) (u usage, err error) {
	u.sizes = map[int]int{}
	if of&ofProcesses != 0 {
		err = c.countProcesses(&u, a)
		err = orElse(err, c.countTasks(&u, a))
	}
	if of&ofRoutes != 0 {
		err = orElse(err, c.countRoutes(&u, a))
	}
	if of&ofServices != 0 {
		err = orElse(err, c.countServices(&u, a))
	}
	if of&ofDomains != 0 {
		err = orElse(err, c.countDomains(&u, domains))
	}
	return u, err
}

func (c *call) countRoutes(u *usage, a area) (err error) {
	if u.routes, err = store.Routes.Count(c.Tx, store.Query{Where: a.where("owner_", nil)}); err != nil {
		return err
	}
	u.ports, err = store.Routes.Count(c.Tx, store.Query{Where: a.where("owner_", map[string][]string{"with_port": {"1"}})})
	return err
}

func (c *call) countDomains(u *usage, a area) error {
	all, _, err := store.Domains.List(c.Tx, store.Query{Where: a.where("", nil)})
	u.domains = len(without(all, func(d *cf.Domain) bool { return d.OrgGUID == "" }))
	return err
}

func (c *call) countProcesses(u *usage, a area) error {
	processes, err := c.Tx.ProcessUse(a.org(), a.space())
	for _, p := range processes {
		u.add(p)
		u.instances += p.Instances
	}
	return err
}

func (c *call) countTasks(u *usage, a area) error {
	tasks, err := c.Tx.TaskUse(a.org(), a.space())
	for _, t := range tasks {
		u.add(t)
		u.tasks += t.Instances
	}
	return err
}

// countServices counts what brokers have for the area.
func (c *call) countServices(u *usage, a area) (err error) {
	if u.services, err = store.ServiceInstances.Count(c.Tx, store.Query{Where: a.where("owner_", map[string][]string{"type": {cf.Managed}})}); err != nil {
		return err
	}
	u.keys, err = store.ServiceBindings.Count(c.Tx, store.Query{Where: a.where("", map[string][]string{"type": {cf.BindingKey}})})
	return err
}

func (u *usage) add(v store.Use) {
	if v.Instances == 0 {
		return
	}
	u.memoryMB += v.Instances * v.MemoryMB
	u.sizes[v.MemoryMB] += v.Instances
	if v.LogRate < 0 {
		u.unlimited += v.Instances
		return
	}
	if v.LogRate > (math.MaxInt64-u.logRate)/int64(v.Instances) {
		u.logRate = math.MaxInt64 // and no farther, or it would be below nothing
		return
	}
	u.logRate += int64(v.Instances) * v.LogRate
}

// budget is a quota at work: what its org or space used before a change, and
// after it.
type budget struct {
	limits        cf.QuotaLimits
	area          area
	name          string // of the org or space
	before, after usage
}

// budgets are the quotas that hold in a space, or in an org where the space is
// nil.
func (c *call) budgets(org *cf.Org, space *cf.Space) (list []*budget, err error) {
	q, err := store.OrgQuotas.Get(c.Tx, org.QuotaGUID)
	if err == nil {
		list = append(list, &budget{limits: q.Limits, area: ofOrg(org.GUID), name: org.Name})
	}
	if err != nil && !store.IsNotFound(err) || space == nil || space.QuotaGUID == "" {
		return list, ifFound(err)
	}
	s, err := store.SpaceQuotas.Get(c.Tx, space.QuotaGUID)
	if err != nil {
		return nil, err
	}
	return append(list, &budget{limits: s.Limits, area: ofSpace(space.GUID), name: space.Name}), nil
}

// ifFound is err, but nil where it says that there is none.
func ifFound(err error) error {
	if store.IsNotFound(err) {
		return nil
	}
	return err
}

// withinQuota makes a change in a space, and refuses it when the space or its
// org then uses more than before and more than a quota allows. One that uses too
// much already may still use less. The change can only use more of what is named.
func (c *call) withinQuota(spaceGUID string, of counted, change func() error) error {
	space, err := store.Spaces.Get(c.Tx, spaceGUID)
	if err != nil {
		return err
	}
	org, err := store.Orgs.Get(c.Tx, space.OrgGUID)
	if err != nil {
		return err
	}
	return c.within(org, space, of, change)
}

// withinOrgQuota is withinQuota for what is in no space. What is in no org ("")
// has no quota.
func (c *call) withinOrgQuota(orgGUID string, of counted, change func() error) error {
	if orgGUID == "" {
		return change()
	}
	org, err := store.Orgs.Get(c.Tx, orgGUID)
	if err != nil {
		return err
	}
	return c.within(org, nil, of, change)
}

func (c *call) within(org *cf.Org, space *cf.Space, of counted, change func() error) error {
	list, err := c.budgets(org, space)
	if err != nil {
		return err
	}
	for _, b := range list {
		if b.before, err = c.usageOf(b.area, ofOrg(org.GUID), of&limited(b.limits)); err != nil {
			return err
		}
	}
	if err := change(); err != nil {
		return err
	}
	for _, b := range list {
		if b.after, err = c.usageOf(b.area, ofOrg(org.GUID), of&limited(b.limits)); err != nil {
			return err
		}
	}
	return invalid(exceeded(list))
}

func (u usage) view() doc {
	return doc{"started_instances": u.instances, "memory_in_mb": u.memoryMB, "routes": u.routes, "service_instances": u.services, "reserved_ports": u.ports,
		"domains": u.domains, "per_app_tasks": u.tasks, "service_keys": u.keys}
}

func showOrgUsage(c *call) (*response, error) {
	o, err := c.org()
	if err != nil {
		return nil, err
	}
	u, err := c.usageOf(ofOrg(o.GUID), ofOrg(o.GUID), ofAll)
	return &response{body: doc{"usage_summary": u.view(), "links": doc{
		"self":         c.link("/v3/organizations/%s/usage_summary", o.GUID),
		"organization": c.link("/v3/organizations/%s", o.GUID)}}}, err
}

func showSpaceUsage(c *call) (*response, error) {
	s, err := c.space()
	if err != nil {
		return nil, err
	}
	u, err := c.usageOf(ofSpace(s.GUID), ofOrg(s.OrgGUID), ofAll)
	return &response{body: doc{"usage_summary": u.view(), "links": doc{
		"self":  c.link("/v3/spaces/%s/usage_summary", s.GUID),
		"space": c.link("/v3/spaces/%s", s.GUID)}}}, err
}

func showUsage(c *call) (*response, error) {
	if err := c.permitAdmin(); err != nil {
		return nil, err
	}
	u, err := c.usageOf(area{}, area{}, ofAll)
	return &response{body: doc{"usage_summary": u.view(), "links": doc{"self": c.link("/v3/info/usage_summary")}}}, err
}

// WithinQuota makes a change of processes in a space, outside of a request, and
// refuses it when it breaks the quota of the space or of its org.
func WithinQuota(tx *store.Tx, spaceGUID string, change func() error) error {
	return (&call{Tx: tx}).withinQuota(spaceGUID, ofProcesses, change)
}
