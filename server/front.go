package server

import (
	"cmp"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"cupola/runtime/fault"
	"cupola/server/logcache/query"
	"cupola/server/uaa"
	"cupola/store"
	"cupola/store/cf"
)

// front is the one handler of every listener: the API's hosts get the API, the
// UAA and the log cache; every other host is an app's.
func (d *daemon) front() http.Handler {
	control := http.NewServeMux()
	control.Handle("/", d.metrics.API(d.api))
	for _, p := range uaa.Paths() {
		control.Handle(p, d.byAddress(d.uaa))
	}
	control.Handle("/api/v1/", d.byAddress(d.logs.Cache.Handler(d.mayReadLogs)))
	asked := d.byAddress(query.Handler(d.logs.Cache, d.mayReadLogs, d.userOf))
	control.Handle("/api/v1/query", asked)
	control.Handle("/api/v1/query_range", asked)
	api := d.bounded(control)
	return fault.Handler("http", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if d.isAPI(r.Host) {
			api.ServeHTTP(w, r)
			return
		}
		d.router.ServeHTTP(w, r)
	}))
}

// isAPI reports whether a Host is the system's: an IP address, localhost, or one
// of the system's hosts in the domain. It is asked before any route is, so that
// a route from before a host was reserved leads nowhere.
func (d *daemon) isAPI(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if host == "localhost" || cf.IsSystemHost(host, d.Domain) {
		return true
	}
	_, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil
}

// userOf names whom a request's token speaks for: a user, or else a client.
func (d *daemon) userOf(r *http.Request) string {
	_, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	id, err := d.authenticate(r.Context(), token)
	if err != nil {
		return ""
	}
	return cmp.Or(id.UserGUID, id.ClientID)
}

// mayReadLogs lets those read an app's log who see the app, and those with the
// firehose read everything.
func (d *daemon) mayReadLogs(r *http.Request, sourceIDs ...string) (may map[string]bool, err error) {
	_, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	id, err := d.authenticate(r.Context(), token)
	if err != nil || len(sourceIDs) == 0 {
		return nil, err
	}
	may = map[string]bool{}
	if slices.Contains(id.Scopes, "doppler.firehose") {
		for _, source := range sourceIDs {
			may[source] = true
		}
		return may, nil
	}
	err = d.store.Read(r.Context(), func(tx *store.Tx) error { return d.markVisible(tx, id, sourceIDs, may) })
	return may, err
}
