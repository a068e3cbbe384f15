package query

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/prometheus/model/labels"

	"cupola/server/logcache"
	"cupola/server/logcache/history"
)

// What a request for names may take.
const (
	maxMatchers  = 100
	maxSeries    = 1 << 16
	newestLooked = 1000 // envelopes of a source, of those that the history has not
	keptAt5Min   = 30 * 24 * time.Hour
	coarseStep   = 5 * time.Minute
)

// discovery adds what clients of Prometheus ask to offer names and values, and to find
// out what kind of server it is: https://prometheus.io/docs/prometheus/latest/querying/api/.
func (s *server) discovery(mux *http.ServeMux) {
	for _, method := range []string{"GET ", "POST "} {
		mux.HandleFunc(method+"/api/v1/labels", s.discover(labelNames))
		mux.HandleFunc(method+"/api/v1/series", s.discover(allLabels))
		mux.HandleFunc(method+"/api/v1/query_exemplars", s.known([]any{})) // there are none
	}
	mux.HandleFunc("GET /api/v1/label/{name}/values", s.discover(labelValues))
	mux.HandleFunc("GET /api/v1/metadata", s.metadata)
	mux.HandleFunc("GET /api/v1/rules", s.known(map[string]any{"groups": []any{}}))
	mux.HandleFunc("GET /api/v1/status/buildinfo", s.known(buildInfo()))
}

// known is a handler of what is always the same, for callers that are authenticated.
func (s *server) known(data any) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if _, err := s.authorize(r); err != nil {
			Refuse(w, http.StatusUnauthorized, errStranger)
			return
		}
		succeed(w, data)
	}
}

// labelSets are series, each once.
type labelSets map[string]labels.Labels

// discover is a handler of what view makes of the series that a request selects.
func (s *server) discover(view func(r *http.Request, all labelSets) ([]any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if _, err := s.authorize(r); err != nil {
			Refuse(w, http.StatusUnauthorized, errStranger)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, maxLength)
		asked, err := s.parseSelection(r)
		if err != nil {
			fail(w, http.StatusBadRequest, badData, err)
			return
		}
		s.inTurn(w, r, func(ctx context.Context) {
			found, err := s.find(ctx, r, asked)
			if err != nil {
				fail(w, http.StatusUnprocessableEntity, execution, err)
				return
			}
			all, err := view(r, found)
			if err != nil {
				fail(w, http.StatusBadRequest, badData, err)
				return
			}
			if n := asked.limit; n > 0 && n < len(all) {
				succeed(w, all[:n], "results truncated due to limit")
				return
			}
			succeed(w, all)
		})
	}
}

// wanted is a request for series.
type wanted struct {
	span
	selectors [][]*labels.Matcher // any of them; none is all series
	limit     int                 // of what is answered; 0: none
}

// parseSelection reads match[], start, end and limit. Without times it is all of the history.
func (s *server) parseSelection(r *http.Request) (q wanted, err error) {
	if err := r.ParseForm(); err != nil {
		return q, fmt.Errorf("cannot read the form: %w", err)
	}
	now := time.Now()
	f := form{r.FormValue, now}
	var errs [3]error
	q.start, errs[0] = f.time("start", now.Add(-keptAt5Min))
	q.end, errs[1] = f.time("end", now)
	q.limit, errs[2] = parseCount(r, "limit")
	if err := errors.Join(errs[:]...); err != nil {
		return q, err
	}
	if q.end.Before(q.start) {
		return q, errors.New("end timestamp must not be before start time")
	}
	texts := r.Form["match[]"]
	if len(texts) == 0 && r.URL.Path == "/api/v1/series" {
		return q, errors.New("no match[] parameter provided")
	}
	if len(texts) > maxMatchers {
		return q, fmt.Errorf("request has %d match[] parameters; at most %d are answered", len(texts), maxMatchers)
	}
	for _, text := range texts {
		if err := checkPatterns(text); err != nil {
			return q, err
		}
		selector, err := s.parser.ParseMetricSelector(text)
		if err != nil {
			return q, fmt.Errorf("invalid parameter \"match[]\": %w", err)
		}
		q.selectors = append(q.selectors, selector)
	}
	return q, nil
}

// parseCount reads a field that is a number of things; 0 or none means no limit.
func parseCount(r *http.Request, name string) (int, error) {
	v := r.FormValue(name)
	if v == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("invalid parameter %q: %q is not a number of 0 or more", name, v)
	}
	return n, nil
}

// find returns the series that any selector matches, of sources that the caller may read.
func (s *server) find(ctx context.Context, r *http.Request, q wanted) (labelSets, error) {
	all := labelSets{}
	selectors := q.selectors
	if len(selectors) == 0 {
		selectors = [][]*labels.Matcher{nil}
	}
	for _, selector := range selectors {
		sources, err := s.readable(r, selector)
		if err != nil {
			return nil, err
		}
		from := &querier{envelopes: envelopes{s.cache, sources}, from: q.start.UnixMilli(), to: q.end.UnixMilli()}
		if err := from.names(ctx, selector, all); err != nil {
			return nil, err
		}
		if len(all) > maxSeries {
			return nil, fmt.Errorf("more than %d series match: give match[] that fits fewer, or less time", maxSeries)
		}
	}
	return all, nil
}

// readable are the sources that a selector does not exclude and the caller may read.
func (s *server) readable(r *http.Request, selector []*labels.Matcher) (map[string]bool, error) {
	ids := slices.DeleteFunc(slices.Collect(maps.Keys(s.cache.Sources())), func(id string) bool {
		return slices.ContainsFunc(selector, func(m *labels.Matcher) bool { return m.Name == sourceLabel && !m.Matches(id) })
	})
	return s.authorize(r, ids...)
}

// names adds the series that match. Of the history it reads the coarsest resolution there
// is; of what only the cache has, like the timers of requests, the newest envelopes.
func (q *querier) names(ctx context.Context, matchers []*labels.Matcher, all labelSets) error {
	add := func(l labels.Labels) {
		if matches(matchers, l) {
			all[string(l.Bytes(nil))] = l
		}
	}
	for id := range q.sources {
		for _, e := range q.cache.Read(logcache.Query{SourceID: id, Kinds: q.kinds(), Start: time.UnixMilli(q.from), End: time.UnixMilli(q.to + 1), Limit: newestLooked, Descending: true}) {
			for _, m := range e.Metrics {
				add(labelsOf(e.Tags, e.SourceID, e.InstanceID, m.Name))
			}
		}
	}
	if q.cache.History == nil {
		return ctx.Err()
	}
	found, err := q.cache.History.Select(ctx, history.Query{Sources: q.sources, From: q.from / 1000, To: q.to / 1000, Step: coarseStep, Names: true, MaxBytes: maxChunkBytes,
		Wanted: func(o *history.Origin, name string) bool {
			return matches(matchers, labelsOf(o.Tags, o.Source, o.Instance, name))
		}})
	for _, f := range found {
		add(labelsOf(f.Tags, f.Source, f.Instance, f.Name))
	}
	return err
}

// labelNames are the names of all labels.
func labelNames(_ *http.Request, all labelSets) ([]any, error) {
	names := map[string]bool{}
	for _, l := range all {
		l.Range(func(l labels.Label) { names[l.Name] = true })
	}
	return jsonList(slices.Sorted(maps.Keys(names))), nil
}

// labelValues are the values of the label that the path names.
func labelValues(r *http.Request, all labelSets) ([]any, error) {
	name := r.PathValue("name")
	if !labelPattern().MatchString(name) {
		return nil, fmt.Errorf("invalid label name: %q", name)
	}
	values := map[string]bool{}
	for _, l := range all {
		if v := l.Get(name); v != "" {
			values[v] = true
		}
	}
	return jsonList(slices.Sorted(maps.Keys(values))), nil
}

// allLabels are the series themselves.
func allLabels(_ *http.Request, all labelSets) ([]any, error) {
	return jsonList(slices.SortedFunc(maps.Values(all), labels.Compare)), nil
}

// jsonList is a list that JSON does not show as null.
func jsonList[T any](all []T) []any {
	listed := make([]any, len(all))
	for i := range all {
		listed[i] = all[i]
	}
	return listed
}
