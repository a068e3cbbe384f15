package store

import (
	"encoding/json"
	"fmt"
	"regexp"
	"sort"
	"strings"
	"time"

	"cupola/store/cf"
)

// Query says which rows of a table a list holds, and in which order.
type Query struct {
	Where   map[string][]string // a filter of the table → accepted values
	Labels  []Label
	Times   []TimeRange
	Order   string // an order of the table; "": as they were made
	Desc    bool
	Page    int    // from 1; 0: all rows
	PerPage int    // with Page
	Visible *Scope // nil: all rows
}

// Scope is what an actor may see: rows of these orgs and spaces, by GUID.
type Scope struct {
	Orgs        []string
	Spaces      []string
	Users       []string // the actor's own
	DomainOrgs  []string // whose private domains it sees
	RouteSpaces []string // whose routes it sees
	EventOrgs   []string // of which it sees all audit events
	EventSpaces []string // of which it sees audit events
	ManagedOrgs []string // whose manager it is

	MemberSpaces  []string // in which it has a role itself
	ServiceSpaces []string // in which it works with services
}

func (s *Scope) list(name string) []string {
	return map[string][]string{":orgs": s.Orgs, ":spaces": s.Spaces, ":users": s.Users, ":domain_orgs": s.DomainOrgs,
		":route_spaces": s.RouteSpaces, ":event_orgs": s.EventOrgs, ":event_spaces": s.EventSpaces,
		":managed_orgs": s.ManagedOrgs, ":member_spaces": s.MemberSpaces, ":service_spaces": s.ServiceSpaces}[name]
}

// LabelOp is an operator of a label selector.
type LabelOp string

// The operators of label selectors.
const (
	LabelIn        LabelOp = "in"
	LabelNotIn     LabelOp = "notin"
	LabelExists    LabelOp = "exists"
	LabelNotExists LabelOp = "!exists"
)

// Label is one requirement of a label selector.
type Label struct {
	Key    string
	Op     LabelOp
	Values []string
}

// TimeRange demands a time of a row: column created_at or updated_at.
type TimeRange struct {
	Column string
	Op     string      // "=", "<", "<=", ">", ">="
	Times  []time.Time // one, or several with "="
}

// condition collects SQL and its arguments.
type condition struct {
	sql  []string
	args []any
}

func (c *condition) add(sql string, args ...any) {
	c.sql = append(c.sql, sql)
	c.args = append(c.args, args...)
}

// where is the WHERE clause, "" when every row is wanted.
func (c *condition) where() string {
	if len(c.sql) == 0 {
		return ""
	}
	return " WHERE (" + strings.Join(c.sql, ") AND (") + ")"
}

// list gives values as the JSON array that "IN (SELECT value FROM json_each(?))"
// takes: one bound parameter, however many there are.
func list(values []string) string {
	if values == nil {
		values = []string{}
	}
	b, _ := json.Marshal(values)
	return string(b)
}

const inList = " IN (SELECT value FROM json_each(?))"

func (c *condition) filter(filters map[string]string, where map[string][]string) error {
	names := make([]string, 0, len(where))
	for n := range where {
		names = append(names, n)
	}
	sort.Strings(names)
	for _, n := range names {
		expr, ok := filters[n]
		if !ok {
			return cf.Errorf(cf.BadQueryParameter, "The query parameter is invalid: Unknown query parameter(s): '%s'", n)
		}
		if !strings.Contains(expr, "?") {
			expr += inList
		}
		args := make([]any, strings.Count(expr, "?"))
		for i := range args {
			args[i] = list(where[n])
		}
		c.add(expr, args...)
	}
	return nil
}

func (c *condition) label(table string, l Label) {
	value := fmt.Sprintf("json_extract(%s.labels, ?)", table)
	path := `$."` + l.Key + `"`
	switch l.Op {
	case LabelIn:
		c.add(value+inList, path, list(l.Values))
	case LabelNotIn:
		c.add("coalesce("+value+", '') NOT"+inList, path, list(l.Values))
	case LabelExists:
		c.add(value+" IS NOT NULL", path)
	case LabelNotExists:
		c.add(value+" IS NULL", path)
	}
}

// time compares in whole seconds, the precision that the API shows.
func (c *condition) time(table string, r TimeRange) {
	var either []string
	var args []any
	for _, t := range r.Times {
		either = append(either, fmt.Sprintf("%s.%s / 1000000 %s ?", table, r.Column, r.Op))
		args = append(args, t.Unix())
	}
	c.add("("+strings.Join(either, " OR ")+")", args...)
}

var scopeName = regexp.MustCompile(`:[a-z_]+`)

// visible limits rows to a scope. ":orgs" and the like in the table's expression
// stand for the scope's lists.
func (c *condition) visible(expr string, s *Scope) {
	if s == nil || expr == "" {
		return
	}
	var args []any
	c.add(scopeName.ReplaceAllStringFunc(expr, func(name string) string {
		args = append(args, list(s.list(name)))
		return "(SELECT value FROM json_each(?))"
	}))
	c.args = append(c.args, args...)
}
