package manifest

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"cupola/runtime/pattern"
	"cupola/server/control/message"
	"cupola/store/cf"
)

// capital is where a word begins within a key.
var capital = pattern.Lazy(`([a-z0-9])([A-Z])`)

// underscore writes a key in the form in which fields has it: Cloud Controller takes
// "disk_quota", "disk-quota" and "diskQuota" (CC: AppManifestMessage.underscore_keys).
func underscore(key string) string {
	return strings.ToLower(strings.ReplaceAll(capital().ReplaceAllString(key, "${1}_$2"), "-", "_"))
}

// underscored is a map with its keys in that form.
func underscored(m map[string]any) map[string]any {
	all := make(map[string]any, len(m))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		all[underscore(key)] = m[key]
	}
	return all
}

// fields reads the keys of a map and gathers what is wrong with them.
type fields struct {
	m      map[string]any
	where  string // before each fault
	faults []string
}

func (f *fields) has(key string) bool {
	_, has := f.m[key]
	return has
}

func (f *fields) fault(text string) { f.faults = append(f.faults, f.where+text) }

// title writes a key as Cloud Controller's messages do: "Disk quota".
func title(key string) string {
	s := strings.ReplaceAll(key, "_", " ")
	return strings.ToUpper(s[:1]) + s[1:]
}

// text is a string of 1 to most characters; null is "".
func (f *fields) text(key string, most int) *string {
	v, given := f.m[key]
	s, ok := v.(string)
	switch {
	case !given:
		return nil
	case v == nil:
		return &s
	case !ok:
		f.fault(title(key) + " must be a string")
	}
	if n := message.Size(v); n < 1 || n > most {
		f.fault(fmt.Sprintf("%s must be between 1 and %d characters", title(key), most))
	}
	return &s
}

// maxStack is Cloud Controller's limit of the name of a stack and of a buildpack, in
// characters.
const maxStack = 4096

// stack is the name of a stack; null is none (CC: BuildpackLifecycleDataMessage).
func (f *fields) stack() *string {
	if f.m["stack"] == nil {
		return nil
	}
	return f.text("stack", maxStack)
}

// lifecycle is the type of a lifecycle; Cloud Controller passes over all others (CC:
// AppManifestMessage.app_lifecycle_hash).
func (f *fields) lifecycle() *string {
	if v, ok := f.m["lifecycle"].(string); ok && (v == cf.LifecycleBuildpack || v == LifecycleCNB) {
		return &v
	}
	return nil
}

// user is whom a process runs as; null is the lifecycle's (CC:
// ManifestProcessUpdateMessage).
func (f *fields) user() *string { return f.text("user", maxName) }

// forHTTP refuses an endpoint for a health check of another type.
func (f *fields) forHTTP(prefix string) {
	kind, hasKind := f.m[prefix+"_type"]
	if _, has := f.m[prefix+"_http_endpoint"]; has && hasKind && kind != "http" {
		f.fault(title(prefix) + ` type must be "http" to set a health check HTTP endpoint`)
	}
}

// command is a start command; null, false, "null" and "default" mean the droplet's.
func (f *fields) command() *string {
	if f.m["command"] == false {
		return new("")
	}
	c := f.text("command", maxCommand)
	if c != nil && (*c == "null" || *c == "default") {
		*c = ""
	}
	return c
}

// listOf is what Cloud Controller calls the lists of a manifest.
var listOf = map[string]string{"buildpacks": "an array", "services": "a list of service instances", "processes": "an array of process configurations",
	"sidecars": "an array of sidecar configurations", "jobs": "an array of job configurations", "schedule": "a cron expression, or an array of them", "process_types": "an array", "routes": "a list of route objects"}

func (f *fields) list(key string) (list []any, given bool) {
	v, ok := f.m[key]
	if !ok || v == nil {
		return nil, false
	}
	list, ok = v.([]any)
	if !ok {
		f.fault(title(key) + " must be " + listOf[key])
	}
	return list, ok
}

// whole is list for a key that may not be null.
func (f *fields) whole(key string) []any {
	if v, ok := f.m[key]; ok && v == nil {
		f.fault(title(key) + " must be " + listOf[key])
	}
	list, _ := f.list(key)
	return list
}

// buildpacks are the names and URLs of "buildpacks" (CC: BuildpackLifecycleDataMessage).
func (f *fields) buildpacks() (names []string, given bool) {
	names, given = f.texts("buildpacks")
	bad := func(v any) bool {
		name, isText := v.(string)
		return isText && (strings.TrimSpace(name) == "" || utf8.RuneCountInString(name) > maxStack)
	}
	if list, _ := f.m["buildpacks"].([]any); slices.ContainsFunc(list, bad) {
		f.fault(fmt.Sprintf("Buildpacks entries must be between 1 and %d characters", maxStack))
	}
	return names, given
}

// buildpack is the name or URL of "buildpack"; null, "null" and "default" are "" (CC:
// ManifestBuildpackMessage).
func (f *fields) buildpack() *string {
	b := f.text("buildpack", maxStack)
	if b != nil && (*b == "null" || *b == "default") {
		*b = ""
	}
	return b
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

// object is a map, which messages call otherwise than its key.
func (f *fields) object(key, called string) map[string]any {
	m, ok := f.m[key].(map[string]any)
	if f.m[key] != nil && !ok {
		f.fault(called + " must be an object")
	}
	return m
}

// metadata reads labels or annotations, and checks each.
func (f *fields) metadata(key string, faults func(key string, value *string) []string) map[string]*string {
	v := f.m[key]
	m, ok := v.(map[string]any)
	if v == nil || v == false {
		return nil
	}
	if !ok {
		f.fault("'" + key + "' is not an object")
		return nil
	}
	out := map[string]*string{}
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out[k] = nil
		if m[k] != nil {
			text := message.Text(m[k])
			out[k] = &text
		}
		for _, fault := range faults(k, out[k]) {
			f.fault(fault)
		}
	}
	return out
}

var (
	integerPattern = pattern.Lazy(`^[+-]?[0-9]+$`)
	numberPattern  = pattern.Lazy(`^\s*[+-]?[0-9][0-9_]*(\.[0-9_]+)?([eE][+-]?[0-9]+)?\s*$`)
)

// number reads a whole number, also from a string, in the words of ActiveModel's
// numericality: CC: app/messages/manifest_process_scale_message.rb.
func (f *fields) number(key string, least, most int) *int {
	v := f.m[key]
	if v == nil {
		return nil
	}
	text, isText := v.(string)
	_, isBool := v.(bool)
	if !isText {
		text = fmt.Sprint(v)
	}
	if _, fraction := v.(float64); fraction && integerPattern().MatchString(text) {
		text += ".0"
	}
	switch n, err := strconv.ParseInt(strings.TrimPrefix(text, "+"), 10, 64); {
	case isBool || !numberPattern().MatchString(text):
		f.fault(title(key) + " is not a number")
	case !integerPattern().MatchString(text):
		f.fault(title(key) + " must be an integer")
	case n < int64(least):
		f.fault(fmt.Sprintf("%s must be greater than or equal to %d", title(key), least))
	case err != nil || n > int64(most):
		f.fault(fmt.Sprintf("%s must be less than or equal to %d", title(key), most))
	default:
		number := int(n)
		return &number
	}
	return nil
}

var (
	sizePattern   = pattern.Lazy(`(?i)^(-?[0-9]{1,12}(?:\.[0-9]{1,6})?)\s*([KMGT]i?B?|B)$`)
	numericPrefix = pattern.Lazy(`^-?[0-9]`)
)

var unitShift = map[byte]uint{'B': 0, 'K': 10, 'M': 20, 'G': 30, 'T': 40}

// ParseSize reads a size like "512M", "512 M" or "1.5G" as bytes.
func ParseSize(s string) (int64, bool) {
	m := sizePattern().FindStringSubmatch(strings.TrimSpace(s))
	if m == nil {
		return 0, false
	}
	n, err := strconv.ParseFloat(m[1], 64)
	n *= float64(int64(1) << unitShift[strings.ToUpper(m[2])[0]])
	if err != nil || math.Abs(n) > 1<<62 {
		return 0, false
	}
	return int64(n), true
}

// quantity is ParseSize as Cloud Controller has it, which takes no space before the unit
// (CC: lib/cloud_controller/byte_quantity.rb).
func quantity(s string) (int64, bool) {
	if strings.ContainsFunc(strings.TrimSpace(s), unicode.IsSpace) {
		return 0, false
	}
	return ParseSize(s)
}

// size is a size, nil of a blank value (CC: AppManifestMessage.validate_byte_format).
func (f *fields) size(key string) *int64 {
	v := f.m[key]
	if message.Blank(v) {
		return nil
	}
	text := message.Text(v)
	n, ok := quantity(text)
	switch {
	case !numericPrefix().MatchString(text):
		f.fault(title(key) + " is not a number")
	case !ok:
		f.fault(title(key) + " must use a supported unit: B, K, KB, M, MB, G, GB, T, or TB")
	default:
		return &n
	}
	return nil
}

func (f *fields) megabytes(key string) *int {
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
	if v := message.Text(f.m[key]); v == "-1" || v == "0" {
		n, _ := strconv.ParseInt(v, 10, 64)
		return &n
	}
	n := f.size(key)
	if n != nil && *n < -1 {
		f.fault("Log rate limit must be an integer greater than or equal to -1")
		return nil
	}
	return n
}

// maxSeconds bounds the durations of health checks.
const maxSeconds = math.MaxInt32

// check reads the keys of a health check that begin with prefix.
func (f *fields) check(prefix string) Check {
	c := Check{InvocationTimeout: f.number(prefix+"_invocation_timeout", 1, maxSeconds), Interval: f.number(prefix+"_interval", 1, maxSeconds)}
	if v, given := f.m[prefix+"_type"]; given {
		kind, _ := v.(string)
		if kind == "none" { // as it once was called
			kind = "process"
		}
		if !cf.IsCheckType(kind) {
			f.fault(title(prefix) + cf.CheckTypeMessage)
		}
		c.Type = &kind
	}
	if v := f.m[prefix+"_http_endpoint"]; v != nil {
		if !message.IsURIPath(v) {
			f.fault(title(prefix) + " http endpoint must be a valid URI path")
		}
		endpoint, _ := v.(string)
		c.Endpoint = &endpoint
	}
	return c
}
