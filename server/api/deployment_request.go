package api

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"cupola/server/control"
	"cupola/server/control/apps"
	"cupola/server/control/change"
	"cupola/store/cf"
)

type deploymentRequest struct {
	Relationships struct {
		App ref `json:"app"`
	} `json:"relationships"`
	Droplet  *named                        `json:"droplet"`
	Revision *named                        `json:"revision"`
	Strategy change.Field[string]          `json:"strategy"`
	Options  change.Field[json.RawMessage] `json:"options"`
	Metadata *change.Metadata              `json:"metadata"`

	options cf.DeploymentOptions
	scale   apps.Scale // of the new web process
}

// named names a thing outside of relationships.
type named struct {
	GUID string `json:"guid"`
}

// deployment is what the request asks for.
func (r *deploymentRequest) deployment() apps.NewDeployment {
	n := apps.NewDeployment{AppGUID: r.Relationships.App.GUID(), Strategy: r.strategy(), Options: r.options, Scale: r.scale, Metadata: r.Metadata}
	if r.Droplet != nil {
		n.Droplet = &r.Droplet.GUID
	}
	if r.Revision != nil {
		n.Revision = &r.Revision.GUID
	}
	return n
}

func (r *deploymentRequest) strategy() string { return r.Strategy.Or(cf.Rolling) }

func (r *deploymentRequest) Validate() []string {
	faults := control.Must(r.strategy() == cf.Rolling || r.strategy() == cf.Canary, "Strategy '"+r.Strategy.V+"' is not a supported deployment strategy",
		r.Droplet == nil || r.Revision == nil, "Droplet Cannot set both fields 'droplet' and 'revision'")
	r.options.MaxInFlight = 1
	if !r.Options.Set || r.Options.Null {
		return faults
	}
	var o map[string]json.RawMessage
	if json.Unmarshal(r.Options.V, &o) != nil {
		return append(faults, "Options must be an object")
	}
	maps.DeleteFunc(o, func(_ string, v json.RawMessage) bool { return string(v) == "null" })
	faults = append(faults, unsupported("Options", o, "canary", "max_in_flight", "web_instances", "memory_in_mb", "disk_in_mb", "log_rate_limit_in_bytes_per_second")...)
	faults = append(faults, r.readScale(o)...)
	if v, given := o["max_in_flight"]; given && (json.Unmarshal(v, &r.options.MaxInFlight) != nil || r.options.MaxInFlight < 1) {
		faults = append(faults, "Max in flight must be an integer greater than 0")
	}
	if v, given := o["canary"]; given {
		faults = append(faults, r.readCanary(v)...)
	}
	return faults
}

// unsupported names the keys of an object that are none of the allowed.
func unsupported(what string, o map[string]json.RawMessage, allowed ...string) []string {
	keys := slices.DeleteFunc(slices.Sorted(maps.Keys(o)), func(k string) bool { return slices.Contains(allowed, k) })
	if len(keys) == 0 {
		return nil
	}
	return []string{what + " has unsupported key(s): " + strings.Join(keys, ", ")}
}

// readScale reads the scale of the new web process.
func (r *deploymentRequest) readScale(o map[string]json.RawMessage) (faults []string) {
	faults = slices.Concat(
		readNumber(o["web_instances"], "Web instances", &r.scale.Instances),
		readNumber(o["memory_in_mb"], "Memory in mb", &r.scale.MemoryMB),
		readNumber(o["disk_in_mb"], "Disk in mb", &r.scale.DiskMB),
		readNumber(o["log_rate_limit_in_bytes_per_second"], "Log rate limit in bytes per second", &r.scale.LogRateLimit))
	if faults != nil {
		return faults
	}
	for _, f := range r.scale.Validate() {
		faults = append(faults, strings.Replace(f, "Instances", "Web instances", 1))
	}
	if s := r.scale; s.Instances.Set {
		r.options.WebInstances = &s.Instances.V
	}
	if s := r.scale; s.LogRateLimit.Set {
		r.options.LogRateLimit = &s.LogRateLimit.V
	}
	r.options.MemoryMB, r.options.DiskMB = r.scale.MemoryMB.V, r.scale.DiskMB.V
	return faults
}

// readNumber reads a whole number, nil for none, or says why it is not one.
func readNumber(v json.RawMessage, what string, into any) []string {
	switch {
	case v == nil || json.Unmarshal(v, into) == nil:
		return nil
	case bytes.ContainsAny(v, ".eE") && json.Valid(v) && v[0] != '"':
		return []string{what + " must be an integer"}
	}
	return []string{what + " is not a number"}
}

func (r *deploymentRequest) readCanary(text json.RawMessage) []string {
	var canary map[string]json.RawMessage
	if json.Unmarshal(text, &canary) != nil {
		return []string{"Options canary must be an object"}
	}
	if r.strategy() != cf.Canary {
		return []string{"Options canary are only valid for Canary deployments"}
	}
	steps, given := canary["steps"]
	if !given || string(steps) == "null" {
		return nil
	}
	var list []map[string]json.RawMessage
	if json.Unmarshal(steps, &list) != nil || slices.ContainsFunc(list, func(s map[string]json.RawMessage) bool { return s == nil }) {
		return []string{"Options canary steps must be an array of objects"}
	}
	return r.readSteps(list)
}

func (r *deploymentRequest) readSteps(steps []map[string]json.RawMessage) (faults []string) {
	const weight = "Options canary steps instance weight"
	missing, wrong := false, false
	for _, s := range steps {
		faults = append(faults, unsupported("Options canary steps", s, "instance_weight")...)
		n := 0
		v, given := s["instance_weight"]
		missing = missing || !given
		wrong = wrong || json.Unmarshal(v, &n) != nil || n < 1 || n > 100
		r.options.Weights = append(r.options.Weights, n)
	}
	return append(faults, control.Must(!missing, `Options canary steps missing key: "instance_weight"`,
		!wrong, weight+" must be an Integer between 1-100 (inclusive)",
		wrong || slices.IsSorted(r.options.Weights), weight+" must be sorted in ascending order")...)
}
