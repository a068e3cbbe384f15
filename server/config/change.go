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
	was, is := map[string]any{"debug": old.Debug}, map[string]any{"debug": next.Debug}
	values(reflect.ValueOf(old).Elem(), was)
	values(reflect.ValueOf(next).Elem(), is)
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
func values(of reflect.Value, all map[string]any) {
	for i := range of.NumField() {
		field, v := of.Type().Field(i), of.Field(i)
		_, embedded := field.Tag.Lookup("embed")
		switch {
		case field.Tag.Get("flag") == "-":
		case v.Kind() == reflect.Struct && (embedded || field.Anonymous):
			values(v, all)
		default:
			all[flagOf(field.Tag.Get("env"))] = v.Interface()
		}
	}
}
