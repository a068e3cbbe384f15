package logstream

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"cupola/server/logcache"
)

// selector wants envelopes of a kind.
type selector struct {
	source string // "": every
	kind   logcache.Kind
	names  []string // Counter: its name; Gauge: all the names of its metrics; nil: whatever
}

func (s selector) match(e *logcache.Envelope) bool {
	if e.Kind != s.kind || s.source != "" && s.source != e.SourceID {
		return false
	}
	if s.names == nil {
		return true
	}
	if len(e.Metrics) != len(s.names) { // a gauge must consist of the names (loggregator-api: egress.proto)
		return false
	}
	return !slices.ContainsFunc(e.Metrics, func(m logcache.Metric) bool { return !slices.Contains(s.names, m.Name) })
}

// selection wants what any of its selectors wants. They are found by their source:
// a query may name a thousand.
type selection map[string][]selector

func newSelection(selectors ...selector) selection {
	all := selection{}
	for _, s := range selectors {
		all[s.source] = append(all[s.source], s)
	}
	return all
}

func (all selection) match(e *logcache.Envelope) bool {
	fits := func(s selector) bool { return s.match(e) }
	return slices.ContainsFunc(all[""], fits) || slices.ContainsFunc(all[e.SourceID], fits)
}

// parseSelection reads the query of /v2/read (loggregator-release:
// src/rlp-gateway/internal/web/selector_builder.go). There are no events here: who
// asks for them alone gets none.
func parseSelection(query url.Values) (all selection, refused *refusal) {
	if len(query) == 0 {
		return nil, errEmptyQuery
	}
	typed := slices.ContainsFunc([]string{"log", "counter", "gauge", "timer", "event", "counter.name", "gauge.name"}, query.Has)
	if !typed {
		return nil, errMissingType
	}
	sources := distinct(query["source_id"])
	if len(sources) == 0 {
		sources = []string{""}
	}
	var selectors []selector
	for _, source := range sources {
		selectors = append(selectors, selectorsOf(source, query)...)
	}
	return newSelection(selectors...), nil
}

// distinct are the texts, each once.
func distinct(texts []string) []string {
	texts = slices.Clone(texts)
	slices.Sort(texts)
	return slices.Compact(texts)
}

func selectorsOf(source string, query url.Values) (all []selector) {
	if query.Has("log") {
		all = append(all, selector{source: source, kind: logcache.Log})
	}
	if query.Has("counter") || query.Has("counter.name") {
		all = append(all, named(source, logcache.Counter, query["counter.name"], func(n string) []string { return []string{n} })...)
	}
	if query.Has("gauge") || query.Has("gauge.name") {
		all = append(all, named(source, logcache.Gauge, query["gauge.name"], func(n string) []string { return strings.Split(n, ",") })...)
	}
	if query.Has("timer") {
		all = append(all, selector{source: source, kind: logcache.Timer})
	}
	return all
}

// named are the selectors of metrics by name; without names, of all.
func named(source string, kind logcache.Kind, names []string, split func(string) []string) (all []selector) {
	if len(names) == 0 {
		return []selector{{source: source, kind: kind}}
	}
	for _, n := range distinct(names) {
		s := selector{source: source, kind: kind, names: split(n)}
		if kind == logcache.Counter && n == "" {
			s.names = nil
		}
		all = append(all, s)
	}
	return all
}

// refusal is an error in the gateway's form.
type refusal struct {
	status        int
	name, message string
}

// The gateway's errors (loggregator-release: src/rlp-gateway/internal/web/json_error.go).
var (
	errMethodNotAllowed     = &refusal{http.StatusMethodNotAllowed, "method_not_allowed", "method not allowed"}
	errEmptyQuery           = &refusal{http.StatusBadRequest, "empty_query", "query cannot be empty"}
	errMissingType          = &refusal{http.StatusBadRequest, "missing_envelope_type", "query must provide at least one envelope type"}
	errStreamingUnavailable = &refusal{http.StatusServiceUnavailable, "streaming_unavailable", "streaming is temporarily unavailable"}
	errNotFound             = &refusal{http.StatusNotFound, "not_found", "resource not found"}
)
