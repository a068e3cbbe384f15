package router

import (
	"net/url"
	"slices"
	"strings"
	"time"
)

// index is a Table made ready for look-ups. It never changes.
type index struct {
	exact    map[string][]*pool // by host; the longest path first
	wildcard map[string][]*pool // by what follows the star: ".example.com"
	ports    map[int]*pool
	hashed   map[routeKey]*hashed
	backends map[backendKey]*backend
	guarded  map[string]bool       // domains
	apps     map[string][]*backend // by the GUIDs of apps
	dozes    map[string]*doze      // of the apps that a route leads to
	emptyFor time.Duration         // how long a pool may be empty before its route is unknown
}

// routeKey names a pool across tables.
type routeKey struct {
	host, path string
	port       int
}

// hostOf is the host of a Host header as routes have it.
func hostOf(header string) string {
	if i := strings.IndexByte(header, ':'); i >= 0 {
		header = header[:i]
	}
	return strings.ToLower(header)
}

// routes is how many pools there are by host and path.
func (x *index) routes() (n int) {
	for _, hosts := range []map[string][]*pool{x.exact, x.wildcard} {
		for _, pools := range hosts {
			n += len(pools)
		}
	}
	return n
}

// lookup finds the pool of a host and path: the exact host before a wildcard,
// a longer wildcard before a shorter one, the longest path within a host.
func (x *index) lookup(host, path string) *pool { return x.find(host, path, nil) }

// find is lookup in a shard.
func (x *index) find(host, path string, s *Shard) *pool {
	if p := x.longest(x.exact[host], path, s); p != nil {
		return p
	}
	for rest := host; ; {
		dot := strings.IndexByte(rest, '.')
		if dot < 0 {
			return nil
		}
		if p := x.longest(x.wildcard[rest[dot:]], path, s); p != nil {
			return p
		}
		rest = rest[dot+1:]
	}
}

// knows reports whether a route has a host, whatever its path.
func (x *index) knows(host string) bool {
	if len(x.exact[host]) > 0 {
		return true
	}
	for rest := host; ; rest = rest[1:] {
		dot := strings.IndexByte(rest, '.')
		if dot < 0 {
			return false
		}
		if rest = rest[dot:]; len(x.wildcard[rest]) > 0 {
			return true
		}
	}
}

// longest is the first pool that matches a path and is not gone: a pool that has been
// empty for too long hides neither a shorter path nor a wildcard, as in gorouter.
func (x *index) longest(pools []*pool, path string, s *Shard) *pool {
	for _, p := range pools {
		if p.matches(path) && !p.gone(x.emptyFor) && s.serves(p) {
			return p
		}
	}
	return nil
}

// indexer makes an index of a table, keeping what goes on from the one before.
type indexer struct {
	old        *index
	newBackend func(Endpoint) *backend
	secures    func(Endpoint) bool
	emptyFor   time.Duration
	dozeOf     func(appGUID string) *doze
	pools      map[routeKey]*pool
	hashed     map[routeKey]Options // of the routes that have a hash header
	made       *index
}

func (b *indexer) build(t Table) *index {
	b.pools, b.hashed = map[routeKey]*pool{}, map[routeKey]Options{}
	b.made = &index{exact: map[string][]*pool{}, wildcard: map[string][]*pool{}, ports: map[int]*pool{}, hashed: map[routeKey]*hashed{}, backends: map[backendKey]*backend{}, guarded: map[string]bool{}, apps: map[string][]*backend{}, dozes: map[string]*doze{}, emptyFor: b.emptyFor}
	for _, route := range t.Routes {
		b.add(route)
	}
	for _, domain := range t.Guarded {
		b.made.guarded[strings.ToLower(domain)] = true
	}
	for key, options := range b.hashed {
		b.pools[key].hashed = newHashed(options, b.pools[key].endpoints, b.old.hashed[key])
		b.made.hashed[key] = b.pools[key].hashed
	}
	byLength := func(a, b *pool) int { return len(b.path) - len(a.path) }
	for _, hosts := range []map[string][]*pool{b.made.exact, b.made.wildcard} {
		for _, pools := range hosts {
			slices.SortFunc(pools, byLength)
		}
	}
	for _, p := range b.pools {
		p.direct = p.service == nil && !slices.ContainsFunc(p.endpoints, b.indirect)
	}
	return b.made
}

// indirect reports whether an endpoint is not reached in plain HTTP/1.1.
func (b *indexer) indirect(e *endpoint) bool { return e.Protocol == HTTP2 || b.secures(e.Endpoint) }

func (b *indexer) add(route Route) {
	key := routeKey{strings.ToLower(route.Host), strings.ToLower(strings.TrimRight(route.Path, "/")), route.Port}
	p := b.pools[key]
	if p == nil {
		p = &pool{path: key.path, appGUID: route.AppGUID}
		p.follow(b.previous(key))
		b.pools[key] = p
		b.place(key, p)
	}
	if u, err := url.Parse(route.ServiceURL); err == nil && u.Host != "" {
		p.service = u
	}
	if route.Policy != nil {
		p.policy = route.Policy
	}
	if o := route.Options; o.LoadBalancing == Hash && o.HashHeader != "" && route.Port == 0 {
		b.hashed[key] = o
	}
	p.least = p.least || route.Options.LoadBalancing == LeastConnection
	for _, e := range route.Endpoints {
		backend := b.backend(e)
		p.endpoints = append(p.endpoints, newEndpoint(e, backend))
		if e.AppGUID != "" && !slices.Contains(b.made.apps[e.AppGUID], backend) {
			b.made.apps[e.AppGUID] = append(b.made.apps[e.AppGUID], backend)
		}
	}
	for _, app := range route.apps() {
		if d := b.doze(app); !slices.Contains(p.dozes, d) {
			p.dozes = append(p.dozes, d)
		}
	}
}

// doze is that of an app.
func (b *indexer) doze(app string) *doze {
	d := b.made.dozes[app]
	if d == nil {
		d = b.dozeOf(app)
		b.made.dozes[app] = d
	}
	return d
}

// place puts a new pool where it is looked up.
func (b *indexer) place(key routeKey, p *pool) {
	if key.port > 0 {
		b.made.ports[key.port] = p
		return
	}
	hosts, name := b.made.exact, key.host
	if rest, ok := strings.CutPrefix(key.host, "*"); ok {
		hosts, name = b.made.wildcard, rest
	}
	hosts[name] = append(hosts[name], p)
}

// previous is the pool of the same route in the table before; nil for none.
func (b *indexer) previous(key routeKey) *pool {
	if key.port > 0 {
		return b.old.ports[key.port]
	}
	hosts, name := b.old.exact, key.host
	if rest, ok := strings.CutPrefix(key.host, "*"); ok {
		hosts, name = b.old.wildcard, rest
	}
	for _, p := range hosts[name] {
		if p.path == key.path {
			return p
		}
	}
	return nil
}

func (b *indexer) backend(e Endpoint) *backend {
	key := e.key()
	found := b.made.backends[key]
	if found == nil {
		found = b.old.backends[key]
	}
	if found == nil {
		found = b.newBackend(e)
	}
	b.made.backends[key] = found
	return found
}
