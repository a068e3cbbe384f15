package backups

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"cupola/cmd/cupola/capi"
	"cupola/cmd/cupola/command"
	"cupola/runtime/network"
	"cupola/server"
	"cupola/server/acme"
	"cupola/server/admin"
	"cupola/server/admin/offsite"
	"cupola/server/bulkhead"
	"cupola/server/cells"
	"cupola/server/config"
	"cupola/server/otlp"
)

// drilled is what a drill found.
type drilled struct {
	Started, Waited float64 // seconds until the daemon served, and until nothing more was waited for
	Found           []drilledOne
}

// drilledOne is a process of an app, a route or a service instance.
type drilledOne struct {
	Kind, Name string
	Want, Have int
	Why        string `json:",omitempty"`
}

// DrillRunCmd is the internal command that a drill runs in a network namespace. The flags are those of serve,
// so that a configuration file of the daemon says how it runs.
type DrillRunCmd struct {
	Config config.Config `embed:""`
	Within time.Duration `default:"2m"`
}

// Run runs the daemon until it was looked at, or the standard input ends.
func (c *DrillRunCmd) Run(e *command.Env) error {
	if err := network.RaiseLoopback(); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(e.Ctx)
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // it ends with the command that runs this one
		stop()
	}()
	ready, ended := make(chan server.Ready, 1), make(chan error, 1)
	began := time.Now()
	go func() { ended <- server.Run(ctx, drillConfig(c.Config, e), func(r server.Ready) { ready <- r }) }()
	select {
	case err := <-ended:
		return err
	case r := <-ready:
		d := &drilled{Started: time.Since(began).Seconds()}
		err := d.look(ctx, e, r, c.Within)
		stop()
		if err := errors.Join(err, <-ended); err != nil {
			return err
		}
		return json.NewEncoder(e.Out).Encode(d)
	}
}

// drillConfig is the daemon's configuration without what leads out of the machine, or to it.
func drillConfig(c config.Config, e *command.Env) config.Config {
	c.HTTP, c.HTTPS, c.SSH, c.BBS, c.Director, c.Metrics = "127.0.0.1:0", "off", "off", "", "", ""
	c.SegmentRouters, c.SegmentHTTPS, c.RouterSegments = nil, nil, nil
	c.ACME, c.Telemetry, c.Backups, c.AlertCommand = acme.Flags{}, otlp.Flags{}, offsite.Flags{}, ""
	c.Kubernetes, c.KubernetesRegistry, c.RegistryListen = nil, "", ""
	c.AdminPassword = "" // the backup's
	if len(c.DataServices) == 0 {
		c.DataServices = []string{"postgres", "mysql", "redis", "nats", "rabbitmq", "smtp", "files"}
	}
	if len(c.Cells) == 0 {
		// What runs on this machine keeps half of the memory that is free.
		_, free := bulkhead.Memory("/")
		c.Cells = cells.List{{Name: "drill", MemoryMB: cells.Megabytes(max(free>>21, 1))}}
	}
	c.Version, c.Log, c.Level, c.Stop = command.BuildVersion(), e.Log, e.Level, config.StopApps
	return c
}

// steady is how long all must have run: what crashes runs for a moment.
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
	lacked := began
	for {
		if d.Found, err = l.all(); err != nil {
			return err
		}
		now := time.Now()
		if d.lacking() > 0 {
			lacked = now
		}
		d.Waited = lacked.Sub(began).Seconds()
		if now.Sub(lacked) >= steady || now.Sub(began) >= within {
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
		one := drilledOne{Kind: "app", Name: app + " " + p.Type, Want: p.Instances}
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
		one := drilledOne{Kind: "route", Name: r.URL, Want: 1, Have: 1}
		if err := l.ask(r.URL); err != nil {
			one.Have, one.Why = 0, err.Error()
		}
		found = append(found, one)
	}
	return found, err
}

// ask has the router answer for an app. What the app answers is its own affair.
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
		one := drilledOne{Kind: "service", Name: fmt.Sprintf("%s (%s)", names[i.GUID], i.Service), Want: 1}
		if i.Address != "" || i.Service == "files" {
			one.Have = 1
		} else {
			one.Why = "its container does not run"
		}
		found = append(found, one)
	}
	return found, nil
}
