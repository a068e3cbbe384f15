package autoscaling

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"
)

// schema finds what is wrong with a value. The texts are those of App Autoscaler's JSON schema, as
// its library gojsonschema words them.
type schema func(found *Violations, at path, v any)

// policySchema is the schema of a policy without a version (App Autoscaler: legacy/schema.json).
var policySchema = all(
	object(policyFields(map[string]schema{
		"schema-version": null,
		"configuration": all(absent("app_guid"), object(map[string]schema{
			"custom_metrics": object(map[string]schema{"metric_submission_strategy": strategySchema}, "metric_submission_strategy"),
		})),
	}), "instance_min_count", "instance_max_count"),
	anyOf("scaling_rules", "schedules"))

// policyFields adds the fields that a policy has in each format.
func policyFields(to map[string]schema) map[string]schema {
	maps.Copy(to, map[string]schema{
		"credential-type":    enum("x509", "binding-secret"),
		"instance_min_count": integer(from(1)),
		"instance_max_count": integer(),
		"scaling_rules":      array(ruleSchema),
		"schedules":          schedulesSchema,
	})
	return to
}

var ruleSchema = all(object(map[string]schema{
	"stats_window_secs":    integer(),
	"metric_type":          pattern(`^[a-zA-Z0-9_]+$`),
	"breach_duration_secs": integer(from(60), to(3600)),
	"threshold":            integer(),
	"operator":             enum("<", ">", "<=", ">="),
	"cool_down_secs":       integer(from(60), to(3600)),
	"adjustment":           pattern(`^[-+][1-9]+[0-9]*%?$`),
}, "metric_type", "threshold", "operator", "adjustment"),
	without("stats_window_secs")) // of an earlier App Autoscaler; it means nothing

var schedulesSchema = all(
	object(map[string]schema{
		"timezone":           text,
		"recurring_schedule": array(recurringSchema),
		"specific_date":      array(dateSchema),
	}, "timezone"),
	anyOf("recurring_schedule", "specific_date"))

const (
	datePattern = `2[0-9]{3}-(0[1-9]|1[0-2])-(0[1-9]|[1-2][0-9]|3[0-1])`
	timePattern = `(2[0-3]|1[0-9]|0[0-9]):([0-5][0-9])`
)

var recurringSchema = all(
	object(map[string]schema{
		"start_time":                 pattern("^" + timePattern + "$"),
		"end_time":                   pattern("^" + timePattern + "$"),
		"days_of_week":               array(integer(from(1), to(7))),
		"days_of_month":              array(integer(from(1), to(31))),
		"start_date":                 pattern("^(" + datePattern + ")?$"),
		"end_date":                   pattern("^(" + datePattern + ")?$"),
		"instance_min_count":         integer(),
		"instance_max_count":         integer(),
		"initial_min_instance_count": integer(),
	}, "start_time", "end_time", "instance_min_count", "instance_max_count"),
	oneOf("days_of_week", "days_of_month"))

var dateSchema = object(map[string]schema{
	"start_date_time":            pattern("^" + datePattern + "T" + timePattern + "$"),
	"end_date_time":              pattern("^" + datePattern + "T" + timePattern + "$"),
	"instance_min_count":         integer(),
	"instance_max_count":         integer(),
	"initial_min_instance_count": integer(),
}, "start_date_time", "end_date_time", "instance_min_count", "instance_max_count")

var strategySchema = object(map[string]schema{"allow_from": enum(boundApp, "same_app")}, "allow_from")

func all(of ...schema) schema {
	return func(found *Violations, at path, v any) {
		for _, s := range of {
			s(found, at, v)
		}
	}
}

// object is an object with fields, of which some must be there. Others are deleted: encoding/json
// would read a Field as field, which nothing has looked at.
func object(fields map[string]schema, required ...string) schema {
	return func(found *Violations, at path, v any) {
		o, ok := v.(map[string]any)
		if !ok {
			wrongType(found, at, "object", v)
			return
		}
		for _, name := range required {
			if _, has := o[name]; !has {
				found.add(at, "%s is required", name)
			}
		}
		maps.DeleteFunc(o, func(name string, _ any) bool { return fields[name] == nil })
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			if value, has := o[name]; has {
				fields[name](found, at.at(name), value)
			}
		}
	}
}

// closed is an object that has no other fields.
func closed(fields map[string]schema, required ...string) schema {
	open := object(fields, required...)
	return func(found *Violations, at path, v any) {
		if o, ok := v.(map[string]any); ok {
			for _, name := range slices.Sorted(maps.Keys(o)) {
				if fields[name] == nil {
					found.add(at, "Additional property %s is not allowed", name)
				}
			}
		}
		open(found, at, v)
	}
}

// absent demands that a field is not there.
func absent(name string) schema {
	return func(found *Violations, at path, v any) {
		if o, ok := v.(map[string]any); ok {
			if _, has := o[name]; has {
				found.add(at.at(name), "Must not validate the schema (not)")
			}
		}
	}
}

// without deletes a field, which was looked at.
func without(name string) schema {
	return func(_ *Violations, _ path, v any) {
		if o, ok := v.(map[string]any); ok {
			delete(o, name)
		}
	}
}

func null(found *Violations, at path, v any) {
	if v != nil {
		wrongType(found, at, "null", v)
	}
}

// anyOf demands at least one of some fields.
func anyOf(names ...string) schema {
	return func(found *Violations, at path, v any) {
		if o, ok := v.(map[string]any); ok && count(o, names) == 0 {
			found.add(at, "Must validate at least one schema (anyOf): %s is required", strings.Join(names, " or "))
		}
	}
}

// oneOf demands exactly one of some fields.
func oneOf(names ...string) schema {
	return func(found *Violations, at path, v any) {
		if o, ok := v.(map[string]any); ok && count(o, names) != 1 {
			found.add(at, "Must validate one and only one schema (oneOf): either %s", strings.Join(names, " or "))
		}
	}
}

func count(o map[string]any, names []string) (n int) {
	for _, name := range names {
		if _, has := o[name]; has {
			n++
		}
	}
	return n
}

func array(of schema) schema {
	return func(found *Violations, at path, v any) {
		list, ok := v.([]any)
		if !ok {
			wrongType(found, at, "array", v)
			return
		}
		if len(list) > maxParts {
			found.add(at, "Array must have at most %d items", maxParts)
			return
		}
		for n, one := range list {
			of(found, at.at(n), one)
		}
	}
}

// bound is a limit of an integer: what is wrong with one beyond it, "" for none.
type bound func(n int64) string

func from(least int64) bound {
	return func(n int64) string {
		if n < least {
			return fmt.Sprintf("Must be greater than or equal to %d", least)
		}
		return ""
	}
}

func to(most int64) bound {
	return func(n int64) string {
		if n > most {
			return fmt.Sprintf("Must be less than or equal to %d", most)
		}
		return ""
	}
}

// maxInteger is beyond all that a policy can mean.
const maxInteger = 1 << 31

func integer(bounds ...bound) schema {
	bounds = append(bounds, from(-maxInteger), to(maxInteger))
	return func(found *Violations, at path, v any) {
		number, ok := v.(json.Number)
		n, err := number.Int64()
		if !ok || err != nil {
			wrongType(found, at, "integer", v)
			return
		}
		for _, b := range bounds {
			if wrong := b(n); wrong != "" {
				found.add(at, "%s", wrong)
				return
			}
		}
	}
}

const maxText = 100

func text(found *Violations, at path, v any) {
	s, ok := v.(string)
	switch {
	case !ok:
		wrongType(found, at, "string", v)
	case utf8.RuneCountInString(s) > maxText:
		found.add(at, "String length must be less than or equal to %d", maxText)
	}
}

func pattern(p string) schema {
	compiled := sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(p) })
	return func(found *Violations, at path, v any) {
		s, ok := v.(string)
		switch {
		case !ok:
			wrongType(found, at, "string", v)
		case len(s) > maxText || !compiled().MatchString(s):
			found.add(at, "Does not match pattern '%s'", p)
		}
	}
}

func enum(values ...string) schema {
	return func(found *Violations, at path, v any) {
		s, ok := v.(string)
		if !ok {
			wrongType(found, at, "string", v)
		} else if !slices.Contains(values, s) {
			quoted := `"` + strings.Join(values, `", "`) + `"`
			found.add(at, "%s must be one of the following: %s", strings.TrimPrefix(string(at), string(root)+"."), quoted)
		}
	}
}

func wrongType(found *Violations, at path, want string, v any) {
	given := "null"
	switch n := v.(type) {
	case map[string]any:
		given = "object"
	case []any:
		given = "array"
	case string:
		given = "string"
	case bool:
		given = "boolean"
	case json.Number:
		given = "number"
		if _, err := n.Int64(); err == nil {
			given = "integer"
		}
	}
	found.add(at, "Invalid type. Expected: %s, given: %s", want, given)
}
