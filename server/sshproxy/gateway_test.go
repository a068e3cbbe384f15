package sshproxy

import (
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"cupola/runtime/lrp"
	"cupola/server/bosh/sshsession"
	"cupola/store"
	"cupola/store/cf"
)

// TestGateway enters instances as the ssh of the bosh CLI does: through the gateway, by a key
// that is accepted for one session.
func TestGateway(t *testing.T) {
	h := newHarness(t)
	commands := make(chan string, 1)
	h.inside = func(c ssh.NewChannel) { runs(c, commands) }
	h.write(seedDeployment)
	key, other := newKey(t), newKey(t)
	open := func(user string, who cf.Identity) string {
		gateway, err := h.proxy.Sessions.Open(sshsession.Session{User: user, Key: key.PublicKey(), Who: who, Deployment: "site",
			Instances: map[string]string{"10.1.0.1": "the-instance", "10.1.0.2": "gone"}})
		if err != nil {
			t.Fatal(err)
		}
		return gateway
	}
	admin, err := redeem(t.Context(), "admin")
	if err != nil {
		t.Fatal(err)
	}
	developer, err := redeem(t.Context(), "developer")
	if err != nil {
		t.Fatal(err)
	}
	operator := developer
	operator.Scopes = []string{"bosh.admin"}
	mine, demoted, client := open("bosh_1", admin), open("bosh_1", developer), open("bosh_1", operator)
	for _, c := range []struct {
		name, gateway, to, user string
		key                     ssh.Signer
		want                    string // "": the user is let in
	}{
		{"in", mine, "10.1.0.1:22", "bosh_1", key, ""},
		{"by the director's own scope", client, "10.1.0.1:22", "bosh_1", key, ""},
		{"no gateway", sshsession.GatewayPrefix + "x", "10.1.0.1:22", "bosh_1", key, errGatewayEnded.Error()},
		{"other port", mine, "10.1.0.1:5432", "bosh_1", key, errGatewayOnly.Error()},
		{"other address", mine, "10.1.0.3:22", "bosh_1", key, errGatewayOnly.Error()},
		{"other user", mine, "10.1.0.1:22", "bosh_2", key, "unable to authenticate"},
		{"other key", mine, "10.1.0.1:22", "bosh_1", other, "unable to authenticate"},
		{"no admin any more", demoted, "10.1.0.1:22", "bosh_1", key, errDeployment.Error()},
		{"instance that went", mine, "10.1.0.2:22", "bosh_1", key, errNotRunning.Error()},
	} {
		inner, said := h.through(c.gateway, c.to, c.user, c.key)
		if c.want != "" {
			if inner != nil || !strings.Contains(said, c.want) {
				t.Errorf("%s: got %q; want %q", c.name, said, c.want)
			}
			continue
		}
		if inner == nil {
			t.Fatalf("%s: %s", c.name, said)
		}
		session, err := inner.NewSession()
		if err != nil {
			t.Fatal(err)
		}
		if err := session.Run("sudo bash -c 'ls'"); err != nil {
			t.Error(err)
		}
		if got := <-commands; got != "bash -c 'ls'" {
			t.Errorf("got the command %q; want it without sudo", got)
		}
		inner.Close()
		_ = h.outer.Wait() // the proxy ends it
	}
	h.proxy.Sessions.Close("site", func(user string) bool { return user == "bosh_1" }, []string{"the-instance", "gone"})
	if inner, said := h.through(mine, "10.1.0.1:22", "bosh_1", key); inner != nil || !strings.Contains(said, errGatewayEnded.Error()) {
		t.Errorf("after the end: got %q", said)
	}
	h.eventually(func() bool {
		return slices.Contains(h.lines, "deployment/3 SSH Successful remote access by ")
	})
}

// through connects by the gateway; what was said instead is returned with a nil client.
func (h *harness) through(gateway, to, user string, key ssh.Signer) (c *ssh.Client, said string) {
	h.t.Helper()
	banner := ""
	config := func(user string, auth ...ssh.AuthMethod) *ssh.ClientConfig {
		return &ssh.ClientConfig{User: user, Auth: auth, HostKeyCallback: ssh.FixedHostKey(h.proxy.HostKey.PublicKey()),
			BannerCallback: func(text string) error { banner += text; return nil }}
	}
	outer, err := ssh.Dial("tcp", h.addr, config(gateway))
	if err != nil {
		return nil, banner + err.Error()
	}
	h.t.Cleanup(func() { outer.Close() })
	h.outer = outer
	if session, err := outer.NewSession(); err == nil {
		session.Close()
		h.t.Error("the gateway opened a session of its own")
	}
	conn, err := outer.Dial("tcp", to)
	if err != nil {
		return nil, err.Error()
	}
	inner, channels, requests, err := ssh.NewClientConn(conn, to, config(user, ssh.PublicKeys(key)))
	if err != nil {
		return nil, banner + err.Error()
	}
	return ssh.NewClient(inner, channels, requests), ""
}

// runs accepts a channel, and tells which command is run on it.
func runs(c ssh.NewChannel, commands chan<- string) {
	channel, requests, err := c.Accept()
	if err != nil {
		return
	}
	defer channel.Close()
	for r := range requests {
		line, ok := commandOf(r)
		_ = r.Reply(ok, nil)
		if ok {
			commands <- line
			_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{0}))
			return
		}
	}
}

// seedDeployment makes an instance with a process that runs, and one that does not.
func seedDeployment(tx *store.Tx) error {
	d := &cf.BOSHDeployment{Resource: guid("deployment"), Name: "site"}
	if err := store.BOSHDeployments.Insert(tx, d); err != nil {
		return err
	}
	i := &cf.BOSHInstance{Resource: guid("the-instance"), DeploymentGUID: d.GUID, Group: "nats", Index: 3, Lifecycle: "service", Goal: cf.BOSHStarted, Phase: cf.BOSHRunning}
	if err := store.BOSHInstances.Insert(tx, i); err != nil {
		return err
	}
	for name, state := range map[string]lrp.ActualState{"site.nats.3.nats.server.d": lrp.Running, "site.nats.3.nats.down.d": lrp.Crashed} {
		a := lrp.Actual{CellID: "cell", Key: lrp.Key{ProcessGUID: name}, Domain: lrp.BOSHDomain(d.Name), State: state, Owner: lrp.Owner{GUID: i.GUID}, InstanceGUID: "instance"}
		if err := store.ActualLRPs.Insert(tx, a); err != nil {
			return err
		}
	}
	return nil
}
