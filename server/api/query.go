package api

import (
	"math"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"cupola/server/control/message"
	"cupola/store"
	"cupola/store/cf"
)

// Cloud Controller's bounds of a page.
const (
	defaultPerPage = 50
	maxPerPage     = 5000
)

// rows is what parseQuery needs to know of a table.
type rows interface {
	Filters() []string
	Orders() []string
	Labelled() bool
}

// listQuery is a parsed query string of a list.
type listQuery struct {
	store.Query
	include []string
	fields  map[string][]string // "space.organization" → attributes
	embed   []string
}

// parseQuery reads the query of a list, once it is found right. A parameter that is
// given with an empty value is a filter for the empty string. also names parameters
// that the handler reads itself, or "include=a|b" for an include with its values.
func parseQuery(c *call, t rows, also ...string) (listQuery, error) {
	if err := checkQuery(c); err != nil {
		return listQuery{}, err
	}
	return parseValues(c.Request.URL.Query(), t, also...)
}

// checkQuery checks the query as Cloud Controller does, on routes that it has.
func checkQuery(c *call) error {
	if m, ok := queryMessages[c.Request.Pattern]; ok {
		return m.check(c.Request)
	}
	return nil
}

// ignored are parameters that Cloud Controller takes and does nothing with.
var ignored = []string{"app_guid", "package_guid", "guid"}

// parseValues is parseQuery for a query alone.
func parseValues(v url.Values, t rows, also ...string) (q listQuery, err error) {
	q = listQuery{Query: store.Query{Where: map[string][]string{}, Page: 1, PerPage: defaultPerPage}, fields: map[string][]string{}}
	var unknown []string
	for name, values := range v {
		if slices.Contains(ignored, name) {
			continue
		}
		value := values[len(values)-1]
		if base, ok := strings.CutSuffix(name, "[]"); ok {
			name, value = base, message.Inspect(values)
		}
		handled, err := q.parameter(name, value, t, also)
		if err != nil {
			return q, err
		}
		if !handled {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) > 0 {
		slices.Sort(unknown)
		return q, badQuery("Unknown query parameter(s): '%s'. Valid parameters are: '%s'",
			strings.Join(unknown, "', '"), strings.Join(validParameters(t, also), "', '"))
	}
	return q, nil
}

func badQuery(format string, args ...any) error {
	return cf.Errorf(cf.BadQueryParameter, "The query parameter is invalid: "+format, args...)
}

func validParameters(t rows, also []string) []string {
	valid := append([]string{"page", "per_page", "order_by", "created_ats", "updated_ats"}, t.Filters()...)
	if t.Labelled() {
		valid = append(valid, "label_selector")
	}
	for _, a := range also {
		name, _, _ := strings.Cut(a, "=")
		valid = append(valid, name)
	}
	slices.Sort(valid)
	return valid
}

func (q *listQuery) parameter(name, value string, t rows, also []string) (handled bool, err error) {
	switch base, bracket, _ := strings.Cut(name, "["); {
	case name == "page":
		q.Page, err = positive("Page", value, math.MaxInt32)
	case name == "per_page":
		q.PerPage, err = positive("Per page", value, maxPerPage)
	case name == "order_by":
		err = q.order(value, t.Orders())
	case name == "label_selector" && t.Labelled():
		q.Labels, err = parseSelector(value)
	case base == "created_ats" || base == "updated_ats":
		err = q.times(base, strings.TrimSuffix(bracket, "]"), value)
	case slices.Contains(t.Filters(), name):
		q.Where[name] = splitList(value)
	default:
		return q.extra(base, strings.TrimSuffix(bracket, "]"), value, also)
	}
	return true, err
}

// extra takes the parameters that only some lists have.
func (q *listQuery) extra(base, bracket, value string, also []string) (bool, error) {
	for _, a := range also {
		name, accepted, restricted := strings.Cut(a, "=")
		if name != base {
			continue
		}
		values := splitList(value)
		if restricted {
			if err := checkResources(base, values, strings.Split(accepted, "|")); err != nil {
				return true, err
			}
		}
		switch base {
		case "include":
			q.include = values
		case "embed":
			q.embed = values
		case "fields":
			q.fields[bracket] = values
		default:
			q.Where[base] = values
		}
		return true, nil
	}
	return false, nil
}

// checkResources refuses what a parameter, include or embed, does not take, or
// has twice.
func checkResources(parameter string, values, accepted []string) error {
	how := map[string]string{"include": "included", "embed": "embedded"}[parameter]
	for i, v := range values {
		if !slices.Contains(accepted, v) {
			return badQuery("Invalid %s resource: '%s'. Valid %[1]s resources are: '%[3]s'", how, v, strings.Join(accepted, "', '"))
		}
		if slices.Contains(values[:i], v) {
			return badQuery("Duplicate %s resource: '%s'", how, v)
		}
	}
	return nil
}

var commas = regexp.MustCompile(`,\s*`)

// splitList splits a comma-separated value. A comma within one comes encoded
// once more than the rest.
func splitList(value string) []string {
	parts := commas.Split(value, -1)
	for i, p := range parts {
		if u, err := url.PathUnescape(p); err == nil {
			parts[i] = u
		}
	}
	return parts
}

func positive(what, value string, most int) (int, error) {
	n := toInteger(value)
	if n < 1 {
		return 0, badQuery("%s must be a positive integer", what)
	}
	if n > most {
		return 0, badQuery("%s must be between 1 and %d", what, most)
	}
	return n, nil
}

func (q *listQuery) order(value string, orders []string) error {
	if strings.TrimSpace(value) == "" {
		return nil
	}
	name := strings.TrimLeft(value, "+-")
	if !slices.Contains(orders, name) {
		return badQuery("Order by can only be: '%s'", strings.Join(orders, "', '"))
	}
	q.Order, q.Desc = name, strings.HasPrefix(value, "-")
	return nil
}

var timeOps = map[string]string{"": "=", "lt": "<", "lte": "<=", "gt": ">", "gte": ">="}

func (q *listQuery) times(name, op, value string) error {
	sql, ok := timeOps[op]
	if !ok {
		return badQuery("%s has an invalid operator: '%s'", name, op)
	}
	r := store.TimeRange{Column: strings.TrimSuffix(name, "s"), Op: sql}
	for _, text := range splitList(value) {
		t, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return badQuery("%s has an invalid timestamp format. Timestamps should be formatted as 'YYYY-MM-DDThh:mm:ssZ'", name)
		}
		r.Times = append(r.Times, t)
	}
	q.Times = append(q.Times, r)
	return nil
}

var selectorPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\s*(?:(!?)\s*([A-Za-z0-9./_-]+)|([A-Za-z0-9./_-]+)\s*(==|=|!=)\s*(.*?)|([A-Za-z0-9./_-]+)\s+(in|notin)\s*\(([^()]*)\))\s*$`)
})

// parseSelector reads a label selector: "a,!b,c=d,e!=f,g in (h,i),j notin (k)".
func parseSelector(text string) ([]store.Label, error) {
	var labels []store.Label
	parts := requirements(text)
	if faults := selectorFaults(parts); faults != nil {
		return nil, badQuery("%s", strings.Join(faults, ", "))
	}
	for _, part := range parts {
		l, _ := parseRequirement(part)
		labels = append(labels, l)
	}
	return labels, nil
}

func parseRequirement(part string) (l store.Label, ok bool) {
	m := selectorPattern().FindStringSubmatch(part)
	switch {
	case m == nil:
		return l, false
	case m[2] != "" && m[1] == "!":
		l = store.Label{Key: m[2], Op: store.LabelNotExists}
	case m[2] != "":
		l = store.Label{Key: m[2], Op: store.LabelExists}
	case m[3] != "" && m[4] == "!=":
		l = store.Label{Key: m[3], Op: store.LabelNotIn, Values: []string{m[5]}}
	case m[3] != "":
		l = store.Label{Key: m[3], Op: store.LabelIn, Values: []string{m[5]}}
	default:
		l = store.Label{Key: m[6], Op: store.LabelOp(m[7]), Values: strings.Fields(strings.ReplaceAll(m[8], ",", " "))}
	}
	return l, true
}

// requirements are the parts of a label selector. Empty ones do not count.
func requirements(text string) []string {
	return slices.DeleteFunc(splitSelector(text), func(part string) bool { return part == "" })
}

// splitSelector splits at the commas that are not within parentheses.
func splitSelector(text string) (parts []string) {
	depth, start := 0, 0
	for i, r := range text {
		switch r {
		case '(':
			depth++
		case ')':
			depth--
		case ',':
			if depth == 0 {
				parts = append(parts, text[start:i])
				start = i + 1
			}
		}
	}
	return append(parts, text[start:])
}
