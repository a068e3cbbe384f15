package manifest

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"cupola/store/cf"
)

// fields reads the keys of a map and gathers what is wrong with them.
type fields struct {
	m      map[string]any
	where  string // before each fault
	faults []string
}

func (f *fields) fault(text string) { f.faults = append(f.faults, f.where+text) }

// title writes a key as Cloud Controller's messages do: "Disk quota".
func title(key string) string {
	s := strings.NewReplacer("-", " ", "_", " ").Replace(key)
	return strings.ToUpper(s[:1]) + s[1:]
}

// text is a string; a number or boolean is taken as it was written.
func (f *fields) text(key string) *string {
	v, ok := f.m[key]
	if !ok {
		return nil
	}
	var s string
	switch x := v.(type) {
	case nil:
	case string:
		s = x
	case int, float64, bool:
		s = fmt.Sprint(x)
	default:
		f.fault(title(key) + " must be a string")
		return nil
	}
	return &s
}

// command is a start command; null, "null" and "default" mean the droplet's.
func (f *fields) command() *string {
	c := f.text("command")
	if c != nil && (*c == "null" || *c == "default") {
		*c = ""
	}
	if c != nil && utf8.RuneCountInString(*c) > maxCommand {
		f.fault(fmt.Sprintf("Command must be between 1 and %d characters", maxCommand))
	}
	return c
}

func (f *fields) list(key string) (list []any, given bool) {
	v, ok := f.m[key]
	if !ok || v == nil {
		return nil, false
	}
	list, ok = v.([]any)
	if !ok {
		f.fault(title(key) + " must be a list")
	}
	return list, ok
}

// atMost reports whether a list has no more entries than it may.
func (f *fields) atMost(key string, n, most int) bool {
	if n > most {
		f.fault(fmt.Sprintf("%s may have at most %d entries, it has %d", title(key), most, n))
	}
	return n <= most
}

// short checks a text in Cloud Controller's words for rows.
func (f *fields) short(what, text string, most int) {
	if utf8.RuneCountInString(text) > most {
		f.fault(fmt.Sprintf("%s is too long (maximum is %d characters)", what, most))
	}
}

func (f *fields) texts(key string) (texts []string, given bool) {
	list, given := f.list(key)
	for _, v := range list {
		s, ok := v.(string)
		if !ok {
			f.fault(title(key) + " can only contain strings")
			return nil, given
		}
		texts = append(texts, s)
	}
	return texts, given
}

func (f *fields) object(key string) map[string]any {
	v, ok := f.m[key]
	if !ok || v == nil {
		return nil
	}
	m, ok := v.(map[string]any)
	if !ok {
		f.fault(title(key) + " must be an object")
	}
	return m
}

func (f *fields) nullable(key string) map[string]*string {
	m := f.object(key)
	if m == nil {
		return nil
	}
	out := map[string]*string{}
	for k, v := range m {
		if v == nil {
			out[k] = nil
			continue
		}
		s := fmt.Sprint(v)
		out[k] = &s
	}
	return out
}

func (f *fields) number(key string, least int) *int {
	v, ok := f.m[key]
	if !ok || v == nil {
		return nil
	}
	n, ok := v.(int)
	if !ok {
		f.fault(title(key) + " is not a number")
		return nil
	}
	if n < least || n > math.MaxInt32 {
		f.fault(fmt.Sprintf("%s must be greater than or equal to %d", title(key), least))
		return nil
	}
	return &n
}

var sizePattern = regexp.MustCompile(`(?i)^(\d{1,12})\s*(B|K|KB|M|MB|G|GB|T|TB)$`)

var unitShift = map[byte]uint{'B': 0, 'K': 10, 'M': 20, 'G': 30, 'T': 40}

// ParseSize reads a size like "512M" as bytes.
func ParseSize(s string) (int64, bool) {
	m := sizePattern.FindStringSubmatch(s)
	if m == nil {
		return 0, false
	}
	n, err := strconv.ParseInt(m[1], 10, 64)
	shift := unitShift[strings.ToUpper(m[2])[0]]
	if err != nil || n > math.MaxInt64>>shift {
		return 0, false
	}
	return n << shift, true
}

func (f *fields) size(key string) *int64 {
	v, ok := f.m[key]
	if !ok || v == nil {
		return nil
	}
	n, ok := ParseSize(fmt.Sprint(v))
	if !ok {
		f.fault(title(key) + " must use a supported unit: B, K, KB, M, MB, G, GB, T, or TB")
		return nil
	}
	return &n
}

// megabytes reads the first of the keys that is there: the CLI writes
// disk-quota where manifests have disk_quota.
func (f *fields) megabytes(keys ...string) *int {
	key := keys[0]
	for _, k := range keys {
		if f.m[k] != nil {
			key = k
			break
		}
	}
	n := f.size(key)
	if n == nil {
		return nil
	}
	mb := int(*n >> 20)
	if mb < 1 || *n>>20 > math.MaxInt32 {
		f.fault(title(key) + " must be greater than 0MB")
		return nil
	}
	return &mb
}

// rate is a size, or -1 or 0 without a unit.
func (f *fields) rate(key string) *int64 {
	if v := fmt.Sprint(f.m[key]); v == "-1" || v == "0" {
		n, _ := strconv.ParseInt(v, 10, 64)
		return &n
	}
	return f.size(key)
}

// check reads the keys of a health check that begin with prefix.
func (f *fields) check(prefix string) Check {
	c := Check{Type: f.text(prefix + "-type"), Endpoint: f.text(prefix + "-http-endpoint"),
		InvocationTimeout: f.number(prefix+"-invocation-timeout", 1), Interval: f.number(prefix+"-interval", 1)}
	if c.Type != nil {
		if *c.Type == "none" { // as it once was called
			*c.Type = "process"
		}
		if !cf.IsCheckType(*c.Type) {
			f.fault(title(prefix) + cf.CheckTypeMessage)
		}
	}
	if c.Endpoint != nil && !strings.HasPrefix(*c.Endpoint, "/") {
		f.fault(title(prefix) + " HTTP endpoint must be a valid URI path")
	}
	return c
}
