package sshproxy

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"

	"cupola/runtime/lrp"
	"cupola/server/desire"
	"cupola/store"
	"cupola/store/cf"
)

// harness is a proxy with an app of one running instance, and users with roles.
// The code of a user is the user's name.
type harness struct {
	t      *testing.T
	store  *store.Store
	proxy  *Proxy
	addr   string
	stop   func()
	inside func(ssh.NewChannel) // what the container's sshd does with a channel
	full   error                // why containers cannot be entered

	outer *ssh.Client // the last connection to the gateway

	mu    sync.Mutex
	lines []string
	conns []io.Closer // the container's ends
}

var roles = map[string]cf.RoleType{
	"developer": cf.SpaceDeveloper, "manager": cf.SpaceManager, "auditor": cf.SpaceAuditor, "supporter": cf.SpaceSupporter, "orgmanager": cf.OrgManager, "nobody": "",
}

func newHarness(t *testing.T) *harness {
	t.Helper()
	s, err := store.Open(store.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	h := &harness{t: t, store: s}
	h.write(seed)
	h.proxy = New(Config{Store: s, HostKey: newKey(t), Redeem: redeem, Attach: h.attach, Logs: h.log, Log: slog.New(slog.DiscardHandler)})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h.addr = l.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- h.proxy.Serve(ctx, l) }()
	h.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		h.stop()
		s.Close()
	})
	return h
}

func newKey(t *testing.T) ssh.Signer {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return signer
}

func (h *harness) write(f func(*store.Tx) error) {
	h.t.Helper()
	if err := h.store.Write(context.Background(), f); err != nil {
		h.t.Fatal(err)
	}
}

func guid(g string) cf.Resource { return cf.Resource{GUID: g} }

func seed(tx *store.Tx) error {
	app := &cf.App{Resource: guid("app"), Name: "hello", SpaceGUID: "space", State: cf.Started, SSHEnabled: true, Lifecycle: cf.Lifecycle{Type: cf.LifecycleBuildpack}}
	process := &cf.Process{Resource: guid("app"), AppGUID: "app", Type: "web", Instances: 2, HealthCheck: cf.HealthCheck{Type: "process"}, ReadinessCheck: cf.HealthCheck{Type: "process"}}
	actual := lrp.Actual{Key: lrp.Key{ProcessGUID: desire.ProcessGUID(process, app)}, Domain: lrp.DomainApps, InstanceGUID: "instance", CellID: "cell", State: lrp.Running}
	starting := actual
	starting.Index, starting.State, starting.InstanceGUID = 1, lrp.Claimed, "other"
	errs := []error{
		store.Orgs.Insert(tx, &cf.Org{Resource: guid("org"), Name: "org"}),
		store.Spaces.Insert(tx, &cf.Space{Resource: guid("space"), Name: "dev", OrgGUID: "org", AllowSSH: true}),
		store.Apps.Insert(tx, app), store.Processes.Insert(tx, process), store.ActualLRPs.Insert(tx, actual), store.ActualLRPs.Insert(tx, starting),
	}
	for name, role := range roles {
		errs = append(errs, store.Users.Insert(tx, &cf.User{Resource: guid(name), Username: name, Origin: "uaa"}))
		if role == "" {
			continue
		}
		r := &cf.Role{Type: role, UserGUID: name, OrgGUID: "org"}
		if !role.OfOrg() {
			r.SpaceGUID = "space"
		}
		errs = append(errs, store.Roles.Insert(tx, r))
	}
	return errors.Join(errs...)
}

func redeem(_ context.Context, code string) (cf.Identity, error) {
	if code == "wrong" {
		return cf.Identity{}, errors.New("wrong")
	}
	id := cf.Identity{UserGUID: code, Username: code, Scopes: []string{"cloud_controller.read", "cloud_controller.write"}}
	switch code {
	case "admin":
		id.Scopes = append(id.Scopes, "cloud_controller.admin")
	case "reader":
		id.Scopes = append(id.Scopes, "cloud_controller.admin_read_only")
	}
	return id, nil
}

func (h *harness) log(l lrp.LogLine) {
	h.mu.Lock()
	defer h.mu.Unlock()
	text, _, _ := strings.Cut(string(l.Text), "127.0.0.1:")
	h.lines = append(h.lines, l.Target.GUID+"/"+l.Target.Instance+" "+l.Target.Source+" "+text)
}

// attach plays the container's sshd.
func (h *harness) attach(_ context.Context, instanceGUID string) (io.ReadWriteCloser, error) {
	if h.full != nil || instanceGUID != "instance" {
		return nil, fmt.Errorf("%s: %w", instanceGUID, h.full)
	}
	ours, theirs, err := socketPair()
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	h.conns = append(h.conns, theirs)
	h.mu.Unlock()
	go func() {
		config := &ssh.ServerConfig{NoClientAuth: true}
		config.AddHostKey(newKey(h.t))
		_, channels, requests, err := ssh.NewServerConn(theirs, config)
		if err != nil {
			return
		}
		go ssh.DiscardRequests(requests)
		for c := range channels {
			go h.inside(c)
		}
	}()
	return ours, nil
}

// socketPair is a connection's two ends. Those of net.Pipe would wait for each
// other: both begin with what they have to say.
func socketPair() (a, b net.Conn, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	defer l.Close()
	if a, err = net.Dial("tcp", l.Addr().String()); err != nil {
		return nil, nil, err
	}
	b, err = l.Accept()
	return a, b, err
}

// dial connects as `cf:app/<index>`.
func (h *harness) dial(user, code string) (c *ssh.Client, banner string, err error) {
	h.t.Helper()
	c, err = ssh.Dial("tcp", h.addr, &ssh.ClientConfig{User: user, Auth: []ssh.AuthMethod{ssh.Password(code)},
		BannerCallback:  func(text string) error { banner += text; return nil },
		HostKeyCallback: ssh.FixedHostKey(h.proxy.HostKey.PublicKey())})
	if err == nil {
		h.t.Cleanup(func() { c.Close() })
	}
	return c, strings.TrimSpace(banner), err
}

func (h *harness) enter() *ssh.Client {
	h.t.Helper()
	c, banner, err := h.dial("cf:app/0", "developer")
	if err != nil {
		h.t.Fatal(err, banner)
	}
	return c
}

// events are those of the app: type, actor and index.
func (h *harness) events() (all []string) {
	h.t.Helper()
	err := h.store.Read(context.Background(), func(tx *store.Tx) error {
		events, err := store.Events.All(tx)
		for _, e := range events {
			all = append(all, fmt.Sprint(e.Type, " ", e.Actor.Name, " ", e.Data["index"], " ", e.TargetGUID, e.SpaceGUID, e.OrgGUID))
		}
		return err
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return all
}

func TestWhoMayEnter(t *testing.T) {
	const no, yes = "audit.app.ssh-unauthorized", "audit.app.ssh-authorized"
	app := func(f func(*cf.App)) func(*store.Tx) error {
		return func(tx *store.Tx) error {
			a, err := store.Apps.Get(tx, "app")
			if err != nil {
				return err
			}
			f(a)
			return store.Apps.Update(tx, a)
		}
	}
	space := func(tx *store.Tx) error {
		s, err := store.Spaces.Get(tx, "space")
		if err != nil {
			return err
		}
		s.AllowSSH = false
		return store.Spaces.Update(tx, s)
	}
	suspended := func(tx *store.Tx) error {
		o, err := store.Orgs.Get(tx, "org")
		if err != nil {
			return err
		}
		o.Suspended = true
		return store.Orgs.Update(tx, o)
	}
	off := app(func(a *cf.App) { a.SSHEnabled = false })
	tests := []struct {
		name, user, code string
		change           func(*store.Tx) error
		banner, event    string
	}{
		{"developer", "cf:app/0", "developer", nil, "", yes},
		{"admin", "cf:app/0", "admin", nil, "", yes},
		{"supporter", "cf:app/0", "supporter", nil, errApp.Error(), no},
		{"manager", "cf:app/0", "manager", nil, errApp.Error(), no},
		{"auditor", "cf:app/0", "auditor", nil, errApp.Error(), no},
		{"org manager", "cf:app/0", "orgmanager", nil, errApp.Error(), no},
		{"without roles", "cf:app/0", "nobody", nil, errApp.Error(), no},
		{"wrong code", "cf:app/0", "wrong", nil, errCode.Error(), no},
		{"app off", "cf:app/0", "developer", off, "ssh is disabled for app", no},
		{"app off for an admin", "cf:app/0", "admin", off, "ssh is disabled for app", no},
		{"app off is not told to strangers", "cf:app/0", "nobody", off, errApp.Error(), no},
		{"space off", "cf:app/0", "developer", space, "ssh is disabled for space 'dev'", no},
		{"org suspended", "cf:app/0", "developer", suspended, "the organization is suspended", no},
		{"org suspended for an admin", "cf:app/0", "admin", suspended, "", yes},
		{"starting", "cf:app/1", "developer", nil, "the instance is not running", yes},
		{"no such instance", "cf:app/7", "developer", nil, "the instance is not running", yes},
		{"stopped and started since", "cf:app/0", "developer", app(func(a *cf.App) { a.Rev++ }), "the instance is not running", yes},
		{"no such process", "cf:other/0", "admin", nil, errApp.Error(), ""},
		{"no such process, wrong code", "cf:other/0", "wrong", nil, errCode.Error(), ""},
		{"no user name of ours", "root", "admin", nil, errLogin.Error(), ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			h := newHarness(t)
			if test.change != nil {
				h.write(test.change)
			}
			_, banner, err := h.dial(test.user, test.code)
			if (err == nil) != (test.banner == "") || banner != test.banner {
				t.Errorf("got %v, %q; want %q", err, banner, test.banner)
			}
			var want []string
			if test.event != "" {
				actor := test.code
				if actor == "wrong" {
					actor = "unknown-user-email"
				}
				want = []string{test.event + " " + actor + " " + test.user[len(test.user)-1:] + " appspaceorg"}
			}
			if diff := cmp.Diff(want, h.events()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestGuessesEnd(t *testing.T) {
	h := newHarness(t)
	tries := 0
	_, err := ssh.Dial("tcp", h.addr, &ssh.ClientConfig{User: "cf:app/0", HostKeyCallback: ssh.FixedHostKey(h.proxy.HostKey.PublicKey()),
		Auth: []ssh.AuthMethod{ssh.RetryableAuthMethod(ssh.PasswordCallback(func() (string, error) { tries++; return "wrong", nil }), 100)}})
	if err == nil || tries > maxTries {
		t.Errorf("got %v after %d tries; want an end after %d", err, tries, maxTries)
	}
	for range strangersLimit {
		h.dial("cf:app/0", "wrong")
	}
	if n := len(h.events()); n != strangersLimit {
		t.Errorf("got %d events; want %d and no more", n, strangersLimit)
	}
}

// echo is a program that says its arguments and its input back, on both
// streams, and ends with 7.
func echo(c ssh.NewChannel) {
	if c.ChannelType() != "session" {
		c.Reject(ssh.ConnectionFailed, "no "+string(c.ExtraData()))
		return
	}
	channel, requests, err := c.Accept()
	if err != nil {
		return
	}
	for r := range requests {
		r.Reply(r.Type != "refused", nil)
		if r.Type != "exec" {
			fmt.Fprintln(channel.Stderr(), r.Type)
			continue
		}
		go func() {
			io.Copy(channel, channel)
			channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Code uint32 }{7}))
			channel.Close()
		}()
	}
}

func TestSessionsArePassedOn(t *testing.T) {
	h := newHarness(t)
	h.inside = echo
	c := h.enter()
	var all sync.WaitGroup
	for range 10 {
		s, err := c.NewSession()
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			var out, errs bytes.Buffer
			text := strings.Repeat("0123456789", 500_000)
			s.Stdin, s.Stdout, s.Stderr = strings.NewReader(text), &out, &errs
			accepted, err := s.SendRequest("accepted", true, nil)
			refused, err2 := s.SendRequest("refused", true, nil)
			if err := errors.Join(err, err2); err != nil || !accepted || refused {
				t.Errorf("got %v, %v, %v; want the container's answers", accepted, refused, err)
			}
			exit, ok := errors.AsType[*ssh.ExitError](s.Run("anything"))
			if !ok || exit.ExitStatus() != 7 || out.String() != text || errs.String() != "accepted\nrefused\n" {
				t.Errorf("got %v, %d bytes, %q; want the end and all before it", exit, out.Len(), errs.String())
			}
		})
	}
	all.Wait()
	refused, ok := errors.AsType[*ssh.OpenChannelError](open(c, "direct-tcpip", "payload"))
	if !ok || refused.Reason != ssh.ConnectionFailed || refused.Message != "no payload" {
		t.Errorf("got %v; want the container's reason", refused)
	}
	if refused, ok = errors.AsType[*ssh.OpenChannelError](open(c, "x11", "")); !ok || refused.Reason != ssh.UnknownChannelType {
		t.Errorf("got %v; want no other channels", refused)
	}
	c.Close()
	h.eventually(func() bool {
		return slices.Equal(h.lines, []string{"app/0 SSH Successful remote access by ", "app/0 SSH Remote access ended for "})
	})
}

func open(c *ssh.Client, kind, payload string) error {
	channel, _, err := c.OpenChannel(kind, []byte(payload))
	if err == nil {
		channel.Close()
	}
	return err
}

func (h *harness) eventually(ok func() bool) {
	h.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; <-time.After(5 * time.Millisecond) {
		h.mu.Lock()
		done := ok()
		h.mu.Unlock()
		if done {
			return
		}
		if time.Now().After(deadline) {
			h.t.Fatal("it did not happen within a minute")
		}
	}
}

func TestChannelsAreLimited(t *testing.T) {
	h := newHarness(t)
	h.inside = echo
	c := h.enter()
	for n := range maxChannels {
		if _, err := c.NewSession(); err != nil {
			t.Fatalf("session %d: %v", n, err)
		}
	}
	_, err := c.NewSession()
	if refused, ok := errors.AsType[*ssh.OpenChannelError](err); !ok || refused.Reason != ssh.ResourceShortage {
		t.Errorf("got %v; want one too many to be refused", err)
	}
}

// Strangers who say nothing do not keep users out, and a user with many sessions
// leaves room for others.
func TestFloodsLeaveRoom(t *testing.T) {
	h := newHarness(t)
	h.inside = echo
	for range 4 * maxConnections {
		c, err := net.Dial("tcp", h.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	h.enter()
	if n := h.proxy.greeting.Len(); n > h.proxy.greeting.Limit() {
		t.Errorf("%d strangers are connected", n)
	}
	for h.proxy.users.Take("developer") {
		continue
	}
	c, _, err := h.dial("cf:app/0", "developer")
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.NewSession()
	if refused, ok := errors.AsType[*ssh.OpenChannelError](err); !ok || !strings.Contains(refused.Message, errMany.Error()) {
		t.Errorf("got %v; want one too many to be refused", err)
	}
	if c, _, err = h.dial("cf:app/0", "admin"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.NewSession(); err != nil {
		t.Errorf("another user: %v", err)
	}
}

func TestSessionsEnd(t *testing.T) {
	for name, end := range map[string]func(*harness){
		"with the instance": func(h *harness) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.conns[0].Close()
		},
		"with the daemon": func(h *harness) { h.stop() },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			h.inside = echo
			s, err := h.enter().NewSession()
			if err != nil {
				t.Fatal(err)
			}
			in, _ := s.StdinPipe()
			defer in.Close()
			if err := s.Start("anything"); err != nil {
				t.Fatal(err)
			}
			end(h)
			if _, ok := errors.AsType[*ssh.ExitMissingError](s.Wait()); !ok {
				t.Error("got an end that the program did not have")
			}
		})
	}
}

// killedAtOnce is a container in which each command is killed after a word.
func killedAtOnce(c ssh.NewChannel) {
	channel, requests, err := c.Accept()
	if err != nil {
		return
	}
	for r := range requests {
		_ = r.Reply(true, nil)
		_, _ = io.WriteString(channel.Stderr(), "oops\n")
		_, _ = channel.SendRequest("exit-signal", false, ssh.Marshal(struct {
			Signal string
			Core   bool
			Error  string
			Lang   string
		}{Signal: "KILL"}))
		_ = channel.Close()
	}
}

// TestCommandsThatEndAtOnce wants the end of commands, and all that they said, whose
// container is quicker to end them than the proxy to pass on that they began.
func TestCommandsThatEndAtOnce(t *testing.T) {
	h := newHarness(t)
	h.inside = killedAtOnce
	c := h.enter()
	for range 500 {
		s, err := c.NewSession()
		if err != nil {
			t.Fatal(err)
		}
		var errs bytes.Buffer
		s.Stderr = &errs
		err = s.Run("anything")
		if exit, ok := errors.AsType[*ssh.ExitError](err); !ok || exit.Signal() != "KILL" || errs.String() != "oops\n" {
			t.Fatalf("got %v, %q; want an end by KILL, and what was said before", err, &errs)
		}
	}
}

func TestContainersThatCannotBeEntered(t *testing.T) {
	h := newHarness(t)
	h.full = errors.New("no room")
	_, err := h.enter().NewSession()
	if err == nil || !strings.Contains(err.Error(), "no room") {
		t.Errorf("got %v; want the reason", err)
	}
}
