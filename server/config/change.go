package config

import (
	"reflect"
	"slices"
	"sync/atomic"
)

// Reloadable are the flags that change while the daemon runs.
var Reloadable = []string{"debug", "tls-cert", "tls-key", "drain-wait", "max-service-bindings", "password-policy", "service-backups"}

// Current is the configuration of a daemon as it was last reloaded. Of what is not
// Reloadable it says what the next start would take.
type Current struct{ last atomic.Pointer[Config] }

// Get returns it; it is not to be changed.
func (c *Current) Get() *Config { return c.last.Load() }

// Set replaces it.
func (c *Current) Set(to Config) { c.last.Store(&to) }

// Changes are the flags whose values differ between two configurations, sorted: those
// that change while the daemon runs, and those that need a restart.
func Changes(old, next *Config) (live, restart []string) {
	was, is := values(old), values(next)
	for name := range is {
		switch {
		case reflect.DeepEqual(was[name], is[name]):
		case slices.Contains(Reloadable, name):
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
