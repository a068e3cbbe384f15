package logcache

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"time"
)

// version is what the API says of itself; from 2.0 on the CLI reads under /api.
const version = "3.1.0"

const (
	defaultLimit = 100  // log-cache's
	maxLimit     = 1000 // log-cache's
)

// Handler serves GET /api/v1/{info,read/{source_id},meta}. authorize tells
// whether the request may see a source; as in log-cache a refusal looks like
// a source that does not exist.
func (c *Cache) Handler(authorize func(r *http.Request, sourceID string) error) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1/info", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, infoAnswer{Version: version, VMUptime: int64String(int64(time.Since(c.began).Seconds()))})
	})
	mux.HandleFunc("GET /api/v1/read/{source_id}", func(w http.ResponseWriter, r *http.Request) {
		if authorize(r, r.PathValue("source_id")) != nil {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		c.read(w, r)
	})
	mux.HandleFunc("GET /api/v1/meta", func(w http.ResponseWriter, r *http.Request) {
		answer := metaAnswer{Meta: map[string]metaView{}}
		for id, m := range c.Meta() {
			if authorize(r, id) == nil {
				answer.Meta[id] = viewMeta(m)
			}
		}
		writeJSON(w, http.StatusOK, answer)
	})
	return mux
}

func (c *Cache) read(w http.ResponseWriter, r *http.Request) {
	q, logs, err := parseRead(r.PathValue("source_id"), r.URL.Query())
	switch {
	case err != nil:
		writeInvalid(w, err)
	case !logs:
		writeJSON(w, http.StatusOK, viewRead(nil))
	default:
		writeJSON(w, http.StatusOK, viewRead(c.Read(q)))
	}
}

// parseRead also tells whether log lines are asked for at all: there is
// nothing else yet.
func parseRead(sourceID string, values url.Values) (q Query, logs bool, err error) {
	q = Query{SourceID: sourceID, Limit: defaultLimit, Start: time.Unix(0, 0)}
	if err := parseSpan(&q, values); err != nil {
		return q, false, err
	}
	if v := values.Get("limit"); v != "" {
		if q.Limit, err = parseLimit(v); err != nil {
			return q, false, err
		}
	}
	if v := values.Get("descending"); v != "" {
		if q.Descending, err = strconv.ParseBool(v); err != nil {
			return q, false, fmt.Errorf("parsing field %q: %q is no boolean", "descending", v)
		}
	}
	logs, err = wantsLogs(values["envelope_types"])
	if err != nil {
		return q, false, err
	}
	if filter := values.Get("name_filter"); filter != "" {
		logs = false // it filters metrics by name, and logs have none
		if _, err := regexp.Compile(filter); err != nil {
			return q, false, fmt.Errorf("name filter must be a valid regular expression: %v", err)
		}
	}
	return q, logs, nil
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
		return 0, fmt.Errorf("parsing field %q: %q is no integer", "limit", v)
	case n > maxLimit:
		return 0, fmt.Errorf("limit (%d) must be 1000 or less", n)
	case n < 0:
		return 0, fmt.Errorf("limit (%d) must be greater than zero", n)
	case n == 0:
		return defaultLimit, nil
	}
	return n, nil
}

// wantsLogs checks envelope types by their names or numbers.
func wantsLogs(types []string) (bool, error) {
	logs := len(types) == 0
	for _, t := range types {
		switch t {
		case "ANY", "0", "LOG", "1":
			logs = true
		case "COUNTER", "2", "GAUGE", "3", "TIMER", "4", "EVENT", "5":
		default:
			return false, fmt.Errorf("parsing list %q: %q is not valid", "envelope_types", t)
		}
	}
	return logs, nil
}
