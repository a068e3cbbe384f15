package front

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	"cupola/runtime/fault"
	"cupola/server/router"
)

// sharedSegment names the shared isolation segment: that of apps in no other.
const sharedSegment = "shared"

// segmentFlag is the flag of routers of isolation segments.
const segmentFlag = "segment-router"

// SegmentRouter is a listener that serves only the apps of some isolation segments.
type SegmentRouter struct {
	Shard   *router.Shard
	Address string
	TLS     bool
}

// flag names the flag that it comes from.
func (r SegmentRouter) flag() string {
	if r.TLS {
		return segmentFlag + "-https"
	}
	return segmentFlag
}

// ParseShard reads the names of isolation segments, of which "shared" is that of apps
// in no other; none are all, which is nil.
func ParseShard(names []string) (*router.Shard, error) {
	if len(names) == 0 {
		return nil, nil
	}
	s := &router.Shard{}
	for _, name := range names {
		name = strings.TrimSpace(name)
		switch {
		case name == "":
			return nil, errors.New("a name is empty")
		case strings.EqualFold(name, sharedSegment):
			s.Shared = true
		default:
			s.Segments = append(s.Segments, name)
		}
	}
	return s, nil
}

// ParseSegmentRouter reads a --segment-router, like "red=127.0.0.1:8081" or
// "red+blue=:8081".
func ParseSegmentRouter(text string) (r SegmentRouter, err error) {
	i := strings.LastIndexByte(text, '=')
	if i < 0 {
		return r, errors.New("it has no =")
	}
	r.Address = text[i+1:]
	if _, _, err := net.SplitHostPort(r.Address); err != nil {
		return r, fmt.Errorf("%q is not an address", r.Address)
	}
	r.Shard, err = ParseShard(strings.Split(text[:i], "+"))
	return r, err
}

// DirectForSegments says which requests of such a listener the router forwards directly. Others of
// HTTP/2 are the handler's.
func (f *Front) DirectForSegments(s *router.Shard, handler http.Handler) router.Direct {
	return router.Direct{Shard: s, Handler: handler, Reserved: func(host string) bool { return isMachine(host) || f.Certs != nil && f.Certs.Pending(host) }}
}

// ForSegments is the handler of a listener that serves only apps, those of a shard.
// Neither the API nor another host of the system answers there, but for the health at
// this machine's addresses.
func (f *Front) ForSegments(s *router.Shard) http.Handler {
	apps := f.Router.In(s)
	return fault.Handler("http", f.challenged(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isMachine(r.Host) && isHealth(r) {
			f.Health.ServeHTTP(w, r)
			return
		}
		apps.ServeHTTP(w, r)
	})))
}
