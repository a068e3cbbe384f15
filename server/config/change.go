package config

import (
	"reflect"
	"slices"
	"sync/atomic"

	"cupola/server/admin/lowwater"
)

// reloadable are the flags that change while the daemon runs.
var reloadable = []string{"debug", "tls-cert", "tls-key", "drain-wait", "max-service-bindings", "password-policy", "service-backups", "alert-command", "disk-low-water", "log-archive", "log-archive-days",
	"backup-to", "backup-recipient", "backup-every", "backup-changes-every", "backup-keep", "backup-rate", "data-services"}

// off is the value of a Reloadable flag without which a part of the daemon is not there: it comes and goes with a restart.
var off = map[string]any{"log-archive": "off", "data-services": 0}

// isOff reports whether a value of a flag is that of off.
func isOff(name string, value any) bool {
	if list := reflect.ValueOf(value); list.Kind() == reflect.Slice {
		value = list.Len()
	}
	is, ok := off[name]
	return ok && is == value
}

// Current is the configuration of a daemon as it was last reloaded. Of what is not
// reloadable it says what the next start would take.
type Current struct{ last atomic.Pointer[Config] }

// Get returns it; it is not to be changed.
func (c *Current) Get() *Config { return c.last.Load() }

// Set replaces it.
func (c *Current) Set(to Config) { c.last.Store(&to) }

// LowWater is the free space below which caches are deleted, as of now.
func (c *Current) LowWater() lowwater.Mark { return c.Get().LowWater() }

// Changes are the flags whose values differ between two configurations, sorted: those
// that change while the daemon runs, and those that need a restart.
func Changes(old, next *Config) (live, restart []string) {
	was, is := values(old), values(next)
	for name := range is {
		switch {
		case reflect.DeepEqual(was[name], is[name]):
		case slices.Contains(reloadable, name) && !isOff(name, was[name]) && !isOff(name, is[name]):
			live = append(live, name)
		default:
			restart = append(restart, name)
		}
	}
	slices.Sort(live)
	slices.Sort(restart)
	return live, restart
}

// values are those of the flags, by name.
func values(c *Config) map[string]any {
	all := map[string]any{"debug": c.Debug}
	eachFlag(reflect.ValueOf(c).Elem(), func(name string, _ reflect.StructField, v reflect.Value) { all[name] = v.Interface() })
	return all
}
