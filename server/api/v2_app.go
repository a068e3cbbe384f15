package api

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"cupola/server/control"
	"cupola/server/control/apps"
	"cupola/server/desire"
	"cupola/store"
	"cupola/store/cf"
)

// v2Apps are apps with their web processes, which the v2 API takes for one thing.
var v2Apps = v2Kind[cf.App]{table: store.Apps, views: viewV2Apps, filters: map[string]string{"name": "names", "space_guid": "space_guids", "organization_guid": "organization_guids"}}

// v2AppRows are what the v2 API shows of some apps, each by the app's GUID.
type v2AppRows struct {
	web      map[string]*cf.Process
	spaces   map[string]*cf.Space // by GUID
	stacks   map[string]*cf.Stack // by name
	packages map[string]*cf.Package
	builds   map[string]*cf.Build
	droplets map[string]*cf.Droplet // by GUID
}

// readV2Apps reads it all at once.
func readV2Apps(c *call, rows []*cf.App) (all *v2AppRows, err error) {
	all = &v2AppRows{web: map[string]*cf.Process{}, spaces: map[string]*cf.Space{}, stacks: map[string]*cf.Stack{}, packages: map[string]*cf.Package{}, builds: map[string]*cf.Build{}, droplets: map[string]*cf.Droplet{}}
	guids := control.GUIDs(rows, func(a *cf.App) string { return a.GUID })
	for _, read := range []func() error{
		func() error { return byKey(c, store.Processes, "app_guids", guids, all.addWeb) },
		func() error {
			return byKey(c, store.Packages, "app_guids", guids, func(p *cf.Package) { all.packages[p.AppGUID] = p })
		},
		func() error {
			return byKey(c, store.Builds, "app_guids", guids, func(b *cf.Build) { all.builds[b.AppGUID] = b })
		},
		func() error {
			return byKey(c, store.Droplets, "guids", control.GUIDs(rows, func(a *cf.App) string { return a.DropletGUID }), func(d *cf.Droplet) { all.droplets[d.GUID] = d })
		},
		func() error {
			return byKey(c, store.Spaces, "guids", control.GUIDs(rows, func(a *cf.App) string { return a.SpaceGUID }), func(s *cf.Space) { all.spaces[s.GUID] = s })
		},
	} {
		if err := read(); err != nil {
			return nil, err
		}
	}
	stacks, err := store.Stacks.All(c.Tx)
	for _, s := range stacks {
		all.stacks[s.Name] = s
	}
	return all, err
}

// byKey hands rows over in the order in which they were made.
func byKey[T any](c *call, t *store.Table[T], filter string, values []string, use func(*T)) error {
	rows, err := t.By(c.Tx, filter, values...)
	for _, row := range rows {
		use(row)
	}
	return err
}

// addWeb keeps the web process; the newest, while a deployment has two.
func (r *v2AppRows) addWeb(p *cf.Process) {
	if p.Type == "web" {
		r.web[p.AppGUID] = p
	}
}

func viewV2Apps(c *call, rows []*cf.App) ([]doc, error) {
	all, err := readV2Apps(c, rows)
	if err != nil {
		return nil, err
	}
	docs := []doc{}
	for _, a := range rows {
		if entity := all.entity(c, a); entity != nil {
			if s := all.stacks[a.Lifecycle.Stack]; s != nil && v2Inlines(c) {
				entity["stack"] = viewV2Stack(s)
			}
			self := "/v2/apps/" + a.GUID
			docs = append(docs, v2Resource(a.Resource, "/v2/apps", with(entity, doc{
				"space_url": "/v2/spaces/" + a.SpaceGUID, "stack_url": fmt.Sprintf("/v2/stacks/%v", entity["stack_guid"]), "routes_url": self + "/routes", "events_url": self + "/events",
				"service_bindings_url": self + "/service_bindings", "route_mappings_url": self + "/route_mappings",
			})))
		}
	}
	return docs, nil
}

// stackGUID is null for an image, which is a stack without a row.
func (r *v2AppRows) stackGUID(a *cf.App) any {
	if s := r.stacks[a.Lifecycle.Stack]; s != nil {
		return s.GUID
	}
	return nil
}

// entity is an app as Cloud Controller's ProcessModelPresenter has it; nil without a
// web process.
func (r *v2AppRows) entity(c *call, a *cf.App) doc {
	p, d := r.web[a.GUID], r.droplets[a.DropletGUID]
	if p == nil {
		return nil
	}
	var env any = doc{"redacted_message": concealed}
	if s := r.spaces[a.SpaceGUID]; s != nil && c.MaySeeSecrets(s) {
		env = orEmpty(a.Env)
	}
	entity := doc{
		"name": a.Name, "production": false, "space_guid": a.SpaceGUID, "stack_guid": r.stackGUID(a), "buildpack": nil,
		"detected_buildpack": nil, "detected_buildpack_guid": nil, "environment_json": env, "memory": p.MemoryMB, "instances": p.Instances, "disk_quota": p.DiskMB,
		"log_rate_limit": p.LogRateLimit, "state": a.State, "version": p.GUID + "-" + strconv.Itoa(a.Rev+p.Rev), "command": control.OrNil(p.Command), "console": false, "debug": nil,
		"staging_task_id": nil, "package_state": "PENDING", "health_check_type": p.HealthCheck.Type, "health_check_timeout": orNilInt(p.HealthCheck.Timeout),
		"health_check_http_endpoint": control.OrNil(p.HealthCheck.Endpoint), "staging_failed_reason": nil, "staging_failed_description": nil, "diego": true,
		"docker_image": nil, "docker_credentials": doc{"username": nil, "password": nil}, "package_updated_at": nil, "detected_start_command": "", "enable_ssh": a.SSHEnabled, "ports": []int{v2Port},
	}
	if len(a.Lifecycle.Buildpacks) > 0 {
		entity["buildpack"] = desire.Redact(a.Lifecycle.Buildpacks[0])
	}
	if d != nil {
		entity["detected_start_command"] = d.ProcessTypes["web"]
		if len(d.Buildpacks) > 0 {
			entity["detected_buildpack"] = control.OrNil(cmp.Or(d.Buildpacks[0].DetectOutput, d.Buildpacks[0].BuildpackName))
		}
	}
	return with(entity, r.staging(a, d))
}

// staging is what an app shows of its newest package and build.
func (r *v2AppRows) staging(a *cf.App, d *cf.Droplet) doc {
	p, b, shown := r.packages[a.GUID], r.builds[a.GUID], doc{}
	if p != nil {
		shown["package_updated_at"] = stamp(p.CreatedAt)
		if p.Image != "" {
			shown["docker_image"] = p.Image
		}
		if p.Credential.Username != "" {
			shown["docker_credentials"] = doc{"username": p.Credential.Username, "password": redacted}
		}
	}
	if b != nil {
		shown["staging_task_id"] = b.GUID
	}
	switch {
	case b != nil && b.State == cf.BuildFailed && (p == nil || b.PackageGUID == p.GUID):
		shown["package_state"] = "FAILED"
		reason, _, _ := strings.Cut(b.Error, " - ")
		shown["staging_failed_reason"], shown["staging_failed_description"] = reason, b.Error
	case d != nil && (p == nil || d.PackageGUID == p.GUID || d.PackageGUID == ""):
		shown["package_state"] = "STAGED"
	case p != nil && p.State == cf.PackageFailed:
		shown["package_state"] = "FAILED"
	}
	return shown
}

// v2Port is where an app listens unless its routes say otherwise.
const v2Port = 8080

func orNilInt(n int) any {
	if n == 0 {
		return nil
	}
	return n
}

// v2Summaries are what the summaries of some apps have besides the apps: all is read at
// once, by the app's GUID.
type v2Summaries struct {
	*v2AppRows
	routes map[string][]*cf.Route
	bound  map[string][]*cf.ServiceBinding
	users  map[string]map[string]bool // apps by the service instance that they are bound to
}

func readV2Summaries(c *call, rows []*cf.App) (*v2Summaries, error) {
	all, err := readV2Apps(c, rows)
	if err != nil {
		return nil, err
	}
	s := &v2Summaries{all, map[string][]*cf.Route{}, map[string][]*cf.ServiceBinding{}, map[string]map[string]bool{}}
	guids := control.GUIDs(rows, func(a *cf.App) string { return a.GUID })
	var domains, services []string
	for _, read := range []func() error{
		func() error { return foreseeActuals(c, slices.Collect(maps.Values(all.web))) },
		func() error {
			return byKey(c, store.Routes, "app_guids", guids, func(r *cf.Route) {
				domains = append(domains, r.DomainGUID)
				for _, app := range appsOf(r) {
					s.routes[app] = append(s.routes[app], r)
				}
			})
		},
		func() error {
			return byKey(c, store.ServiceBindings.Table, "app_guids", guids, func(b *cf.ServiceBinding) {
				s.bound[b.AppGUID], services = append(s.bound[b.AppGUID], b), append(services, b.InstanceGUID)
			})
		},
		func() error { return foresee(c, store.Domains, func(d *cf.Domain) string { return d.GUID }, domains) },
		func() error { return foreseeInstances(c, services) },
		func() error { return s.countUsers(c, services) },
	} {
		if err := read(); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// countUsers reads which apps are bound to service instances.
func (s *v2Summaries) countUsers(c *call, services []string) error {
	return byKey(c, store.ServiceBindings.Table, "service_instance_guids", services, func(b *cf.ServiceBinding) {
		if s.users[b.InstanceGUID] == nil {
			s.users[b.InstanceGUID] = map[string]bool{}
		}
		if b.AppGUID != "" {
			s.users[b.InstanceGUID][b.AppGUID] = true
		}
	})
}

// appsOf are the apps that a route leads to.
func appsOf(r *cf.Route) (guids []string) {
	for _, to := range r.Destinations {
		if !slices.Contains(guids, to.AppGUID) {
			guids = append(guids, to.AppGUID)
		}
	}
	return guids
}

// app is an app in the summary of its space; nil without a web process.
func (s *v2Summaries) app(c *call, a *cf.App) (doc, error) {
	d := s.entity(c, a)
	if d == nil {
		return nil, nil
	}
	urls, summaries, names := []string{}, []doc{}, []string{}
	for _, r := range s.routes[a.GUID] {
		uri, summary, err := summaryOfRoute(c, r)
		if err != nil {
			return nil, err
		}
		urls, summaries = append(urls, uri), append(summaries, summary)
	}
	for _, b := range s.bound[a.GUID] {
		i, err := recall(c, store.ServiceInstances, b.InstanceGUID)
		if err != nil {
			return nil, err
		}
		names = append(names, i.Name)
	}
	running, err := runningOf(c, a, s.web[a.GUID])
	return with(d, doc{"guid": a.GUID, "urls": urls, "routes": summaries, "service_count": len(names), "service_names": names, "running_instances": running}), err
}

// runningOf counts the instances of a process that run or start.
func runningOf(c *call, a *cf.App, p *cf.Process) (n int, err error) {
	if a.State != cf.Started {
		return 0, nil
	}
	byIndex, err := instances(c, p, a)
	for _, i := range byIndex {
		if s := instanceState(i); i.Index < p.Instances && (s == "RUNNING" || s == "STARTING") {
			n++
		}
	}
	return n, err
}

// v2AppSummary is GET /v2/apps/{guid}/summary.
func v2AppSummary(c *call) (*response, error) {
	a, err := findApp(c)
	if err != nil {
		return nil, err
	}
	all, err := readV2Summaries(c, []*cf.App{a})
	if err != nil {
		return nil, err
	}
	summary, err := all.app(c, a)
	if err == nil && summary == nil {
		err = cf.Errorf(cf.ResourceNotFound, "Process not found")
	}
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"urls", "service_count", "service_names"} { // of a space's summary alone
		delete(summary, name)
	}
	services := []doc{}
	for _, b := range all.bound[a.GUID] {
		i, err := recall(c, store.ServiceInstances, b.InstanceGUID)
		if err != nil {
			return nil, err
		}
		services = append(services, summaryOfService(i, len(all.users[i.GUID])))
	}
	summary["services"] = services
	summary["available_domains"], err = domainsFor(c, all.spaces[a.SpaceGUID].OrgGUID)
	return &response{body: summary}, err
}

// domainsFor are the domains that routes of an org can be in.
func domainsFor(c *call, org string) ([]doc, error) {
	found, err := store.Domains.By(c.Tx, "usable_by_organization_guids", org)
	docs := []doc{}
	for _, d := range found {
		one := doc{"guid": d.GUID, "name": d.Name}
		if isPrivate(d) {
			one["owning_organization_guid"] = d.OrgGUID
		} else {
			with(one, doc{"internal": d.Internal, "router_group_guid": control.OrNil(d.RouterGroupGUID)})
		}
		docs = append(docs, one)
	}
	return docs, err
}

// v2AppEnv is GET /v2/apps/{guid}/env.
func v2AppEnv(c *call) (*response, error) {
	res, err := showAppEnv(c)
	if err != nil {
		return nil, err
	}
	env := maps.Clone(res.body.(doc))
	env["environment_json"] = env["environment_variables"]
	delete(env, "environment_variables")
	return ok(env)
}

// webOf is the app of {guid} with its web process.
func webOf(c *call) (*cf.App, *cf.Process, error) {
	a, err := findApp(c)
	if err != nil {
		return nil, nil, err
	}
	p, err := apps.Process(c.Session, a, "web")
	return a, p, err
}

// v2AppStats is GET /v2/apps/{guid}/stats.
func v2AppStats(c *call) (*response, error) {
	a, p, err := webOf(c)
	if err != nil {
		return nil, err
	}
	if a.State != cf.Started {
		return v2Refusal(400, 200003, "AppStoppedStatsError", "Could not fetch stats for stopped app: %s", a.Name), nil
	}
	byIndex, err := instances(c, p, a)
	if err != nil {
		return nil, err
	}
	uris, err := urisOf(c, a)
	if err != nil {
		return nil, err
	}
	asleep, err := sleeps(c, p, a)
	if err != nil {
		return nil, err
	}
	all := doc{}
	for i := range p.Instances {
		s := inSleep(asleep, viewStats(c, p, i, byIndex[i], nil))
		stats := doc{"name": a.Name, "uris": uris, "uptime": s["uptime"]}
		for _, name := range []string{"host", "mem_quota", "disk_quota", "log_rate_limit", "fds_quota", "usage"} {
			if v, ok := s[name]; ok {
				stats[name] = v
			}
		}
		if actual := byIndex[i]; actual != nil && len(actual.Ports) > 0 {
			stats["port"] = actual.Ports[0]
		}
		all[strconv.Itoa(i)] = doc{"state": s["state"], "isolation_segment": s["isolation_segment"], "stats": stats}
	}
	return ok(all)
}

func urisOf(c *call, a *cf.App) ([]string, error) {
	found, err := store.Routes.By(c.Tx, "app_guids", a.GUID)
	if err != nil {
		return nil, err
	}
	uris := []string{}
	for _, r := range found {
		uri, _, err := summaryOfRoute(c, r)
		if err != nil {
			return nil, err
		}
		uris = append(uris, uri)
	}
	return uris, nil
}

// v2AppInstances is GET /v2/apps/{guid}/instances.
func v2AppInstances(c *call) (*response, error) {
	a, p, err := webOf(c)
	if err != nil {
		return nil, err
	}
	if a.DropletGUID == "" {
		return v2Refusal(400, 170002, "NotStaged", "App has not finished staging"), nil
	}
	if a.State != cf.Started {
		return v2Refusal(400, 220001, "InstancesError", "Instances error: Request failed for app: %s as the app is in stopped state.", a.Name), nil
	}
	byIndex, err := instances(c, p, a)
	if err != nil {
		return nil, err
	}
	asleep, err := sleeps(c, p, a)
	if err != nil {
		return nil, err
	}
	all := doc{}
	for i := range p.Instances {
		one := inSleep(asleep, doc{"state": instanceState(byIndex[i]), "uptime": 0})
		if actual := byIndex[i]; actual != nil {
			one = with(one, doc{"uptime": max(0, int64(time.Since(actual.Since).Seconds())), "since": actual.Since.Unix(), "routable": actual.Ready})
			if actual.PlacementError != "" {
				one["details"] = actual.PlacementError
			}
		}
		all[strconv.Itoa(i)] = one
	}
	return ok(all)
}

// v2AppPackage is GET /v2/apps/{guid}/download: the newest package's bits.
func v2AppPackage(c *call) (*response, error) {
	a, err := findApp(c)
	if err != nil {
		return nil, err
	}
	found, err := store.Packages.By(c.Tx, "app_guids", a.GUID)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 || found[len(found)-1].Digest == "" {
		return v2Refusal(404, 150002, "AppPackageNotFound", "The app package could not be found: %s", a.GUID), nil
	}
	return download(c, found[len(found)-1].Digest, "application/zip", "package_"+a.GUID+".zip")
}

// v2AppDroplet is GET /v2/apps/{guid}/droplet/download.
func v2AppDroplet(c *call) (*response, error) {
	a, err := findApp(c)
	if err != nil {
		return nil, err
	}
	d, err := store.Droplets.Get(c.Tx, a.DropletGUID)
	if err != nil && !store.IsNotFound(err) {
		return nil, err
	}
	if err != nil || downloadable(d) != nil {
		return v2Refusal(404, 10010, "ResourceNotFound", "Droplet not found for app with guid %s", a.GUID), nil
	}
	return download(c, d.Digest, "application/gzip", fmt.Sprintf("droplet_%s.tgz", a.GUID))
}

// v2AppRoutes is GET /v2/apps/{guid}/routes.
var v2AppRoutes = v2Routes.list(ofParent(store.Apps, "app_guids"))

// v2RouteApps is GET /v2/routes/{guid}/apps.
func v2RouteApps(c *call) (*response, error) {
	r, err := v2Find(c, store.Routes)
	if err != nil {
		return nil, err
	}
	q, err := v2Query(c.Request.URL, v2Apps.filters)
	if err != nil {
		return nil, err
	}
	q.Visible, q.Where["guids"] = c.Scope, appsOf(r)
	found, total, err := store.Apps.List(c.Tx, q.Query)
	if err != nil {
		return nil, err
	}
	docs, err := v2Apps.views(c, found)
	if err != nil {
		return nil, err
	}
	return ok(c.v2Page(q.Page, q.PerPage, total, q.Desc, docs))
}
