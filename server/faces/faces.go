// Package faces opens and serves what clients meet: the API and the UAA, the router
// of apps, the BBS, cf ssh and metrics.
package faces

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/url"
	"strings"

	"golang.org/x/crypto/ssh"

	"cupola/runtime/fault"
	"cupola/server/api"
	"cupola/server/bbs"
	"cupola/server/boshapi"
	"cupola/server/bulkhead"
	"cupola/server/certs"
	"cupola/server/console"
	"cupola/server/executor"
	"cupola/server/front"
	"cupola/server/gitpush"
	"cupola/server/logstream"
	"cupola/server/loops"
	"cupola/server/machine"
	"cupola/server/metrics"
	"cupola/server/reconcile"
	"cupola/server/router"
	"cupola/server/sshproxy"
	"cupola/server/uaa"
	"cupola/store/cf"
)

// Faces are the servers of a daemon, one for each kind of client. They are opened
// in the order of the methods.
type Faces struct {
	Executor   *executor.Executor // is given, and opened meanwhile
	Operations http.Handler       // of operators, for admins of the API; is given before Listen
	Alerts     http.Handler       // for admins of the API; is given before Listen
	Health     *front.Health      // is given

	BackupsBehind func() map[string]float64 // seconds, by address; is given before Listen

	UAA     *uaa.UAA
	Router  *router.Router
	Metrics *metrics.Metrics
	Machine *machine.Machine

	limits   bulkhead.Limits
	gate     *router.Gate
	slots    *bulkhead.Share[string] // requests of the API, by user or else by address
	ports    *router.Ports           // nil where there are no TCP routes
	tcpPorts cf.PortRanges
	ssh      *sshproxy.Proxy // nil where there is none
	sshKey   ssh.PublicKey   // its host key
	bbs      *bbs.Server
	endpoint *bbs.Endpoint // nil where the BBS has no listener
	api      *api.Server
	director *boshapi.Server
	streams  *logstream.Gateway
	console  *console.Console
	certs    *certs.Source
	git      *gitpush.Face
	endPolls func() // answers the requests that wait for news

	bound front.Listeners
	http  []net.Listener // the guarded ones of bound
	front *front.Server
	sides []sideServer // routers of isolation segments, and the director's API
}

// OpenLimits derives the budgets of connections and requests from how many
// files this process may open.
func (f *Faces) OpenLimits(context.Context) error {
	limits, err := bulkhead.ProcessLimits()
	if err != nil {
		return err
	}
	f.limits, f.gate, f.slots = limits, router.NewGate(limits), bulkhead.NewShare[string](limits.API, 1)
	return nil
}

// OpenRouter opens the UAA, and the router with the ports of TCP routes.
func (f *Faces) OpenRouter(ctx context.Context) error {
	x := f.Executor
	passwords, err := uaa.ParsePolicy(x.PasswordPolicy)
	if err != nil {
		return err
	}
	if f.UAA, err = uaa.New(ctx, uaa.Config{Store: x.Store, Passwords: passwords, Log: x.Log}); err != nil {
		return err
	}
	backends, err := f.backends()
	if err != nil {
		return err
	}
	f.Router = router.New(router.Config{Backends: backends, Log: x.Log, AccessLog: f.accessed, Trace: f.Metrics.Trace(), DistrustForwarded: true, Services: x.Egress(), Gate: f.gate, Dial: f.Executor.Dial, EmptyPool: x.EmptyPool})
	tcp := front.TCP{Address: x.TCP, Router: f.Router, Held: x.Listeners, Manager: x.Manager, Say: x.Logs.Router, Log: x.Log}
	f.ports, f.tcpPorts = tcp.Open()
	return nil
}

// accessed counts a request to an app, and says it in the app's log.
func (f *Faces) accessed(e router.AccessEntry) {
	f.Metrics.Requested(metrics.Request{Status: e.Status, AppGUID: e.AppGUID, Took: e.At.Sub(e.Began)})
	f.Metrics.Traced(e)
	f.Executor.Logs.Access(e)
}

// OpenAPI opens the API, the web console and the BBS.
func (f *Faces) OpenAPI(ctx context.Context, l *loops.Loops) error {
	f.bbs, f.Machine = newBBS(l), f.newMachine()
	polls, endPolls := context.WithCancel(ctx)
	f.endPolls = endPolls
	f.api = api.New(polls, f.apiConfig(l))
	f.director = f.newDirector(l)
	f.streams = logstream.New(logstream.Config{Hub: &f.Executor.Logs.Hub, Cache: f.Executor.Logs.Cache, Store: f.Executor.Store, Authorize: f.readers().Reader, Stop: polls, Log: f.Executor.Log})
	var err error
	if err = f.openGit(polls); err != nil {
		return err
	}
	return f.openConsole(polls)
}

// openGit opens git push.
func (f *Faces) openGit(stop context.Context) error {
	x := f.Executor
	address, err := url.Parse(x.APIURL())
	if err != nil {
		return err
	}
	f.git, err = gitpush.New(gitpush.Config{Dir: x.Dir.Path("git"), Store: x.Store, Verify: f.UAA.Verify, KeyToken: f.UAA.KeyToken, API: address, Stop: stop, Log: x.Log})
	return err
}

// Listen guards the listeners, so that they refuse requests that can be read in two
// ways, and prepares what clients need to connect.
func (f *Faces) Listen(ctx context.Context, bound front.Listeners) error {
	x := f.Executor
	if err := f.openCertificates(ctx); err != nil {
		return err
	}
	handlers := f.handlers()
	handler := handlers.Handler()
	guard := func(l net.Listener, c *tls.Config, d router.Direct) net.Listener {
		return f.Router.Ahead(router.Guard(l, c, f.gate), d)
	}
	f.bound = bound
	secure := f.certs.TLS(certs.Callers{Guards: f.Router.Guards, May: func(name string) bool { return strings.EqualFold(name, x.AutoscalerHost()) }, Authorities: x.Identities.Certificate})
	for _, l := range []struct {
		net.Listener
		tls *tls.Config
	}{{bound.Plain, nil}, {bound.Secure, secure}, {x.Inside["http"], nil}, {x.Inside["https"], secure}} {
		if l.Listener != nil {
			f.http = append(f.http, guard(l.Listener, l.tls, handlers.Direct(handler)))
		}
	}
	f.front = front.NewServer(handler, f.endPolls, x.Log)
	for i, s := range x.SegmentListeners() {
		var config *tls.Config
		if s.TLS {
			config = secure
		}
		apps := handlers.ForSegments(s.Shard)
		f.sides = append(f.sides, sideServer{front.NewServer(apps, func() {}, x.Log), []net.Listener{guard(bound.Segments[i], config, handlers.DirectForSegments(s.Shard, apps))}})
	}
	if bound.Director != nil {
		if err := x.Dir.WriteDirector(x.Director); err != nil {
			return err
		}
		f.sides = append(f.sides, sideServer{front.NewServer(handlers.Director(f.director, boshapi.UAAPath), func() {}, x.Log), []net.Listener{router.Guard(bound.Director, secure, f.gate)}})
	}
	return f.prepareBBS()
}

// Certificates lists the certificates that were given for domains and in files.
func (f *Faces) Certificates() []certs.Expiry { return f.certs.Expiries() }

// UseCertificate makes a certificate the default one of the HTTPS listeners.
func (f *Faces) UseCertificate(p certs.Pair) { f.certs.Use(p) }

// openCertificates opens those of the HTTPS listeners.
func (f *Faces) openCertificates(ctx context.Context) (err error) {
	x := f.Executor
	if f.certs, err = certs.New(certs.Config{Local: f.localCerts(), Store: x.Store, Files: x.TLSFiles, Routed: f.Router.Knows, ACME: x.ACMEConfig(), Log: x.Log}); err != nil {
		return err
	}
	return f.certs.Set(ctx)
}

// localCerts makes certificates that the CA of this machine signs.
func (f *Faces) localCerts() *certs.Local {
	x := f.Executor
	return &certs.Local{Authority: x.Dir.Authority, APIHost: x.APIHost(), Domain: x.Domain, Log: x.Log}
}

// backends says how the router speaks TLS to instances; nil where it does not.
func (f *Faces) backends() (*router.BackendTLS, error) {
	if !f.Executor.BackendTLS {
		return nil, nil
	}
	own, err := f.localCerts().Client()
	return &router.BackendTLS{Authorities: f.Executor.Identities.Certificate, Certificate: own}, err
}

// sideServer serves apps of some isolation segments, or the director's API.
type sideServer struct {
	*front.Server
	listeners []net.Listener
}

// handlers lead requests of the HTTP listeners to the face that answers them.
func (f *Faces) handlers() *front.Front {
	return &front.Front{Domain: f.Executor.Domain, API: f.api, UAA: f.UAA, Logs: f.Executor.Logs.Cache, Readers: f.readers(), Streams: f.streams,
		Router: f.Router, Metrics: f.Metrics, Console: f.console, Git: f.git, Machine: f.Machine, Alerts: f.Alerts, Operations: f.Operations, Gate: f.gate, Slots: f.slots, Shard: f.Executor.Shard(), Health: f.Health, Certs: f.certs}
}

// readers tells who may read logs.
func (f *Faces) readers() front.Readers {
	return front.Readers{Store: f.Executor.Store, UAA: f.UAA}
}

// Start serves in a group until live ends. What takes connections takes none after
// ctx.
func (f *Faces) Start(ctx, live context.Context, group *fault.Group) {
	f.front.Start(ctx, group, f.http)
	for _, s := range f.sides {
		s.Start(ctx, group, s.listeners)
	}
	group.Go(fault.Loop(live, "jobs", f.api.Jobs.Run))
	group.Go(fault.Loop(live, "jobs of apps", f.api.Cron.Run))
	group.Go(fault.Loop(live, "autoscaling", f.api.Autoscaler.Run))
	group.Go(fault.Loop(live, "console", f.console.Run))
	group.Go(fault.Loop(live, "certificates", f.certs.Run))
	group.Go(fault.Loop(live, "git", f.git.Run))
	if f.ports != nil { // they listen until ctx ends; connections go on until live ends
		group.Go(fault.Loop(live, "ports", func(live context.Context) error { return f.ports.Run(ctx, live) }))
	}
	if f.bound.SSH != nil {
		group.Go(fault.Loop(live, "sshproxy", func(live context.Context) error { return f.serveSSH(ctx, live) }))
	}
	group.Go(fault.Loop(live, "bbs", f.bbs.Run)) // tasks have callbacks also when the listener was taken away
	if f.bound.BBS != nil {
		group.Go(fault.Loop(live, "bbs", func(live context.Context) error { return f.bbs.Serve(live, f.bound.BBS, f.endpoint.TLS()) }))
	}
	group.Go(fault.Loop(live, "telemetry", f.Metrics.Send))
	if f.bound.Metrics != nil {
		group.Go(fault.Loop(live, "metrics", func(live context.Context) error { return f.Metrics.Serve(live, f.bound.Metrics) }))
	}
}

// Drain takes no new requests and lets those in flight finish.
func (f *Faces) Drain() {
	f.front.Close(f.http)
	for _, s := range f.sides {
		s.Close(s.listeners)
	}
	ctx, cancel := context.WithTimeout(context.Background(), reconcile.DrainTime)
	defer cancel()
	f.front.Drain(ctx)
	for _, s := range f.sides {
		s.Drain(ctx)
	}
	if f.ports != nil {
		select {
		case <-f.ports.Left():
		case <-ctx.Done():
		}
	}
	if err := f.Router.Drain(ctx); err != nil {
		f.Executor.Log.Warn("connections cut off", "err", err)
	}
}
