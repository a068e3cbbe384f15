package message

import (
	"cmp"
	"slices"
	"strings"
)

// Message is what Cloud Controller checks of a request, in its order.
type Message []Check

// Check looks at a request and adds what is wrong with it.
type Check func(*Request)

// Request is the body of a request with what was found wrong so far.
type Request struct {
	*Object
	faults []fault
}

// fault is an error of an attribute, "" for one of the request as a whole.
type fault struct{ attribute, text string }

// Faults are the full messages of what is wrong with a body; nil for nothing.
func (m Message) Faults(o *Object) []string {
	_, texts := m.Errors(o)
	return texts
}

// Errors are the attributes of a body that are wrong, each once, and the full
// messages.
func (m Message) Errors(o *Object) (attributes, texts []string) {
	r := &Request{Object: o}
	for _, check := range m {
		check(r)
	}
	for _, f := range r.faults {
		if name := cmp.Or(f.attribute, "base"); !slices.Contains(attributes, name) {
			attributes = append(attributes, name)
		}
		texts = append(texts, f.String())
	}
	return attributes, texts
}

// Add records that an attribute is wrong.
func (r *Request) Add(attribute, text string) {
	r.faults = append(r.faults, fault{attribute, text})
}

// Base records what is wrong with the request as a whole.
func (r *Request) Base(text string) { r.Add("", text) }

// Wrong reports whether anything was found wrong with one of the attributes; with
// anything, for no attributes.
func (r *Request) Wrong(attributes ...string) bool {
	if len(attributes) == 0 {
		return len(r.faults) > 0
	}
	return slices.ContainsFunc(r.faults, func(f fault) bool { return slices.Contains(attributes, f.attribute) })
}

func (f fault) String() string {
	if f.attribute == "" {
		return f.text
	}
	return humanize(f.attribute) + " " + f.text
}

// humanize writes an attribute as Rails does: "memory_in_mb" is "Memory in mb".
func humanize(attribute string) string {
	s := strings.TrimLeft(strings.NewReplacer(".", "_").Replace(attribute), "_")
	s = strings.ToLower(strings.ReplaceAll(strings.TrimSuffix(s, "_id"), "_", " "))
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// Keys refuses keys other than these. The first of a message also names what the
// request may have: CC: BaseMessage::NoAdditionalKeysValidator.
func Keys(known ...string) Check {
	return func(r *Request) {
		if unknown := unknownKeys(r.Object, known); len(unknown) > 0 {
			r.Base("Unknown field(s): '" + strings.Join(unknown, "', '") + "'")
		}
	}
}

func unknownKeys(o *Object, known []string) (unknown []string) {
	if o == nil {
		return nil
	}
	for _, k := range o.Keys {
		if !slices.Contains(known, k) {
			unknown = append(unknown, k)
		}
	}
	return unknown
}

// Attribute checks the value of a key, absent or not.
func Attribute(key string, rules ...Rule) Check { return At(key, key, rules...) }

// At is Attribute for a value at a path ("a.b"), which messages call otherwise.
func At(path, attribute string, rules ...Rule) Check {
	return func(r *Request) { r.apply(attribute, r.Get(path), rules) }
}

// Optional is Attribute for a value that may be absent or null (allow_nil).
func Optional(key string, rules ...Rule) Check { return OptionalAt(key, key, rules...) }

// OptionalAt is At for a value that may be absent or null.
func OptionalAt(path, attribute string, rules ...Rule) Check {
	return func(r *Request) {
		if v := r.Get(path); v != nil {
			r.apply(attribute, v, rules)
		}
	}
}

// Filled is Attribute for a value that is not blank (allow_blank).
func Filled(key string, rules ...Rule) Check {
	return func(r *Request) {
		if v := r.Get(key); !Blank(v) {
			r.apply(key, v, rules)
		}
	}
}

func (r *Request) apply(attribute string, v any, rules []Rule) {
	for _, rule := range rules {
		rule(r, attribute, v)
	}
}

// Given makes checks where the request has a key, null or not.
func Given(key string, checks ...Check) Check {
	return When(func(r *Request) bool { return r.Has(key) }, checks...)
}

// When makes checks where a condition holds.
func When(holds func(*Request) bool, checks ...Check) Check {
	return func(r *Request) {
		if !holds(r) {
			return
		}
		for _, check := range checks {
			check(r)
		}
	}
}

// Nested checks an object within the request by another message.
func Nested(key string, m Message) Check {
	return NestedAt(key, key, m)
}

// NestedAt is Nested for an object at a path, which messages call otherwise.
func NestedAt(path, attribute string, m Message) Check {
	return func(r *Request) {
		if o, ok := r.Get(path).(*Object); ok {
			r.Nest(attribute, o, m)
		}
	}
}

// Nest checks an object by another message, and reports its faults as faults of an attribute.
func (r *Request) Nest(attribute string, o *Object, m Message) {
	for _, text := range m.Faults(o) {
		r.Add(attribute, text)
	}
}

// Part is Nested for a value that must be an object.
func Part(key string, m Message) Check {
	return func(r *Request) {
		o, ok := r.Get(key).(*Object)
		if !ok {
			r.Add(key, "must be an object")
			return
		}
		r.Nest(key, o, m)
	}
}

// Relationships checks "relationships": CC: Validators::RelationshipValidator.
func Relationships(checks ...Check) Check {
	const key = "relationships"
	return func(r *Request) {
		o, ok := r.Get(key).(*Object)
		switch {
		case !ok:
			r.Add(key, "'relationships' is not an object")
		case len(o.Keys) == 0:
			r.Add(key, "'relationships' must include one or more valid relationships")
		default:
			r.Nest(key, o, checks)
		}
	}
}
