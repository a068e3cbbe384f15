package router

import (
	"net/http"
	"slices"
	"strings"
)

// hashed leads the requests of a route to its endpoints by the value of a
// header, as gorouter does with the option "hash".
type hashed struct {
	header    string
	balance   float64
	table     *maglev
	endpoints []*endpoint // in the order of the table's names
}

// newHashed makes the choice among endpoints; nil where there are none. The
// table of before is kept while the endpoints are the same.
func newHashed(o Options, endpoints []*endpoint, before *hashed) *hashed {
	if len(endpoints) == 0 {
		return nil
	}
	h := &hashed{header: o.HashHeader, balance: o.HashBalance, endpoints: slices.Clone(endpoints)}
	slices.SortFunc(h.endpoints, func(a, b *endpoint) int { return strings.Compare(a.name(), b.name()) })
	h.endpoints = slices.CompactFunc(h.endpoints, func(a, b *endpoint) bool { return a.name() == b.name() })
	var names []string
	for _, e := range h.endpoints {
		names = append(names, e.name())
	}
	if before != nil && slices.Equal(before.table.names, names) {
		h.table = before.table
	} else {
		h.table = newMaglev(names)
	}
	return h
}

// name identifies an endpoint.
func (e *endpoint) name() string { return e.InstanceGUID + "@" + e.Address }

// pick chooses the endpoint of a key. One that is not usable, or has too much
// under way, leaves its requests to the one that follows it for this key, always
// the same; nil when none is usable.
func (h *hashed) pick(key string, usable func(*endpoint) bool) (chosen *endpoint) {
	most := h.most()
	var full *endpoint
	h.table.walk(key, func(name int) bool {
		e := h.endpoints[name]
		switch {
		case !usable(e):
		case most > 0 && float64(e.requests.n.Load()) > most:
			if full == nil {
				full = e
			}
		default:
			chosen = e
		}
		return chosen == nil
	})
	if chosen == nil {
		return full
	}
	return chosen
}

// most is how many requests an endpoint may have under way: so many times the
// average of all as the balance says (RFC-0042); 0 is any number.
func (h *hashed) most() float64 {
	if h.balance == 0 {
		return 0
	}
	var all int64
	for _, e := range h.endpoints {
		all += e.requests.n.Load()
	}
	return h.balance * float64(all) / float64(len(h.endpoints))
}

// key is the value of a request's hash header, "" where the route or the request
// has none.
func (p *pool) key(h http.Header) string {
	if p.hashed == nil {
		return ""
	}
	return h.Get(p.hashed.header)
}
