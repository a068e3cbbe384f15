package backups

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"cupola/cmd/cupola/capi"
	"cupola/cmd/cupola/command"
	"cupola/server"
	"cupola/server/admin"
)

// steady is how long all must run: what crashes runs for a moment.
const steady = 3 * time.Second

// look waits until all runs that is to, and notes what does.
func (d *drilled) look(ctx context.Context, e *command.Env, r server.Ready, within time.Duration) error {
	c, err := capi.Login(ctx, r.HTTP, "admin", r.AdminPassword)
	if err != nil {
		return err
	}
	l := &drillLook{ctx: ctx, client: c, target: admin.Target{DataDir: r.DataDir, Log: e.Log}, router: strings.TrimPrefix(r.HTTP, "http://"), places: map[string]string{}}
	if err := l.findPlaces(); err != nil {
		return err
	}
	began := time.Now()
	var since time.Time // everything runs since then
	for {
		if d.Found, err = l.all(); err != nil {
			return err
		}
		now := time.Now()
		if len(d.lacking()) > 0 {
			since = time.Time{}
		} else if since.IsZero() {
			since = now
		}
		if since.IsZero() || since.Equal(now) {
			d.Waited = now.Sub(began).Seconds()
		}
		if now.Sub(began) >= within || !since.IsZero() && now.Sub(since) >= steady {
			return nil
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// drillLook looks at a daemon.
type drillLook struct {
	ctx    context.Context
	client *capi.Client
	target admin.Target
	router string            // address
	places map[string]string // names of orgs and ORG/SPACE, by GUID
}

type drillDestination struct{ App struct{ GUID string } }

// drillRow is a resource of the API, with what some kinds have.
type drillRow struct {
	GUID, Name, State, Type, Protocol, Host, Path, URL string
	Internal                                           bool
	Instances                                          int
	Destinations                                       []drillDestination
	Relationships                                      struct {
		Space, App, Domain, Organization struct{ Data struct{ GUID string } }
	}
}

func (l *drillLook) list(path string) ([]drillRow, error) {
	return capi.List[drillRow](l.ctx, l.client, path+"?per_page=5000")
}

// all looks at processes, routes and service instances.
func (l *drillLook) all() ([]drilledOne, error) {
	apps, err := l.apps()
	if err != nil {
		return nil, err
	}
	processes, err := l.processes(apps)
	if err != nil {
		return nil, err
	}
	routes, err := l.routes(apps)
	if err != nil {
		return nil, err
	}
	services, err := l.services()
	return append(append(processes, routes...), services...), err
}

// findPlaces notes the names of orgs and spaces.
func (l *drillLook) findPlaces() error {
	orgs, err := l.list("/v3/organizations")
	if err != nil {
		return err
	}
	for _, o := range orgs {
		l.places[o.GUID] = o.Name
	}
	spaces, err := l.list("/v3/spaces")
	for _, s := range spaces {
		l.places[s.GUID] = l.places[s.Relationships.Organization.Data.GUID] + "/" + s.Name
	}
	return err
}

// apps are the names of the apps that are started, by GUID: ORG/SPACE/APP.
func (l *drillLook) apps() (map[string]string, error) {
	all, err := l.list("/v3/apps")
	started := map[string]string{}
	for _, a := range all {
		if a.State == "STARTED" {
			started[a.GUID] = l.places[a.Relationships.Space.Data.GUID] + "/" + a.Name
		}
	}
	return started, err
}

func (l *drillLook) processes(apps map[string]string) (found []drilledOne, err error) {
	all, err := l.list("/v3/processes")
	if err != nil {
		return nil, err
	}
	for _, p := range all {
		app := apps[p.Relationships.App.Data.GUID]
		if app == "" || p.Instances == 0 {
			continue
		}
		one := drilledOne{Kind: kindProcess, Name: app + " " + p.Type, Want: p.Instances}
		if err := l.instances(p.GUID, &one); err != nil {
			return nil, err
		}
		found = append(found, one)
	}
	return found, nil
}

// instances counts those of a process that run.
func (l *drillLook) instances(process string, one *drilledOne) error {
	var stats struct {
		Resources []struct{ State, Details string }
	}
	err := l.client.Call(l.ctx, http.MethodGet, "/v3/processes/"+process+"/stats", nil, &stats)
	for _, i := range stats.Resources {
		if i.State == "RUNNING" || i.State == "SLEEPING" {
			one.Have++
		} else {
			one.Why = strings.TrimSuffix(i.State+": "+i.Details, ": ")
		}
	}
	return err
}

// routes asks each HTTP route of an app that is started, as a client would.
func (l *drillLook) routes(apps map[string]string) (found []drilledOne, err error) {
	domains, err := l.list("/v3/domains")
	if err != nil {
		return nil, err
	}
	internal := map[string]bool{}
	for _, d := range domains {
		internal[d.GUID] = d.Internal
	}
	all, err := l.list("/v3/routes")
	for _, r := range all {
		leads := slices.ContainsFunc(r.Destinations, func(to drillDestination) bool { return apps[to.App.GUID] != "" })
		if !leads || r.Protocol != "http" || internal[r.Relationships.Domain.Data.GUID] {
			continue
		}
		one := drilledOne{Kind: kindRoute, Name: r.URL, Want: 1, Have: 1}
		if err := l.ask(r.URL); err != nil {
			one.Have, one.Why = 0, err.Error()
		}
		found = append(found, one)
	}
	return found, err
}

// ask sends a request for an app to the router. Any answer of the app counts.
func (l *drillLook) ask(route string) error {
	ctx, cancel := context.WithTimeout(l.ctx, 20*time.Second)
	defer cancel()
	host, path, _ := strings.Cut(strings.Replace(route, "*", "drill", 1), "/")
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+l.router+"/"+path, nil)
	if err != nil {
		return err
	}
	req.Host = host
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if fault := res.Header.Get("X-Cf-RouterError"); fault != "" {
		return fmt.Errorf("%s: %s", res.Status, fault)
	}
	return nil
}

// services are the instances of the built-in broker that have a container.
func (l *drillLook) services() (found []drilledOne, err error) {
	all, err := l.list("/v3/service_instances")
	if err != nil {
		return nil, err
	}
	names := map[string]string{}
	for _, i := range all {
		names[i.GUID] = l.places[i.Relationships.Space.Data.GUID] + "/" + i.Name
	}
	status, err := admin.BrokerStatus.Do(l.ctx, l.target, admin.None{}, nil)
	if err != nil {
		return nil, err
	}
	for _, i := range status.Instances {
		one := drilledOne{Kind: kindService, Name: fmt.Sprintf("%s (%s)", names[i.GUID], i.Service), Want: 1}
		if i.Address != "" || i.Service == "files" {
			one.Have = 1
		} else {
			one.Why = "its container does not run"
		}
		found = append(found, one)
	}
	return found, nil
}
