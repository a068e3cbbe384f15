package servicefile

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"cupola/runtime/pattern"
)

// Vars are the values that templates name as ((name)): of an instance, and in credentials
// of a binding.
type Vars map[string]string

// The names of the values. Those of a binding are known in credentials alone.
const (
	VarHost     = "host"      // the instance's address
	VarPort     = "port"      // its first port
	VarGUID     = "guid"      // the instance's
	VarMemory   = "memory_mb" // of the plan
	VarDisk     = "disk_mb"   // of the plan
	VarUsername = "username"  // the binding's
	VarPassword = "password"
)

var instanceVars = []string{VarHost, VarPort, VarGUID, VarMemory, VarDisk}

// varPattern is a name in a template.
var varPattern = pattern.Lazy(`\(\(([^()\s]*)\)\)`)

// unknown is the first name in a template that is none of some; "" for none.
func unknown(template string, known []string) (name string, ok bool) {
	for _, m := range varPattern().FindAllStringSubmatch(template, -1) {
		if !slices.Contains(known, m[1]) {
			return m[1], true
		}
	}
	return "", false
}

// Expand replaces the names in a template by their values.
func (v Vars) Expand(template string) string {
	return varPattern().ReplaceAllStringFunc(template, func(m string) string { return v[strings.Trim(m, "()")] })
}

// ExpandAll expands each template of a list.
func (v Vars) ExpandAll(templates []string) (all []string) {
	for _, t := range templates {
		all = append(all, v.Expand(t))
	}
	return all
}

// ExpandValue expands the texts in a value of credentials. One that is the name of a number alone becomes the number.
func (v Vars) ExpandValue(value any) any {
	switch value := value.(type) {
	case string:
		text := v.Expand(value)
		if n, err := strconv.Atoi(text); err == nil && slices.Contains([]string{VarPort, VarMemory, VarDisk}, strings.Trim(value, "()")) && value != text {
			return n
		}
		return text
	case []any:
		all := make([]any, 0, len(value))
		for _, one := range value {
			all = append(all, v.ExpandValue(one))
		}
		return all
	case map[string]any:
		all := maps.Clone(value)
		for key, one := range value {
			all[key] = v.ExpandValue(one)
		}
		return all
	}
	return value
}
