package routes

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"cupola/server/control"
	"cupola/server/control/change"
	"cupola/server/manifest"
	"cupola/store/cf"
)

// Cloud Controller's bounds of the options of a route.
const (
	maxOptionsBytes     = 1024
	maxHashHeader       = 128
	maxHashBalance      = 16
	leastHashBalance    = 1.1
	greatestHashBalance = 10.0
)

// optionKeys are all options that a route can have; those of hash-based routing
// only while its feature flag is on.
var optionKeys = []string{"loadbalancing", "hash_header", "hash_balance"}

// OptionRules say which options a route can have at the moment.
type OptionRules struct {
	keys       []string
	algorithms []string
}

// Rules are those of now: hash-based routing has a feature flag.
func Rules(c *control.Session) (OptionRules, error) {
	f, err := c.Flag("hash_based_routing")
	if err != nil || !f.Enabled {
		return OptionRules{optionKeys[:1], []string{"round-robin", "least-connection"}}, err
	}
	return OptionRules{optionKeys, []string{"round-robin", "least-connection", "hash"}}, nil
}

func (r OptionRules) hash() bool { return len(r.keys) > 1 }

// isBlank reports whether a value is blank in Cloud Controller's sense.
func isBlank(v any) bool {
	switch x := v.(type) {
	case nil:
		return true
	case string:
		return strings.TrimSpace(x) == ""
	case bool:
		return !x
	}
	return false
}

// faults are what is wrong with the options of a request, in Cloud Controller's
// words.
func (r OptionRules) faults(given map[string]any) (faults []string) {
	var foreign, off []string
	for _, key := range slices.Sorted(maps.Keys(given)) {
		switch {
		case !slices.Contains(optionKeys, key):
			foreign = append(foreign, key)
		case !slices.Contains(r.keys, key) && !isBlank(given[key]):
			off = append(off, key)
		}
	}
	unknown := func(keys []string) string { return "Unknown field(s): '" + strings.Join(keys, "', '") + "'" }
	algorithm := given["loadbalancing"]
	faults = control.Must(foreign == nil, unknown(foreign),
		isBlank(algorithm) || r.knows(algorithm), "Loadbalancing must be one of '"+strings.Join(r.algorithms, ", ")+"' if present",
		off == nil, unknown(off))
	if r.hash() {
		faults = append(faults, hashFaults(given)...)
	}
	return faults
}

func (r OptionRules) knows(algorithm any) bool {
	text, ok := algorithm.(string)
	return ok && slices.Contains(r.algorithms, text)
}

// hashFaults are those of the options of hash-based routing.
func hashFaults(given map[string]any) (faults []string) {
	header, balance, algorithm := given["hash_header"], given["hash_balance"], given["loadbalancing"]
	other := !isBlank(algorithm) && algorithm != "hash"
	if !isBlank(header) {
		faults = control.Must(len(fmt.Sprint(header)) <= maxHashHeader, "Hash header must be at most 128 characters")
	}
	if !isBlank(balance) {
		faults = append(faults, balanceFaults(fmt.Sprint(balance))...)
	}
	return append(faults, control.Must(isBlank(header) || !other, "Hash header can only be set when loadbalancing is hash",
		isBlank(balance) || !other, "Hash balance can only be set when loadbalancing is hash")...)
}

func balanceFaults(text string) []string {
	if len(text) > maxHashBalance {
		return []string{"Hash balance must be at most 16 characters"}
	}
	n, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
		return []string{"Hash balance must be a numeric value"}
	}
	return control.Must(n == 0 || n >= leastHashBalance && n <= greatestHashBalance, "Hash balance must be either 0 or between 1.1 and 10.0")
}

// ReadOptions reads the options of a request, in Cloud Controller's words for what is
// wrong with them; nil where it has none.
func ReadOptions(c *control.Session, v change.Field[any]) (map[string]any, error) {
	if !v.Set {
		return nil, nil
	}
	given, isObject := v.V.(map[string]any)
	if !isObject {
		return nil, cf.Unprocessable("Options 'options' is not a valid object")
	}
	rules, err := Rules(c)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(given)
	if err != nil {
		return nil, err
	}
	faults := append(control.Must(len(text) <= maxOptionsBytes, fmt.Sprintf("must be smaller than %d bytes (actual size is %d bytes)", maxOptionsBytes, len(text))),
		rules.faults(given)...)
	for i, f := range faults {
		faults[i] = "Options " + f
	}
	return given, control.Invalid(faults)
}

// PatchOptions sets the options that have a value and removes those that are
// null; those of hash-based routing go with it. What they were given as becomes
// what Cloud Controller keeps: a balance has one decimal place.
func PatchOptions(have, given map[string]any) (map[string]any, error) {
	out := maps.Clone(have)
	if out == nil {
		out = map[string]any{}
	}
	maps.Copy(out, given)
	if out["loadbalancing"] != "hash" {
		delete(out, "hash_header")
		delete(out, "hash_balance")
	}
	maps.DeleteFunc(out, func(_ string, v any) bool { return v == nil })
	if v := out["hash_balance"]; !isBlank(v) {
		if n, err := strconv.ParseFloat(strings.TrimSpace(fmt.Sprint(v)), 64); err == nil {
			out["hash_balance"] = strconv.FormatFloat(math.Round(n*10)/10, 'f', 1, 64)
		}
	}
	if out["loadbalancing"] == "hash" && isBlank(out["hash_header"]) {
		return nil, cf.Unprocessable("Hash header must be present when loadbalancing is set to hash.")
	}
	text, err := json.Marshal(out)
	if err == nil && len(text) > maxOptionsBytes {
		err = cf.Unprocessable("Route options size exceeded: options must be smaller than %d bytes.", maxOptionsBytes)
	}
	return out, err
}

// ManifestFaults are what is wrong with the options of a manifest's route.
func (r OptionRules) ManifestFaults(route manifest.Route) (faults []string) {
	if !route.OptionsSet {
		return nil
	}
	if route.Options == nil {
		return []string{fmt.Sprintf("Route '%s': options must be an object", route.URL)}
	}
	for _, key := range slices.Sorted(maps.Keys(route.Options)) {
		if !slices.Contains(r.keys, key) {
			faults = append(faults, fmt.Sprintf("Route '%s' contains invalid route option '%s'. Valid keys: '%s'", route.URL, key, strings.Join(r.keys, ", ")))
		}
	}
	if algorithm, given := route.Options["loadbalancing"]; given && !r.knows(algorithm) {
		faults = append(faults, r.algorithmFault(route.URL, algorithm))
	}
	if r.hash() {
		for _, fault := range hashFaults(route.Options) {
			faults = append(faults, fmt.Sprintf("Route '%s': %s", route.URL, fault))
		}
	}
	return faults
}

func (r OptionRules) algorithmFault(url string, algorithm any) string {
	complaint := fmt.Sprintf("Invalid value for 'loadbalancing' for Route '%s'", url)
	if text, isText := algorithm.(string); isText {
		complaint = fmt.Sprintf("Cannot use loadbalancing value '%s' for Route '%s'", text, url)
	}
	return complaint + "; Valid values are: '" + strings.Join(r.algorithms, ", ") + "'"
}
