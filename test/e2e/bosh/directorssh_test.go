package bosh

import (
	"crypto/ed25519"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
)

// sshHost is how an instance is entered.
type sshHost struct {
	Status, IP, ID, Job string
	Index               int
	HostPublicKey       string `json:"host_public_key"`
	GatewayHost         string `json:"gateway_host"`
	GatewayUser         string `json:"gateway_user"`
}

// directorSSH enters an instance as the ssh of the bosh CLI does, until the key is withdrawn.
func (d *directorDaemon) directorSSH(t *testing.T) {
	t.Helper()
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	setup := func(job, id, user string) string {
		target := fmt.Sprintf(`{"job": %q, "indexes": [%q], "ids": [%q]}`, job, id, id)
		return fmt.Sprintf(`{"command": "setup", "deployment_name": "hands", "target": %s, "params": {"user": %q, "public_key": %q}}`, target, user, ssh.MarshalAuthorizedKey(key.PublicKey()))
	}
	const path = "/deployments/hands/ssh"
	_, result := d.done("POST", path, setup("worker", "1", "bosh_one"), "Content-Type", "application/json")
	var hosts []sshHost
	if err := json.Unmarshal([]byte(result), &hosts); err != nil || len(hosts) != 1 || hosts[0].Status != "success" || hosts[0].Job != "worker" || hosts[0].Index != 1 {
		t.Fatalf("got %v, %s; want worker/1", err, result)
	}
	host := hosts[0]
	if out, err := throughGateway(host, "bosh_one", key, "echo I am; cat /etc/group"); err != nil || !strings.HasPrefix(out, "I am\nroot:x:0:\n") {
		t.Errorf("got %q, %v; want what the command says", out, err)
	}
	if out, err := throughGateway(host, "vcap", key, "echo in"); err == nil {
		t.Errorf("another user was let in: %s", out)
	}
	elsewhere := host
	elsewhere.IP = "127.0.0.1"
	if out, err := throughGateway(elsewhere, "bosh_one", key, "echo in"); err == nil || !strings.Contains(err.Error(), "and does nothing else") {
		t.Errorf("got %s, %v; want no connections elsewhere", out, err)
	}
	d.done("POST", path, `{"command": "cleanup", "deployment_name": "hands", "target": {"job": "worker", "indexes": ["1"], "ids": ["1"]}, "params": {"user_regex": "^bosh_one"}}`)
	if out, err := throughGateway(host, "bosh_one", key, "echo in"); err == nil {
		t.Errorf("a user was let in after the clean-up: %s", out)
	}
	contains(t, d.must(d.Run("deployment", "events", "--action", "setup ssh", "--instance", "worker/"+host.ID)), "admin", "hands")
	contains(t, d.must(d.Run("deployment", "events", "--action", "cleanup ssh", "--instance", "worker/"+host.ID)), "admin", "hands")
	d.refused(http.StatusNotFound, "No instance with a VM", "POST", path, setup("checks", "0", "bosh_one"))
	d.refused(http.StatusNotFound, "'worker/none' doesn't exist", "POST", path, setup("worker", "none", "bosh_one"))
	d.refused(http.StatusBadRequest, "params.user must be", "POST", path, setup("worker", "1", "Bosh One"))
	d.refused(http.StatusBadRequest, "give setup or cleanup", "POST", path, `{"command": "open", "target": {"job": "worker"}}`)
}

// throughGateway runs a command in an instance.
func throughGateway(h sshHost, user string, key ssh.Signer, command string) (string, error) {
	public, _, _, _, err := ssh.ParseAuthorizedKey([]byte(h.HostPublicKey))
	if err != nil {
		return "", err
	}
	gateway, err := ssh.Dial("tcp", strings.TrimPrefix(h.GatewayHost, "ssh://"), &ssh.ClientConfig{User: h.GatewayUser, HostKeyCallback: ssh.FixedHostKey(public)})
	if err != nil {
		return "", err
	}
	defer gateway.Close()
	conn, err := gateway.Dial("tcp", h.IP+":22")
	if err != nil {
		return "", err
	}
	inner, channels, requests, err := ssh.NewClientConn(conn, h.IP, &ssh.ClientConfig{User: user, Auth: []ssh.AuthMethod{ssh.PublicKeys(key)}, HostKeyCallback: ssh.FixedHostKey(public)})
	if err != nil {
		return "", err
	}
	client := ssh.NewClient(inner, channels, requests)
	defer client.Close()
	session, err := client.NewSession()
	if err != nil {
		return "", err
	}
	out, err := session.CombinedOutput(command)
	return string(out), err
}
