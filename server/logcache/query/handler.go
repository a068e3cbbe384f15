// Package query answers PromQL over a log cache, by the API that log-cache has
// from Prometheus and with Prometheus's own engine.
package query

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"

	"cupola/runtime/fairqueue"
	"cupola/server/logcache"
)

// What a query may take. The time is log-cache's.
const (
	queryTimeout = 10 * time.Second
	maxSamples   = 1_000_000
	maxAtOnce    = 4
	maxOfUser    = 2
	maxLength    = 64 << 10 // bytes of a form
)

// Paths are the paths and path prefixes that Handler serves.
var Paths = []string{"/api/v1/query", "/api/v1/query_range", "/api/v1/labels", "/api/v1/label/", "/api/v1/series", "/api/v1/metadata", "/api/v1/query_exemplars", "/api/v1/rules", "/api/v1/status/buildinfo"}

// Handler serves log-cache's /api/v1/query and /api/v1/query_range, and what
// Prometheus' clients ask besides. As in log-cache, a source that the user may
// not read looks like one that does not exist. user identifies an authenticated
// caller, so that query slots are shared fairly between users.
func Handler(c *logcache.Cache, authorize logcache.Authorize, user func(*http.Request) string) http.Handler {
	return newServer(c, authorize, user).handler()
}

func newServer(c *logcache.Cache, authorize logcache.Authorize, user func(*http.Request) string) *server {
	s := &server{cache: c, authorize: authorize, user: user, parser: parser.NewParser(parser.Options{}), queue: fairqueue.New(maxAtOnce, maxOfUser)}
	s.engine = promql.NewEngine(promql.EngineOpts{MaxSamples: maxSamples, Timeout: queryTimeout, Parser: s.parser, EnableAtModifier: true, EnableNegativeOffset: true,
		NoStepSubqueryIntervalFn: func(int64) int64 { return defaultStep.Milliseconds() }})
	return s
}

func (s *server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/api/v1/query", s.serve(parseInstant))
	mux.HandleFunc("/api/v1/query_range", s.serve(parseRange))
	s.discovery(mux)
	return mux
}

type server struct {
	cache     *logcache.Cache
	authorize logcache.Authorize
	user      func(*http.Request) string
	parser    parser.Parser
	engine    *promql.Engine
	queue     *fairqueue.Queue
}

// errHidden says that a query names a source that is not for its user.
var errHidden = errors.New("no such source, or none that you may read")

// The types of errors that Prometheus tells apart.
const (
	badData      = "bad_data"
	execution    = "execution"
	notFound     = "not_found"
	timedOut     = "timeout"
	unauthorized = "unauthorized"
)

func (s *server) serve(parse func(form) (span, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if _, err := s.authorize(r); err != nil { // before the query is parsed
			Refuse(w, http.StatusNotFound, errStranger) // log-cache's status
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxLength)
		text := r.FormValue("query")
		sources, err := s.sources(r, text)
		if errors.Is(err, errHidden) {
			fail(w, http.StatusNotFound, notFound, err)
			return
		}
		at, perr := parse(form{r.FormValue, time.Now()})
		if err = errors.Join(err, perr); err != nil {
			fail(w, http.StatusBadRequest, badData, err)
			return
		}
		s.inTurn(w, r, func(ctx context.Context) { s.run(ctx, w, plan{text, sources, at}) })
	}
}

// plan is a query, the sources that it may see, and when it is asked for.
type plan struct {
	text    string
	sources map[string]bool
	span    span
}

// inTurn answers a request when the caller has a slot, in the time that a query may take.
func (s *server) inTurn(w http.ResponseWriter, r *http.Request, answer func(context.Context)) {
	ctx, cancel := context.WithTimeout(r.Context(), queryTimeout)
	defer cancel()
	slot, err := s.queue.Acquire(ctx, s.user(r))
	if err != nil {
		fail(w, http.StatusServiceUnavailable, timedOut, errors.New("too many queries at once"))
		return
	}
	defer slot.Release()
	answer(ctx)
}

func (s *server) run(ctx context.Context, w http.ResponseWriter, p plan) {
	q, err := s.query(ctx, p)
	if err != nil {
		fail(w, http.StatusBadRequest, badData, err)
		return
	}
	defer q.Close()
	result := q.Exec(ctx)
	if result.Err != nil {
		fail(w, http.StatusUnprocessableEntity, execution, result.Err)
		return
	}
	if m, ok := result.Value.(promql.Matrix); ok && m == nil {
		result.Value = promql.Matrix{} // an empty list, not null
	}
	succeed(w, data{result.Value.Type(), result.Value})
}

func (s *server) query(ctx context.Context, p plan) (promql.Query, error) {
	from := envelopes{s.cache, p.sources}
	if p.span.step == 0 {
		return s.engine.NewInstantQuery(ctx, from, nil, p.text, p.span.start)
	}
	return s.engine.NewRangeQuery(ctx, from, nil, p.text, p.span.start, p.span.end, p.span.step)
}

// sources are those that a query names, all of which its user may see. Of a
// regular expression that is more than names it is those that they may see. A
// query without selectors, like "1+1", has none.
func (s *server) sources(r *http.Request, text string) (map[string]bool, error) {
	if err := checkPatterns(text); err != nil {
		return nil, err
	}
	expr, err := s.parser.ParseExpr(text)
	if err == nil {
		err = checkSize(expr)
	}
	if err != nil {
		return nil, err
	}
	found := map[string]bool{}
	for _, selector := range parser.ExtractSelectors(expr) {
		named, err := s.named(r, selector)
		if err != nil {
			return nil, err
		}
		maps.Copy(found, named)
	}
	return found, nil
}

// named are the sources of one selector.
func (s *server) named(r *http.Request, selector []*labels.Matcher) (map[string]bool, error) {
	for _, m := range selector {
		if m.Name != sourceLabel {
			continue
		}
		ids := m.SetMatches()
		switch {
		case m.Type == labels.MatchEqual && m.Value != "":
			ids = []string{m.Value}
		case m.Type == labels.MatchRegexp && len(ids) == 0:
			ids = slices.Collect(maps.Keys(s.cache.Sources()))
			ids = slices.DeleteFunc(ids, func(id string) bool { return !m.Matches(id) })
			return s.authorize(r, ids...)
		case m.Type != labels.MatchRegexp:
			continue
		}
		may, err := s.authorize(r, ids...)
		for _, id := range ids {
			if err != nil || !may[id] {
				return nil, errHidden
			}
		}
		return may, nil
	}
	return nil, fmt.Errorf("Metric '%s' does not have a 'source_id' label.", metricName(selector)) //nolint:revive,staticcheck // log-cache's text
}

func metricName(selector []*labels.Matcher) string {
	for _, m := range selector {
		if m.Name == nameLabel {
			return m.Value
		}
	}
	return ""
}

// The JSON of the API is Prometheus's.
type (
	answer struct {
		Status    string   `json:"status"`
		Data      any      `json:"data,omitempty"`
		ErrorType string   `json:"errorType,omitempty"`
		Error     string   `json:"error,omitempty"`
		Warnings  []string `json:"warnings,omitempty"`
	}
	data struct {
		Type   parser.ValueType `json:"resultType"`
		Result parser.Value     `json:"result"`
	}
)

// errStranger is what callers get who are not authenticated.
const errStranger = "not authenticated: send a bearer token that is still valid, or a user's name and password by basic authentication"

// Refuse writes Prometheus' form of a refused authentication.
func Refuse(w http.ResponseWriter, status int, why string) {
	fail(w, status, unauthorized, errors.New(why))
}

func fail(w http.ResponseWriter, status int, kind string, err error) {
	write(w, status, answer{Status: "error", ErrorType: kind, Error: err.Error()})
}

// succeed writes an answer; data must not be nil.
func succeed(w http.ResponseWriter, data any, warnings ...string) {
	write(w, http.StatusOK, answer{Status: "success", Data: data, Warnings: warnings})
}

func write(w http.ResponseWriter, status int, a answer) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(a) // the client is gone
}
