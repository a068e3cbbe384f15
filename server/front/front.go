package front

import (
	"net"
	"net/http"
	"strings"

	"cupola/runtime/fault"
	"cupola/server/bulkhead"
	"cupola/server/certs"
	"cupola/server/console"
	"cupola/server/exact"
	"cupola/server/gitpush"
	"cupola/server/logcache"
	"cupola/server/logcache/query"
	"cupola/server/logstream"
	"cupola/server/machine"
	"cupola/server/metrics"
	"cupola/server/router"
	"cupola/server/uaa"
	"cupola/store/cf"
)

// Front leads each request to the part that answers it.
type Front struct {
	Domain  string // of apps
	API     http.Handler
	UAA     *uaa.UAA
	Logs    *logcache.Cache
	Readers Readers      // of the logs
	Streams http.Handler // of logs: a logstream.Gateway
	Router  *router.Router
	Shard   *router.Shard // which apps are served besides the API; nil is all
	Metrics *metrics.Metrics
	Console *console.Console // nil: there is none
	Git     *gitpush.Face    // nil: there is none
	// Machine, Alerts and Operations are for admins; nil: there are none.
	Machine    *machine.Machine
	Alerts     http.Handler
	Operations http.Handler
	Gate       *router.Gate
	Slots      *bulkhead.Share[string] // requests of the API, by user or else by address
	Health     *Health
	Certs      *certs.Source // answers ACME servers that validate names; nil: nothing does
}

// challenged is h, after the requests of ACME servers.
func (f *Front) challenged(h http.Handler) http.Handler {
	if f.Certs == nil {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !f.Certs.ServeChallenge(w, r) {
			h.ServeHTTP(w, r)
		}
	})
}

// Handler is the handler of the listeners of --http and --https: the API's hosts get
// the API, the UAA, the log cache and the health; every other host is an app's.
func (f *Front) Handler() http.Handler {
	api, apps := f.bounded(f.control()), f.Router.In(f.Shard)
	return fault.Handler("http", f.challenged(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !f.isAPI(r.Host):
			apps.ServeHTTP(w, r)
		case isHealth(r):
			f.Health.ServeHTTP(w, r)
		default:
			api.ServeHTTP(w, r)
		}
	})))
}

// Director is the handler of the listener of --director: the API of BOSH's director,
// and the UAA below a path. The UAA's pages name each other without it; /info is the
// director's.
func (f *Front) Director(api http.Handler, uaaPath string) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", api)
	mux.Handle(uaaPath+"/", f.byAddress(http.StripPrefix(uaaPath, f.UAA)))
	for _, p := range uaa.Paths() {
		if p != "/info" {
			mux.Handle(p, f.byAddress(f.UAA))
		}
	}
	return fault.Handler("director", f.bounded(exact.Paths(mux, api)))
}

// Direct says which requests of the same listeners the router forwards directly. Others of HTTP/2
// are the handler's.
func (f *Front) Direct(handler http.Handler) router.Direct {
	return router.Direct{Shard: f.Shard, Reserved: f.isReserved, Handler: handler}
}

// isReserved reports whether requests of a Host are not the router's alone.
func (f *Front) isReserved(host string) bool {
	return f.isAPI(host) || f.Certs != nil && f.Certs.Pending(host)
}

// control is what the system's hosts serve.
func (f *Front) control() http.Handler {
	mux, v3 := http.NewServeMux(), f.Metrics.API(f.API)
	control := exact.Paths(mux, v3)
	mux.Handle("/", v3)
	for _, p := range uaa.Paths() {
		mux.Handle(p, f.byAddress(f.UAA))
	}
	mux.Handle("/api/v1/", f.byAddress(f.Logs.Handler(f.Readers.mayRead)))
	asked := f.byAddress(f.UAA.Basic(query.Handler(f.Logs, f.Readers.mayRead, f.Readers.user), query.Refuse))
	for _, p := range query.Paths {
		mux.Handle(p, asked)
	}
	for _, p := range logstream.Paths {
		mux.Handle(p, f.Streams)
	}
	f.operators(mux)
	if f.Git != nil {
		mux.Handle(gitpush.Path, f.byAddress(f.Git.Handler(control)))
	}
	if f.Console == nil {
		return control
	}
	mux.Handle(console.Path, f.Console.Handler(control))
	return f.Console.Home(control)
}

// isAPI reports whether a Host is the system's: an IP address, localhost, or one
// of the system's hosts in the domain. It is asked before any route is, so that
// a route from before a host was reserved leads nowhere.
func (f *Front) isAPI(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return isMachine(host) || cf.IsSystemHost(host, f.Domain)
}
