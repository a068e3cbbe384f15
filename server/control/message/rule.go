package message

import (
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"cupola/runtime/pattern"
)

// Rule checks the value of an attribute.
type Rule func(r *Request, attribute string, v any)

// Blank reports whether Ruby calls a value blank: nothing, false, white space, or
// an empty list or object.
func Blank(v any) bool {
	switch x := v.(type) {
	case nil:
		return true
	case bool:
		return !x
	case string:
		return strings.TrimSpace(x) == ""
	case []any:
		return len(x) == 0
	case *Object:
		return len(x.Keys) == 0
	case map[string]any: // of YAML
		return len(x) == 0
	}
	return false
}

// rule makes a Rule of a condition and the text where it does not hold.
func rule(text string, holds func(any) bool) Rule {
	return func(r *Request, attribute string, v any) {
		if !holds(v) {
			r.Add(attribute, text)
		}
	}
}

// is reports whether a value is of a type.
func is[T any](v any) bool {
	_, ok := v.(T)
	return ok
}

// Rules of types and presence, as ActiveModel and Cloud Controller's validators
// word them.
var (
	String  = rule("must be a string", is[string])
	Boolean = rule("must be a boolean", is[bool])
	Array   = rule("must be an array", is[[]any])
	Hash    = rule("must be an object", is[*Object])
	Present = rule("can't be blank", func(v any) bool { return !Blank(v) })
	Absent  = rule("must be blank", Blank)
	URI     = rule("must be a valid URI", isURI)
	URIPath = rule("must be a valid URI path", IsURIPath)
)

var (
	uriPath = pattern.Lazy(`(?m)^(?:/|/([^\s/]\S*)?)$`)
	uri     = pattern.Lazy(`^[A-Za-z][A-Za-z0-9+.-]*:[!-~]+$`)
)

// IsURIPath reports whether a value is the path of a URI (CC: UriUtils.is_uri_path?).
func IsURIPath(v any) bool {
	s, ok := v.(string)
	return ok && uriPath().MatchString(s)
}

func isURI(v any) bool {
	s, ok := v.(string)
	return ok && uri().MatchString(s) && !strings.ContainsAny(s, "<>\"{}|\\^`")
}

// Size is how long a value is: characters, entries, keys.
func Size(v any) int {
	switch x := v.(type) {
	case nil:
		return 0
	case []any:
		return len(x)
	case *Object:
		return len(x.Keys)
	case map[string]any: // of YAML
		return len(x)
	}
	return utf8.RuneCountInString(Text(v))
}

// Text is a value as Ruby's to_s writes it, as far as messages show it.
func Text(v any) string {
	switch x := v.(type) {
	case nil:
		return ""
	case string:
		return x
	case json.Number:
		return x.String()
	case bool:
		return strconv.FormatBool(x)
	}
	return JSON(v)
}

// Plain is a value as encoding/json reads and writes it; a number stays its text.
func Plain(v any) any {
	switch x := v.(type) {
	case *Object:
		m := map[string]any{}
		for k, v := range x.Values {
			m[k] = Plain(v)
		}
		return m
	case []any:
		list := make([]any, len(x))
		for i, v := range x {
			list[i] = Plain(v)
		}
		return list
	}
	return v
}

// JSON is a value as JSON.
func JSON(v any) string {
	b, _ := json.Marshal(Plain(v))
	return string(b)
}

// Inspect writes strings as Ruby's inspect does.
func Inspect(list []string) string {
	quoted := make([]string, len(list))
	for i, s := range list {
		quoted[i] = strconv.Quote(s)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// Max bounds the length of a value.
func Max(n int) Rule {
	return rule(fmt.Sprintf("is too long (maximum is %d %s)", n, characters(n)), func(v any) bool { return Size(v) <= n })
}

// Min is the least length of a value.
func Min(n int) Rule {
	return rule(fmt.Sprintf("is too short (minimum is %d %s)", n, characters(n)), func(v any) bool { return Size(v) >= n })
}

func characters(n int) string {
	if n == 1 {
		return "character"
	}
	return "characters"
}

// Between bounds the length of a value on both sides. Like ActiveModel it complains
// once for each.
func Between(least, most int, text string) Rule {
	return rule(text, func(v any) bool { return Size(v) >= least && Size(v) <= most })
}

// Is makes a rule of a condition.
func Is(text string, holds func(any) bool) Rule { return rule(text, holds) }

// Like wants a regular expression to match; what is not a string is looked at as text.
func Like(expr, text string) Rule {
	matches := pattern.Lazy(expr)
	return rule(text, func(v any) bool { return matches().MatchString(Text(v)) })
}

// Unlike wants one not to match.
func Unlike(expr, text string) Rule {
	matches := pattern.Lazy(expr)
	return rule(text, func(v any) bool { return !matches().MatchString(Text(v)) })
}

// In wants one of some strings.
func In(text string, values ...string) Rule {
	return rule(text, func(v any) bool {
		s, ok := v.(string)
		return ok && slices.Contains(values, s)
	})
}

// GUID wants a string that can be a GUID: CC: Validators::GuidValidator.
func GUID(r *Request, attribute string, v any) {
	s, ok := v.(string)
	if !ok {
		r.Add(attribute, "must be a string")
	}
	if n := utf8.RuneCountInString(s); !ok || n < 1 || n > 200 {
		r.Add(attribute, "must be between 1 and 200 characters")
	}
}

// ToOne wants a relationship to one thing: CC: ToOneRelationshipValidator.
func ToOne(r *Request, attribute string, v any) {
	o, _ := v.(*Object)
	if o == nil || len(o.Keys) != 1 || !o.Has("data") || !isGUIDHash(o.Get("data"), true) {
		r.Add(attribute, fmt.Sprintf(`must be structured like this: "%s: {"data": {"guid": "valid-guid"}}"`, attribute))
		return
	}
	if o.Get("data") != nil {
		GUID(r, attribute+"_guid", o.Get("data.guid"))
	}
}

// ToMany wants a relationship to several things: CC: ToManyRelationshipValidator.
func ToMany(r *Request, attribute string, v any) {
	o, _ := v.(*Object)
	list, ok := o.Get("data").([]any)
	if !ok || slices.ContainsFunc(list, func(v any) bool { return !isGUIDHash(v, false) }) {
		r.Add(attribute, fmt.Sprintf(`must be structured like this: "%s: {"data": [{"guid": "valid-guid"},{"guid": "valid-guid"}]}"`, attribute))
		return
	}
	for _, v := range list {
		GUID(r, strings.TrimSuffix(attribute, "s")+"_guids", v.(*Object).Get("guid"))
	}
}

func isGUIDHash(v any, orNull bool) bool {
	o, ok := v.(*Object)
	return v == nil && orNull || ok && len(o.Keys) == 1 && o.Has("guid")
}

// Bound is what a number has to satisfy.
type Bound struct {
	text  string
	holds func(sign int) bool // of the number compared with n
	n     int64
}

// AtLeast is the smallest number that is accepted.
func AtLeast(n int64) Bound {
	return Bound{"must be greater than or equal to %d", func(sign int) bool { return sign >= 0 }, n}
}

// AtMost is the largest number that is accepted.
func AtMost(n int64) Bound {
	return Bound{"must be less than or equal to %d", func(sign int) bool { return sign <= 0 }, n}
}

// Above is the number that all accepted ones are greater than.
func Above(n int64) Bound {
	return Bound{"must be greater than %d", func(sign int) bool { return sign > 0 }, n}
}

var (
	integer = pattern.Lazy(`^[+-]?[0-9]+$`)
	number  = pattern.Lazy(`^\s*[+-]?[0-9]+(_[0-9]+)*(\.[0-9]+(_[0-9]+)*)?([eE][+-]?[0-9]+)?\s*$`)
)

// Integer wants a whole number, as JSON has it or as a string, within bounds:
// ActiveModel's numericality with only_integer.
func Integer(bounds ...Bound) Rule {
	return func(r *Request, attribute string, v any) {
		text, ok := "", true
		switch x := v.(type) {
		case string:
			text = x
		case json.Number:
			text = x.String()
		default:
			ok = false
		}
		if !ok || !number().MatchString(text) {
			r.Add(attribute, "is not a number")
			return
		}
		n, ok := new(big.Int).SetString(strings.TrimPrefix(text, "+"), 10)
		if !ok || !integer().MatchString(text) {
			r.Add(attribute, "must be an integer")
			return
		}
		for _, b := range bounds {
			if !b.holds(n.Cmp(big.NewInt(b.n))) {
				r.Add(attribute, fmt.Sprintf(b.text, b.n))
			}
		}
	}
}

// Whole is a number that JSON has as a whole one (Ruby's Integer); ok is false for
// anything else, and for one beyond 64 bits.
func Whole(v any) (n int64, ok bool) {
	x, isNumber := v.(json.Number)
	if !isNumber || !integer().MatchString(x.String()) {
		return 0, false
	}
	n, err := x.Int64()
	return n, err == nil
}
