package doctor

import (
	"context"
	"errors"
	"slices"
	"testing"
)

// TestElsewhere: without containers on this machine, clusters are tried instead of what containers need.
func TestElsewhere(t *testing.T) {
	m := files(t, nil)
	m.superuser, m.Elsewhere = true, true
	m.Clusters = map[string]func(context.Context) (string, error){
		"west": func(context.Context) (string, error) { return "kubectl apply", errors.New("pods is forbidden") },
		"east": func(context.Context) (string, error) { return "", nil },
	}
	var names []string
	for _, c := range m.checks() {
		names = append(names, c.name)
	}
	for _, c := range []struct {
		name string
		want bool
	}{{"cluster east", true}, {"cluster west", true}, {"data dir", true}, {"http", true}, {"cgroup", false}, {"overlayfs", false}, {"containers", false}} {
		if got := slices.Contains(names, c.name); got != c.want {
			t.Errorf("%s: checked is %t; want %t", c.name, got, c.want)
		}
	}
	if r := m.cluster("east")(t.Context()); r.Level != OK {
		t.Errorf("got %+v", r)
	}
	if r := m.cluster("west")(t.Context()); r.Level != Fail || r.Detail != "pods is forbidden" || r.Fix != "kubectl apply" {
		t.Errorf("got %+v", r)
	}
}
