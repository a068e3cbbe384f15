package api

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"cupola/server/control/message"
	"cupola/store/cf"
)

// queryMessage is what Cloud Controller checks of the query of a route: one of the
// list and show messages in its app/messages.
type queryMessage struct {
	kind   cf.Kind  // of the error
	known  []string // parameters, in the order in which the error names them
	lists  []string // of these the ones that are lists of values
	checks checks
}

// Parameters of all lists: CC: app/messages/list_message.rb.
var pagination = []string{"page", "per_page", "order_by", "created_ats", "updated_ats", "guids"}

// listParams makes the message of a list. orders are the values of order_by.
func listParams(kind cf.Kind, orders []string, known []string, labelled bool, more ...check) queryMessage {
	base := checks{pageCheck, orderCheck(orders), message.Optional("created_ats", timestamps), message.Optional("updated_ats", timestamps)}
	all := slices.Concat(pagination, known)
	if labelled {
		all = append(all, "label_selector")
		base = append(base, message.Given("label_selector", labelSelector))
	}
	return queryMessage{kind: kind, known: all, lists: listsOf(all), checks: slices.Concat(base, checks{onlyParams(all)}, more)}
}

// showParams makes the message of a request for one thing.
func showParams(kind cf.Kind, known []string, more ...check) queryMessage {
	return queryMessage{kind: kind, known: known, lists: listsOf(known), checks: append(checks{onlyParams(known)}, more...)}
}

// singles are the parameters that are one value; all others are lists.
var singles = []string{"page", "per_page", "order_by", "label_selector", "lifecycle_type", "lifecycle", "type", "fields", "available", "default", "purge",
	"globally_enabled_running", "globally_enabled_staging", "app_guid", "package_guid", "current", "isolation_segment_guid", "unmapped", "deployable"}

func listsOf(known []string) []string {
	return slices.DeleteFunc(slices.Clone(known), func(k string) bool { return slices.Contains(singles, k) })
}

// check reports what is wrong with a request's query.
func (m queryMessage) check(r *http.Request) error {
	faults := m.checks.Faults(m.object(r.URL.RawQuery))
	if faults == nil {
		return nil
	}
	text := strings.Join(faults, ", ")
	if m.kind == cf.BadQueryParameter {
		text = "The query parameter is invalid: " + text
	}
	return cf.Errorf(m.kind, "%s", text)
}

// object reads a query as Rails does: "a[b]=c" is an object, and the last of
// several values counts. "a[]=b" is a list, which Cloud Controller reads as what Ruby's
// inspect writes of it (CC: BaseMessage.to_array!).
func (m queryMessage) object(raw string) *message.Object {
	o := &message.Object{Values: map[string]any{}}
	arrays := map[string][]string{}
	for _, pair := range strings.Split(raw, "&") {
		name, value, _ := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(name)
		value, err2 := url.QueryUnescape(value)
		if err != nil || err2 != nil || name == "" {
			continue
		}
		base, key, nested := strings.Cut(name, "[")
		if key == "]" {
			arrays[base] = append(arrays[base], value)
			value, nested = message.Inspect(arrays[base]), false
		}
		if !nested {
			set(o, base, m.value(base, value))
			continue
		}
		inner, ok := o.Values[base].(*message.Object)
		if !ok {
			inner = &message.Object{Values: map[string]any{}}
			set(o, base, inner)
		}
		set(inner, strings.TrimSuffix(key, "]"), value)
	}
	return o
}

func set(o *message.Object, key string, v any) {
	if !o.Has(key) {
		o.Keys = append(o.Keys, key)
	}
	o.Values[key] = v
}

func (m queryMessage) value(name, value string) any {
	if !slices.Contains(m.lists, name) {
		return value
	}
	var list []any
	for _, v := range splitList(value) {
		list = append(list, v)
	}
	return list
}

var leadingInteger = regexp.MustCompile(`^\s*[+-]?[0-9]+`)

// toInteger is Ruby's to_i: the number at the start of a text, else 0.
func toInteger(text string) int {
	n, _ := strconv.Atoi(strings.TrimPrefix(strings.TrimSpace(leadingInteger.FindString(text)), "+"))
	return min(n, 1<<31)
}

// pageCheck is CC: ListMessage::PaginationPageValidator.
func pageCheck(r *message.Request) {
	if v, ok := r.Get("page").(string); ok && toInteger(v) <= 0 {
		r.Add("page", "must be a positive integer")
	}
	v, ok := r.Get("per_page").(string)
	switch n := toInteger(v); {
	case !ok:
	case n <= 0:
		r.Add("per_page", "must be a positive integer")
	case n > maxPerPage:
		r.Add("per_page", "must be between 1 and 5000")
	}
}

// orderCheck is CC: ListMessage::PaginationOrderValidator.
func orderCheck(orders []string) check {
	return func(r *message.Request) {
		v := message.Text(r.Get("order_by"))
		name := v
		if v != "" && (v[0] == '+' || v[0] == '-') {
			name = v[1:]
		}
		if !message.Blank(v) && !slices.Contains(orders, name) {
			r.Add("order_by", "can only be: '"+strings.Join(orders, "', '")+"'")
		}
	}
}

var timestamp = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$`)
})

// timestamps is CC: Validators::TimestampValidator.
func timestamps(r *message.Request, attribute string, v any) {
	valid := func(v any) {
		if !timestamp().MatchString(message.Text(v)) {
			r.Add(attribute, "has an invalid timestamp format. Timestamps should be formatted as 'YYYY-MM-DDThh:mm:ssZ'")
		}
	}
	list, _ := v.([]any)
	for _, t := range list {
		valid(t)
	}
	o, ok := v.(*message.Object)
	if !ok {
		return
	}
	for _, operator := range o.Keys {
		if _, known := timeOps[operator]; !known || operator == "" {
			r.Add(attribute, "Invalid relational operator: '"+operator+"'")
		}
		if t := o.Values[operator]; strings.Contains(message.Text(t), ",") {
			r.Add(attribute, "only accepts one value when using a relational operator")
		} else {
			valid(t)
		}
	}
}

// maxRequirements is how many requirements a label selector may have.
const maxRequirements = 50

// labelSelector is CC: validators/label_selector_requirement_validator.rb.
func labelSelector(r *message.Request) {
	for _, f := range selectorFaults(requirements(message.Text(r.Get("label_selector")))) {
		r.Base(f)
	}
}

func selectorFaults(parts []string) (faults []string) {
	switch {
	case len(parts) == 0:
		return []string{"Missing label_selector value"}
	case len(parts) > maxRequirements:
		return []string{fmt.Sprintf("Too many label_selector requirements (maximum is %d)", maxRequirements)}
	}
	for _, part := range parts {
		if text := requirementFault(part); text != "" {
			faults = append(faults, text)
		}
	}
	return faults
}

func requirementFault(part string) string {
	l, ok := parseRequirement(part)
	if !ok {
		return "Invalid label_selector value"
	}
	if f := message.KeyFault(l.Key); f != "" {
		return f
	}
	for _, v := range l.Values {
		if f := message.LabelValueFault(v); f != "" {
			return f
		}
	}
	return ""
}

// onlyParams is CC: BaseMessage::NoAdditionalParamsValidator.
func onlyParams(known []string) check {
	return func(r *message.Request) {
		var unknown []string
		for _, k := range r.Keys {
			if !slices.Contains(known, k) {
				unknown = append(unknown, k)
			}
		}
		if unknown != nil {
			r.Base("Unknown query parameter(s): '" + strings.Join(unknown, "', '") + "'. Valid parameters are: '" + strings.Join(known, "', '") + "'")
		}
	}
}

// resources is CC: BaseMessage::IncludeParamValidator and EmbedParamValidator.
func resources(parameter, how string, valid ...string) check {
	return func(r *message.Request) {
		list, _ := r.Get(parameter).([]any)
		seen := map[string]int{}
		for _, v := range list {
			name := message.Text(v)
			if !slices.Contains(valid, name) {
				r.Base("Invalid " + how + " resource: '" + name + "'. Valid " + how + " resources are: '" + strings.Join(valid, "', '") + "'")
				continue
			}
			if seen[name]++; seen[name] == 2 {
				r.Base("Duplicate " + how + " resource: '" + name + "'")
			}
		}
	}
}

func includes(valid ...string) check { return resources("include", "included", valid...) }

// notNested refuses parameters where the path names an app.
func notNested(keys ...string) check {
	return func(r *message.Request) {
		var given []string
		for _, k := range keys {
			if r.Get(k) != nil {
				given = append(given, k)
			}
		}
		if given != nil {
			r.Base("Unknown query parameter(s): '" + strings.Join(given, "', '") + "'")
		}
	}
}

// refused refuses filtering by a time.
func refused(parameter string) check {
	return message.Given(parameter, func(r *message.Request) {
		r.Base("Filtering by '" + parameter + "' is not allowed on this resource.")
	})
}

// fields is CC: Validators::FieldsValidator.
func fields(set fieldSet) check {
	var names []string
	keys := map[string][]string{}
	for _, f := range set {
		names = append(names, f.resource)
		keys[f.resource] = f.keys
	}
	return message.Optional("fields", func(r *message.Request, attribute string, v any) {
		o, ok := v.(*message.Object)
		if !ok {
			r.Add(attribute, "must be an object")
			return
		}
		for _, resource := range o.Keys {
			allowed, known := keys[resource]
			if !known {
				r.Add(attribute, "["+resource+"] valid resources are: '"+strings.Join(names, "', '")+"'")
				continue
			}
			if slices.ContainsFunc(splitList(message.Text(o.Values[resource])), func(k string) bool { return !slices.Contains(allowed, k) }) {
				r.Add(attribute, "valid keys for '"+resource+"' are: '"+strings.Join(allowed, "', '")+"'")
			}
		}
	})
}

var booleanText = message.In("must be 'true' or 'false'", "true", "false")
