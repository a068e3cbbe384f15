package director

import (
	"net/url"
	"strconv"
	"time"

	"cupola/store"
	"cupola/store/cf"
)

// eventFilters are the parameters that rows have to equal.
var eventFilters = map[string]string{"deployment": "deployments", "task": "tasks", "instance": "instances", "user": "users", "action": "actions",
	"object_type": "object_types", "object_name": "object_names", "before_id": "before_ids"}

// listedEvents is how many events are listed, as by BOSH's director.
const listedEvents = 200

// EventQuery reads the director's parameters for a list of events, the newest first.
func EventQuery(query url.Values) (store.Query, error) {
	q := store.Query{Order: "number", Desc: true, Page: 1, PerPage: listedEvents, Where: map[string][]string{}}
	for name, values := range query {
		switch filter := eventFilters[name]; {
		case name == "before_time", name == "after_time":
			at, err := parseTime(values[0])
			if err != nil {
				return q, cf.Errorf(cf.BadQueryParameter, "The query parameter is invalid: %s must be a time like 2026-01-31T12:00:00Z, or seconds since 1970", name)
			}
			op := ">"
			if name == "before_time" {
				op = "<"
			}
			q.Times = append(q.Times, store.TimeRange{Column: "created_at", Op: op, Times: []time.Time{at}})
		case filter == "":
			return q, cf.Errorf(cf.BadQueryParameter, "The query parameter is invalid: Unknown query parameter(s): '%s'", name)
		case filter == "tasks" || filter == "before_ids":
			if _, err := strconv.Atoi(values[0]); err != nil {
				return q, cf.Errorf(cf.BadQueryParameter, "The query parameter is invalid: %s must be a number", name)
			}
			q.Where[filter] = values[:1]
		default:
			q.Where[filter] = values[:1]
		}
	}
	return q, nil
}

// parseTime parses a time as the director does: RFC 3339, the bosh CLI's form, or seconds since
// 1970.
func parseTime(text string) (time.Time, error) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return time.Unix(n, 0), nil
	}
	if at, err := time.Parse(time.UnixDate, text); err == nil {
		return at, nil
	}
	return time.Parse(time.RFC3339, text)
}
