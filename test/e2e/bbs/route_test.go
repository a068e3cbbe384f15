package bbs

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"cupola/server/bbs/bbspb"
	"cupola/test/e2e"
)

// routesLead reaches an LRP by a port, and by a name from inside a container.
func (b *bbsClient) routesLead(archive string, port int) {
	d := probeLRP("routed", archive)
	d.Routes.Routes["tcp-router"] = fmt.Appendf(nil, `[{"router_group_guid":"any","external_port":%d,"container_port":8080},{"external_port":22,"container_port":8080}]`, port)
	d.Routes.Routes["internal-router"] = []byte(`[{"hostname":"routed.apps.internal"}]`)
	b.must("/v1/desired_lrp/desire.r2", &bbspb.DesireLRPRequest{DesiredLrp: d})
	a := b.runningLRPs("routed", 1)[0]
	if len(a.InternalRoutes) != 1 || a.InternalRoutes[0].Hostname != "routed.apps.internal" || a.AvailabilityZone != "z1" {
		b.T.Errorf("got %v", a)
	}
	e2e.Answers(b.T.(*testing.T), port, "ready")
	for _, name := range []string{"routed.apps.internal", "0.routed.apps.internal"} {
		b.says(a, "/lookup?name="+name, a.NetInfo.InstanceAddress)
	}
	b.removeLRP("routed")
	e2e.Answers(b.T.(*testing.T), port, "refused")
}

// sshEnters enters an LRP by its own sshd, as Diego's clients do.
func (b *bbsClient) sshEnters() {
	d := probeLRP("entered", programTar(b.T.(*testing.T), "sshd"))
	d.Action.Run.Path, d.Action.Run.Args = "/home/vcap/sshd", []string{"2222", "me", "word"}
	d.Ports = []uint32{2222}
	d.Routes.Routes["diego-ssh"] = []byte(`{"container_port":2222,"user":"me","password":"word"}`)
	b.must("/v1/desired_lrp/desire.r2", &bbspb.DesireLRPRequest{DesiredLrp: d})
	a := b.runningLRPs("entered", 1)[0]
	var out []byte
	e2e.Eventually(b.T, time.Minute, func() string { // it listens a moment after it runs
		client, err := b.dialSSH("diego:entered/0", b.env["DIEGO_SSH_PASSWORD"])
		if err != nil {
			return err.Error()
		}
		defer client.Close()
		session, err := client.NewSession()
		if err != nil {
			return err.Error()
		}
		out, err = session.Output("a command")
		if exit, ok := errors.AsType[*ssh.ExitError](err); !ok || exit.ExitStatus() != 3 {
			return fmt.Sprint(err)
		}
		return ""
	})
	if got, want := string(out), "in "+a.InstanceKey.InstanceGuid+": a command"; got != want {
		b.T.Errorf("got %q; want %q", got, want)
	}
	b.logHasAll("entered", "SSH: Successful remote access by 127.0.0.1:", "SSH: Remote access ended for 127.0.0.1:")
	if _, err := b.dialSSH("diego:entered/0", "wrong"); err == nil || !strings.Contains(err.Error(), "unable to authenticate") {
		b.T.Errorf("got %v for a wrong password", err)
	}
	b.removeLRP("entered")
}

// sshEntersApp enters an instance of an app by Diego's password, while ssh is enabled
// for the app.
func (b *bbsClient) sshEntersApp(processGUID, instanceGUID string) {
	user, password := "diego:"+processGUID+"/0", b.env["DIEGO_SSH_PASSWORD"]
	client, err := b.dialSSH(user, password)
	if err != nil {
		b.T.Fatal(err)
	}
	defer client.Close()
	session, err := client.NewSession()
	if err != nil {
		b.T.Fatal(err)
	}
	out, err := session.Output("echo $CF_INSTANCE_GUID")
	if got := strings.TrimSpace(string(out)); err != nil || got != instanceGUID {
		b.T.Errorf("got %q, %v; want %q", got, err, instanceGUID)
	}
	feature := "/v3/apps/" + b.App("probe") + "/features/ssh"
	b.API("PATCH", feature, e2e.Doc{"enabled": false}, nil)
	if _, err := b.dialSSH(user, password); err == nil || !strings.Contains(err.Error(), "unable to authenticate") {
		b.T.Errorf("got %v while ssh is disabled", err)
	}
	b.API("PATCH", feature, e2e.Doc{"enabled": true}, nil)
}

func (b *bbsClient) dialSSH(user, password string) (*ssh.Client, error) {
	return ssh.Dial("tcp", b.SSHAddress(), &ssh.ClientConfig{User: user, Auth: []ssh.AuthMethod{ssh.Password(password)}, HostKeyCallback: ssh.InsecureIgnoreHostKey(), Timeout: time.Minute}) //nolint:gosec // of this test's daemon
}
