package manifest

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Change is one difference between a manifest and what is there, as
// manifest_diff shows it.
type Change struct {
	Op    string `json:"op"` // add, replace, remove
	Path  string `json:"path"`
	Was   any    `json:"was,omitempty"`
	Value any    `json:"value,omitempty"`
}

// known are the keys that Cloud Controller compares; others, like path, mean
// nothing to it.
var known = []string{"name", "lifecycle", "buildpack", "buildpacks", "stack", "command", "disk_quota", "disk-quota", "docker", "env", "features",
	"health-check-http-endpoint", "health-check-invocation-timeout", "health-check-type", "health-check-interval",
	"readiness-health-check-type", "readiness-health-check-http-endpoint", "readiness-health-check-invocation-timeout", "readiness-health-check-interval",
	"instances", "jobs", "log-rate-limit-per-second", "memory", "metadata", "no-route", "processes", "random-route", "default-route", "release", "routes", "services", "sidecars", "timeout"}

// Diff returns what applying m would change; current are the manifests of the
// apps that exist, by name.
func Diff(m *Manifest, current map[string]map[string]any) []Change {
	changes := []Change{}
	for i, app := range m.Apps {
		at := fmt.Sprintf("/applications/%d", i)
		changes = append(changes, diffMap(at, current[app.Name], app.raw, func(k string) bool { return slices.Contains(known, k) })...)
	}
	return changes
}

func diffMap(at string, have, want map[string]any, wanted func(string) bool) (changes []Change) {
	for _, k := range slices.Sorted(maps.Keys(want)) {
		if wanted(k) {
			changes = append(changes, diffValue(at+"/"+strings.ReplaceAll(k, "/", "~1"), have[k], want[k])...)
		}
	}
	return changes
}

func diffValue(at string, have, want any) []Change {
	hm, ok1 := have.(map[string]any)
	wm, ok2 := want.(map[string]any)
	if ok1 && ok2 {
		return diffMap(at, hm, wm, func(string) bool { return true })
	}
	hl, ok1 := have.([]any)
	wl, ok2 := want.([]any)
	if ok1 && ok2 {
		return diffList(at, hl, wl)
	}
	if same(have, want) {
		return nil
	}
	if have == nil {
		return []Change{{Op: "add", Path: at, Value: want}}
	}
	return []Change{{Op: "replace", Path: at, Was: have, Value: want}}
}

// diffList matches entries by what names them: a list is added to, never
// taken from.
func diffList(at string, have, want []any) (changes []Change) {
	for i, w := range want {
		j := slices.IndexFunc(have, func(h any) bool { return nameOf(h) == nameOf(w) })
		var h any
		if j >= 0 {
			h = have[j]
		}
		changes = append(changes, diffValue(fmt.Sprintf("%s/%d", at, i), h, w)...)
	}
	return changes
}

// nameOf is what names an entry of a list: the type of a process, the name of
// a sidecar or service, the URL of a route.
func nameOf(v any) string {
	m, ok := v.(map[string]any)
	if !ok {
		return fmt.Sprint(v)
	}
	for _, k := range []string{"type", "name", "route"} {
		if s, ok := m[k]; ok {
			return k + fmt.Sprint(s)
		}
	}
	return fmt.Sprint(m)
}

// same compares scalars: sizes by what they mean, the rest by their text.
func same(a, b any) bool {
	if reflect.DeepEqual(a, b) {
		return true
	}
	if a == nil || b == nil {
		return false
	}
	sa, oka := ParseSize(fmt.Sprint(a))
	sb, okb := ParseSize(fmt.Sprint(b))
	if oka && okb {
		return sa == sb
	}
	return fmt.Sprint(a) == fmt.Sprint(b)
}
