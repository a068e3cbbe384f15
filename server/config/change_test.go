package config

import (
	"errors"
	"slices"
	"testing"
	"time"
)

func TestChanges(t *testing.T) {
	of := func(change func(*Config)) *Config {
		c := &Config{}
		if change != nil {
			change(c)
		}
		if err := c.Validate(); err != nil {
			t.Fatal(err)
		}
		return c
	}
	for what, tt := range map[string]struct {
		change        func(*Config)
		live, restart []string
	}{
		"nothing":          {func(*Config) {}, nil, nil},
		"a default, given": {func(c *Config) { c.ServiceBackups = 7 }, nil, nil},
		"limits":           {func(c *Config) { c.MaxBindings, c.DrainWait, c.Debug = 9, time.Second, true }, []string{"debug", "drain-wait", "max-service-bindings"}, nil},
		"a map":            {func(c *Config) { c.PasswordPolicy = map[string]int{"digits": 1} }, []string{"password-policy"}, nil},
		"others":           {func(c *Config) { c.Domain, c.AdminPassword, c.MaxBindings = "other.test", "new", 1 }, []string{"max-service-bindings"}, []string{"admin-password", "domain"}},
		"embedded":         {func(c *Config) { c.Backups.Every, c.Telemetry.Sample = time.Hour, "2%" }, []string{"backup-every"}, []string{"open-telemetry-sample"}},
		"the archive":      {func(c *Config) { c.LogArchive, c.LogArchiveDays = "1G", 3 }, []string{"log-archive", "log-archive-days"}, nil},
		"no archive":       {func(c *Config) { c.LogArchive = "off" }, nil, []string{"log-archive"}},
		"first services":   {func(c *Config) { c.DataServices = []string{"files"} }, nil, []string{"data-services"}},
	} {
		live, restart := Changes(of(nil), of(tt.change))
		if !slices.Equal(live, tt.live) || !slices.Equal(restart, tt.restart) {
			t.Errorf("%s: got %q and %q; want %q and %q", what, live, restart, tt.live, tt.restart)
		}
	}
}

// TestServicesChange offers another service, which needs no restart.
func TestServicesChange(t *testing.T) {
	old, next := &Config{DataServices: []string{"files"}}, &Config{DataServices: []string{"files", "s3"}}
	if err := errors.Join(old.Validate(), next.Validate()); err != nil {
		t.Fatal(err)
	}
	if live, restart := Changes(old, next); !slices.Equal(live, []string{"data-services"}) || len(restart) != 0 {
		t.Errorf("got %q and %q", live, restart)
	}
}

// Each flag that is reloaded is one.
func TestReloadableFlags(t *testing.T) {
	all := values(&Config{})
	for _, name := range reloadable {
		if _, ok := all[name]; !ok {
			t.Errorf("there is no flag --%s", name)
		}
	}
}
