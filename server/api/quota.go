package api

import (
	"math"

	"cupola/store"
	"cupola/store/cf"
)

// usage is what orgs use of their quotas.
type usage struct {
	memoryMB  int // of started processes and tasks under way
	instances int // started
	largestMB int // memory of one instance
	tasks     int
	routes    int
	domains   int
	services  int // managed
	keys      int // of services
	logRate   int64
	unlimited bool // something has no log rate limit
}

// usageOf counts what is in the orgs; in all when none is named.
func (c *call) usageOf(orgs ...string) (u usage, err error) {
	where := map[string][]string{}
	if len(orgs) > 0 {
		where["organization_guids"] = orgs
	}
	if err := c.countProcesses(&u, where); err != nil {
		return u, err
	}
	if err := c.countTasks(&u, where); err != nil {
		return u, err
	}
	if u.routes, err = store.Routes.Count(c.Tx, store.Query{Where: where}); err != nil {
		return u, err
	}
	if err := c.countServices(&u, orgs); err != nil {
		return u, err
	}
	domains, _, err := store.Domains.List(c.Tx, store.Query{Where: where})
	u.domains = len(without(domains, func(d *cf.Domain) bool { return d.OrgGUID == "" }))
	return u, err
}

func (c *call) countProcesses(u *usage, where map[string][]string) error {
	started := map[string][]string{"states": {string(cf.Started)}}
	for k, v := range where {
		started[k] = v
	}
	apps, _, err := store.Apps.List(c.Tx, store.Query{Where: started})
	if err != nil {
		return err
	}
	processes, err := store.Processes.By(c.Tx, "app_guids", guidsOf(apps, func(a *cf.App) string { return a.GUID })...)
	for _, p := range processes {
		u.add(p.Instances, p.MemoryMB, p.LogRateLimit)
		u.instances += p.Instances
	}
	return err
}

func (c *call) countTasks(u *usage, where map[string][]string) error {
	running := map[string][]string{"states": {string(cf.TaskPending), string(cf.TaskRunning)}}
	for k, v := range where {
		running[k] = v
	}
	tasks, _, err := store.Tasks.List(c.Tx, store.Query{Where: running})
	for _, t := range tasks {
		u.add(1, t.MemoryMB, t.LogRateLimit)
		u.tasks++
	}
	return err
}

// countServices counts what brokers have for the orgs.
func (c *call) countServices(u *usage, orgs []string) (err error) {
	instances, keys := map[string][]string{"type": {cf.Managed}}, map[string][]string{"type": {cf.BindingKey}}
	if len(orgs) > 0 {
		instances["owner_organization_guids"], keys["organization_guids"] = orgs, orgs
	}
	if u.services, err = store.ServiceInstances.Count(c.Tx, store.Query{Where: instances}); err != nil {
		return err
	}
	u.keys, err = store.ServiceBindings.Count(c.Tx, store.Query{Where: keys})
	return err
}

func (u *usage) add(n, memoryMB int, logRate int64) {
	if n == 0 {
		return
	}
	u.memoryMB += n * memoryMB
	u.largestMB = max(u.largestMB, memoryMB)
	if logRate < 0 {
		u.unlimited = true
		return
	}
	if logRate > (math.MaxInt64-u.logRate)/int64(n) {
		u.logRate = math.MaxInt64 // and no farther, or it would be below nothing
		return
	}
	u.logRate += int64(n) * logRate
}

// withinQuota is withinOrgQuota for a change in a space.
func (c *call) withinQuota(spaceGUID string, change func() error) error {
	space, err := store.Spaces.Get(c.Tx, spaceGUID)
	if err != nil {
		return err
	}
	return c.withinOrgQuota(space.OrgGUID, change)
}

// withinOrgQuota makes a change in an org, and refuses it when it then uses
// more than before and more than its quota allows. Who uses too much already
// may still use less. What is in no org ("") has no quota.
func (c *call) withinOrgQuota(orgGUID string, change func() error) error {
	if orgGUID == "" {
		return change()
	}
	org, err := store.Orgs.Get(c.Tx, orgGUID)
	if err != nil {
		return err
	}
	quota, err := store.OrgQuotas.Get(c.Tx, org.QuotaGUID)
	if store.IsNotFound(err) {
		return change()
	}
	if err != nil {
		return err
	}
	before, err := c.usageOf(org.GUID)
	if err != nil {
		return err
	}
	if err := change(); err != nil {
		return err
	}
	after, err := c.usageOf(org.GUID)
	if err != nil {
		return err
	}
	return invalid(exceeded(quota.Limits, before, after, org.Name))
}

// exceeded tells in Cloud Controller's words which limits a change breaks.
func exceeded(l cf.QuotaLimits, before, after usage, org string) []string {
	over := func(limit *int, before, after int) bool { return limit != nil && after > before && after > *limit }
	taskMade := after.tasks > before.tasks
	memory, instance, logs := "memory quota_exceeded", "memory instance_memory_limit_exceeded", "log_rate_limit exceeds organization log rate quota"
	if taskMade {
		memory, instance = "memory_in_mb exceeds organization memory quota", "memory_in_mb exceeds organization instance memory quota"
	}
	limitedLogs := l.LogRateLimitBytes != nil
	return must(!over(l.TotalMemoryMB, before.memoryMB, after.memoryMB), memory,
		!over(l.InstanceMemoryMB, before.largestMB, after.largestMB), instance,
		!over(l.TotalInstances, before.instances, after.instances), "app_instance_limit app_instance_limit_exceeded",
		!over(l.AppTasks, before.tasks, after.tasks), "app_task_limit quota exceeded",
		!limitedLogs || !after.unlimited || before.unlimited, "log_rate_limit cannot be unlimited in organization '"+org+"'.",
		!over(l.LogRateLimitBytes, int(before.logRate), int(after.logRate)), logs,
		!over(l.TotalRoutes, before.routes, after.routes), "Routes quota exceeded for organization '"+org+"'.",
		!over(l.TotalServiceInstances, before.services, after.services), "You have exceeded your organization's services limit.",
		!over(l.TotalServiceKeys, before.keys, after.keys), "You have exceeded your organization's limit for service binding of type key.",
		!over(l.TotalDomains, before.domains, after.domains), `The number of private domains exceeds the quota for organization "`+org+`"`)
}

func (u usage) view() doc {
	return doc{"started_instances": u.instances, "memory_in_mb": u.memoryMB, "routes": u.routes, "service_instances": u.services, "reserved_ports": 0,
		"domains": u.domains, "per_app_tasks": u.tasks, "service_keys": u.keys}
}

func showOrgUsage(c *call) (*response, error) {
	o, err := c.org()
	if err != nil {
		return nil, err
	}
	u, err := c.usageOf(o.GUID)
	return &response{body: doc{"usage_summary": u.view(), "links": doc{
		"self":         c.link("/v3/organizations/%s/usage_summary", o.GUID),
		"organization": c.link("/v3/organizations/%s", o.GUID)}}}, err
}

func showUsage(c *call) (*response, error) {
	if !c.Actor.May(platformReader, everywhere) {
		return nil, notAuthorized()
	}
	u, err := c.usageOf()
	return &response{body: doc{"usage_summary": u.view(), "links": doc{"self": c.link("/v3/info/usage_summary")}}}, err
}

// WithinQuota makes a change in a space, outside of a request, and refuses it
// when it breaks the quota of the org.
func WithinQuota(tx *store.Tx, spaceGUID string, change func() error) error {
	return (&call{Tx: tx}).withinQuota(spaceGUID, change)
}
