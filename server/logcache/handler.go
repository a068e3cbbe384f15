package logcache

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"time"
)

// version is what the API says of itself; from 2.0 on the CLI reads under /api.
const version = "3.1.0"

const (
	defaultLimit = 100  // log-cache's
	maxLimit     = 1000 // log-cache's
)

// Authorize returns which of the sources the caller may read; it returns an
// error for an unauthenticated caller.
type Authorize func(r *http.Request, sourceIDs ...string) (map[string]bool, error)

// Handler serves GET /api/v1/read/{source_id}, /api/v1/meta and /api/v1/info, and besides log-cache's
// own /api/v1/search/{source_id}. As in log-cache a source that is not for its user looks like one that does not exist.
func (c *Cache) Handler(authorize Authorize) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1/info", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, infoAnswer{Version: version, VMUptime: int64String(int64(time.Since(c.began).Seconds()))})
	})
	for pattern, serve := range map[string]http.HandlerFunc{"GET /api/v1/read/{source_id}": c.read, "GET /api/v1/search/{source_id}": c.serveSearch} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			id := r.PathValue("source_id")
			if may, err := authorize(r, id); err != nil || !may[id] {
				w.WriteHeader(http.StatusNotFound)
				return
			}
			serve(w, r)
		})
	}
	mux.HandleFunc("GET /api/v1/meta", func(w http.ResponseWriter, r *http.Request) {
		answer, all := metaAnswer{Meta: map[string]metaView{}}, c.Meta()
		may, _ := authorize(r, slices.Collect(maps.Keys(all))...) // an error means that the caller may read nothing
		for id, m := range all {
			if may[id] {
				answer.Meta[id] = viewMeta(m)
			}
		}
		writeJSON(w, http.StatusOK, answer)
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusNotFound, errorAnswer{Code: notFound, Message: "Not Found", Details: []any{}})
	})
	return mux
}

func (c *Cache) read(w http.ResponseWriter, r *http.Request) {
	q, err := parseRead(r.PathValue("source_id"), r.URL.Query())
	if err != nil {
		writeInvalid(w, err)
		return
	}
	writeJSON(w, http.StatusOK, viewRead(c.readFor(r, q)))
}

// readFor is Read for a request: the walks of the CLI are known.
func (c *Cache) readFor(r *http.Request, q Query) []Envelope {
	switch {
	case fromCLI(r) && q.walks():
		return c.walk(r.Context(), q)
	case fromCLI(r) && q.announces():
		c.walks.announce(q.SourceID, time.Now())
	}
	return c.Read(q)
}

func parseRead(sourceID string, values url.Values) (q Query, err error) {
	q = Query{SourceID: sourceID, Limit: defaultLimit, Start: time.Unix(0, 0)}
	if err := parseSpan(&q, values); err != nil {
		return q, err
	}
	if v := values.Get("limit"); v != "" {
		if q.Limit, err = parseLimit(v); err != nil {
			return q, err
		}
	}
	if v := values.Get("descending"); v != "" {
		if q.Descending, err = strconv.ParseBool(v); err != nil {
			return q, fmt.Errorf("parsing field %q: %q is not a boolean", "descending", v)
		}
	}
	if q.Kinds, err = parseKinds(values["envelope_types"]); err != nil {
		return q, err
	}
	if filter := values.Get("name_filter"); filter != "" {
		if err = CheckPattern(filter); err == nil {
			q.Name, err = regexp.Compile(filter)
		}
		if err != nil {
			return q, fmt.Errorf("name filter must be a valid regular expression: %v", err)
		}
	}
	return q, nil
}

func parseSpan(q *Query, values url.Values) (err error) {
	if v := values.Get("start_time"); v != "" {
		if q.Start, err = parseTime("start_time", v); err != nil {
			return err
		}
	}
	if v := values.Get("end_time"); v != "" && v != "0" {
		if q.End, err = parseTime("end_time", v); err != nil {
			return err
		}
		if q.Start.After(q.End) {
			return fmt.Errorf("StartTime (%d) must be before EndTime (%d)", q.Start.UnixNano(), q.End.UnixNano())
		}
	}
	return nil
}

func parseLimit(v string) (int, error) {
	n, err := strconv.Atoi(v)
	switch {
	case err != nil:
		return 0, fmt.Errorf("parsing field %q: %q is not an integer", "limit", v)
	case n > maxLimit:
		return 0, fmt.Errorf("limit (%d) must be 1000 or less", n)
	case n < 0:
		return 0, fmt.Errorf("limit (%d) must be greater than zero", n)
	case n == 0:
		return defaultLimit, nil
	}
	return n, nil
}

// parseKinds reads envelope types by their names or numbers; none, like ANY,
// are all. Of EVENT there are none here.
func parseKinds(types []string) (found []Kind, err error) {
	if len(types) == 0 {
		return kinds, nil
	}
	for _, t := range types {
		switch t {
		case "ANY", "0":
			found = append(found, kinds...)
		case "LOG", "1":
			found = append(found, Log)
		case "COUNTER", "2":
			found = append(found, Counter)
		case "GAUGE", "3":
			found = append(found, Gauge)
		case "TIMER", "4":
			found = append(found, Timer)
		case "EVENT", "5":
			found = append(found, event)
		default:
			return nil, fmt.Errorf("parsing list %q: %q is not valid", "envelope_types", t)
		}
	}
	return found, nil
}
