package router

import (
	"net/http"
	"slices"
	"strings"
)

// Shard is the part of the routes that the router serves at a listener: the endpoints
// of some isolation segments. A nil Shard has all endpoints. (In gorouter's words: nil
// is the routing_table_sharding_mode "all", with Shared it is "shared-and-segments",
// without it "segments".)
type Shard struct {
	Shared   bool     // endpoints in no isolation segment
	Segments []string // names; case does not matter
}

func (s *Shard) has(e *endpoint) bool {
	if s == nil {
		return true
	}
	if e.Segment == "" {
		return s.Shared
	}
	return slices.ContainsFunc(s.Segments, func(name string) bool { return strings.EqualFold(name, e.Segment) })
}

// among are the endpoints that are in the shard.
func (s *Shard) among(endpoints []*endpoint) []*endpoint {
	if s == nil {
		return endpoints
	}
	var found []*endpoint
	for _, e := range endpoints {
		if s.has(e) {
			found = append(found, e)
		}
	}
	return found
}

// serves reports whether a route is one of the shard's: gorouter registers no endpoint
// of another segment, so a route with only those is unknown there.
func (s *Shard) serves(p *pool) bool {
	return s == nil || len(p.endpoints) == 0 || slices.ContainsFunc(p.endpoints, s.has)
}

// In is a handler that forwards requests to the endpoints of a shard.
func (r *Router) In(s *Shard) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { r.serve(w, req, s) })
}
