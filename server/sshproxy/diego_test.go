package sshproxy

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"encoding/pem"
	"io"
	"net"
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	"google.golang.org/protobuf/proto"

	"cupola/runtime/lrp"
	"cupola/server/bbs/bbspb"
	"cupola/server/bbs/model"
	"cupola/server/desire"
	"cupola/store"
	"cupola/store/cf"
	"cupola/test/loopback"
)

// ownSSHD is an sshd of an instance, which has a port of this machine and answers
// each command with its words.
func ownSSHD(t *testing.T, key ssh.Signer, user, password string, public ssh.PublicKey) (port uint16) {
	t.Helper()
	config := &ssh.ServerConfig{
		PasswordCallback: func(m ssh.ConnMetadata, got []byte) (*ssh.Permissions, error) {
			if m.User() == user && string(got) == password && password != "" {
				return nil, nil
			}
			return nil, io.EOF
		},
		PublicKeyCallback: func(m ssh.ConnMetadata, got ssh.PublicKey) (*ssh.Permissions, error) {
			if m.User() == user && string(got.Marshal()) == string(public.Marshal()) {
				return nil, nil
			}
			return nil, io.EOF
		},
	}
	config.AddHostKey(key)
	return uint16(loopback.Serve(t, func(conn net.Conn) {
		defer conn.Close()
		_, channels, requests, err := ssh.NewServerConn(conn, config)
		if err != nil {
			return
		}
		go ssh.DiscardRequests(requests)
		for c := range channels {
			echo(c)
		}
	}).Port)
}

// TestDiegoUsers enters instances of LRPs as Diego's clients do, by the route
// diego-ssh (diego-ssh: authenticators, proxy/proxy.go).
func TestDiegoUsers(t *testing.T) {
	h := newHarness(t)
	h.proxy.Diego = func() string { return "the secret" }
	hostKey := newKey(t)
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	key, err := ssh.NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	port := ownSSHD(t, hostKey, "me", "word", key)
	sha256 := strings.TrimPrefix(ssh.FingerprintSHA256(hostKey.PublicKey()), "SHA256:")
	routes := map[string]model.SSHRoute{
		"password": {ContainerPort: port, User: "me", Password: "word", HostFingerprint: fingerprints(hostKey.PublicKey())[0]},
		"key":      {ContainerPort: port, User: "me", PrivateKey: string(pem.EncodeToMemory(block)), HostFingerprint: sha256 + "="},
		"sha1":     {ContainerPort: port, User: "me", Password: "word", HostFingerprint: fingerprints(hostKey.PublicKey())[1]},
		"other":    {ContainerPort: port, User: "me", Password: "word", HostFingerprint: "SHA256:other"},
		"wrong":    {ContainerPort: port, User: "me", Password: "not it"},
		"garbage":  {ContainerPort: port, User: "me", PrivateKey: "no key"},
		"portless": {ContainerPort: port + 1, User: "me", Password: "word"},
		"none":     {},
	}
	for guid, r := range routes {
		h.desire(guid, port, r)
	}
	for _, c := range []struct{ user, password, want string }{
		{"diego:password/0", "the secret", ""},
		{"diego:key/0", "the secret", ""},
		{"diego:sha1/0", "the secret", ""},
		{"diego:password/0", "another", "Invalid credentials"},
		{"diego:password/0", "", "Invalid credentials"},
		{"diego:password", "the secret", "Invalid authentication domain"},
		{"diego:password/1", "the secret", "no matching ActualLRP for ProcessGuid: password, Index: 1"},
		{"diego:portless/0", "the secret", "SSH routing info not found"},
		{"diego:none/0", "the secret", "SSH routing info not found"},
		{"diego:garbage/0", "the secret", "the private_key of the route diego-ssh cannot be read"},
	} {
		client, banner, err := h.dial(c.user, c.password)
		if c.want != "" {
			if err == nil || !strings.Contains(banner, c.want) {
				t.Errorf("%s: got %q, %v; want %q", c.user, banner, err, c.want)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v %s", c.user, err, banner)
		}
		if err := open(client, "session", ""); err != nil {
			t.Errorf("%s: %v", c.user, err)
		}
		client.Close()
	}
	for user, want := range map[string]string{"diego:other/0": "Host fingerprint mismatch", "diego:wrong/0": "unable to authenticate"} {
		client, _, err := h.dial(user, "the secret")
		if err != nil {
			t.Fatal(err)
		}
		if err := open(client, "session", ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v; want %q", user, err, want)
		}
		client.Close()
	}
	h.proxy.Diego = nil
	if _, banner, err := h.dial("diego:password/0", ""); err == nil || !strings.Contains(banner, "Invalid credentials") {
		t.Errorf("without a password: got %q, %v", banner, err)
	}
}

// TestDiegoUsersOfApps enters an instance of an app by Diego's password: its owner
// needs no role, and the app must allow ssh (CC: diego/app_recipe_builder.rb; diego-ssh:
// authenticators/diego_proxy_authenticator.go).
func TestDiegoUsersOfApps(t *testing.T) {
	h := newHarness(t)
	h.inside = echo
	h.proxy.Diego = func() string { return "the secret" }
	app := &cf.App{Resource: guid("app")}
	processGUID := desire.ProcessGUID(&cf.Process{Resource: guid("app")}, app)
	client, banner, err := h.dial("diego:"+processGUID+"/0", "the secret")
	if err != nil {
		t.Fatalf("%v %s", err, banner)
	}
	if err := open(client, "session", ""); err != nil {
		t.Error(err)
	}
	client.Close()
	h.stop() // its log line is written then
	if want := "app/0 SSH Successful remote access by "; !slices.Contains(h.lines, want) {
		t.Errorf("got %q; want %q", h.lines, want)
	}
}

func TestDiegoUsersRefusedByApps(t *testing.T) {
	h := newHarness(t)
	h.proxy.Diego = func() string { return "the secret" }
	processGUID := desire.ProcessGUID(&cf.Process{Resource: guid("app")}, &cf.App{Resource: guid("app")})
	refused := func(user, password, want string) {
		t.Helper()
		if _, banner, err := h.dial(user, password); err == nil || !strings.Contains(banner, want) {
			t.Errorf("%s: got %q, %v; want %q", user, banner, err, want)
		}
	}
	refused("diego:"+processGUID+"/0", "developer", "Invalid credentials")
	refused("diego:"+processGUID+"/1", "the secret", "the instance is not running")
	refused("diego:"+processGUID+"/2", "the secret", "no matching ActualLRP for ProcessGuid: "+processGUID+", Index: 2")
	h.write(func(tx *store.Tx) error {
		app, err := store.Apps.Get(tx, "app")
		if err != nil {
			return err
		}
		app.SSHEnabled = false
		return store.Apps.Update(tx, app)
	})
	refused("diego:"+processGUID+"/0", "the secret", "SSH routing info not found")
}

// desire makes a running LRP of a client of the BBS.
func (h *harness) desire(guid string, port uint16, r model.SSHRoute) {
	h.t.Helper()
	d := &bbspb.DesiredLRP{ProcessGuid: guid, Domain: "d", Instances: 1, RootFs: "preloaded:x", Ports: []uint32{uint32(port)}, LogGuid: "log"}
	if r != (model.SSHRoute{}) {
		text, err := json.Marshal(r)
		if err != nil {
			h.t.Fatal(err)
		}
		d.Routes = &bbspb.Routes{Routes: map[string][]byte{"diego-ssh": text}}
	}
	h.write(func(tx *store.Tx) error {
		row := &store.BBSDesired{ProcessGUID: guid, Domain: "d", Instances: 1}
		if err := store.BBSDesireds.Insert(tx, row, func(lrp.Tag) ([]byte, error) { return proto.Marshal(d) }); err != nil {
			return err
		}
		return store.ActualLRPs.Insert(tx, lrp.Actual{Key: lrp.Key{ProcessGUID: guid}, Domain: "d", InstanceGUID: guid + "-i", CellID: "c", State: lrp.Running, Ready: true,
			Address: "127.0.0.1", Ports: []uint16{port}})
	})
}
