package sshproxy

import (
	"slices"
	"strings"
	"testing"

	"cupola/server/desire"
	"cupola/store/cf"
)

// TestDeploymentUsers lets admins alone into processes of deployments, and into nothing
// else by that name.
func TestDeploymentUsers(t *testing.T) {
	h := newHarness(t)
	h.inside = echo
	h.write(seedDeployment)
	app := desire.ProcessGUID(&cf.Process{Resource: guid("app")}, &cf.App{})
	for _, c := range []struct{ user, code, want string }{
		{"bosh:site.nats.3.nats.server.d/0", "admin", ""},
		{"bosh:site.nats.3.nats.server.d/0", "developer", "only admins are"},
		{"bosh:site.nats.3.nats.server.d/0", "reader", "only admins are"},
		{"bosh:site.nats.3.nats.server.d/0", "wrong", errCode.Error()},
		{"bosh:site.nats.3.nats.server.d/1", "admin", errDeployment.Error()},
		{"bosh:site.nats.3.nats.down.d/0", "admin", errNotRunning.Error()},
		{"bosh:site.nats.3.nats.server.d", "admin", errDeploymentLogin.Error()},
		{"bosh:none/0", "admin", errDeployment.Error()},
		{"bosh:" + app + "/0", "admin", errDeployment.Error()},
	} {
		client, banner, err := h.dial(c.user, c.code)
		if c.want != "" {
			if err == nil || !strings.Contains(banner, c.want) {
				t.Errorf("%s as %s: got %q, %v; want %q", c.user, c.code, banner, err, c.want)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%s as %s: %v %s", c.user, c.code, err, banner)
		}
		if err := open(client, "session", ""); err != nil {
			t.Error(err)
		}
		client.Close()
	}
	h.eventually(func() bool {
		return slices.Equal(h.lines, []string{"deployment/3 SSH Successful remote access by ", "deployment/3 SSH Remote access ended for "})
	})
}
