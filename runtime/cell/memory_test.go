package cell

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"cupola/runtime/identity"
	"cupola/runtime/lrp"
)

func TestSetLogTags(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, dir := newMachine(t), t.TempDir()
		d := boot(t, m, dir)
		spec := web()
		spec.Log.Tags = map[string]string{"app_name": "shop"}
		d.Start(spec)
		synctest.Wait()
		old := d.LogTags("g1")
		if err := d.setLogTags("g1", map[string]string{"app_name": "store"}); err != nil {
			t.Error(err)
		}
		d.kill()
		d = boot(t, m, dir)
		defer d.kill()
		now := d.LogTags("g1")
		if old["app_name"] != "shop" || now["app_name"] != "store" {
			t.Errorf("got %v, and %v after a restart of the daemon", old, now)
		}
		for _, s := range d.Containers() {
			if s.LogTags["app_name"] != "store" {
				t.Errorf("the container's status has %v", s.LogTags)
			}
		}
		if err := d.setLogTags("g3", nil); !errors.Is(err, errNotRunning) || d.LogTags("g3") != nil {
			t.Errorf("got %v; want %v", err, errNotRunning)
		}
	})
}

// TestAddressMark is filled in in files, arguments and the environment.
func TestAddressMark(t *testing.T) {
	b := &build{instance: &instance{}, full: lrp.Container{RunInfo: lrp.RunInfo{AddressMark: "@IP@"}}}
	b.rec.Address = "10.0.0.7"
	given := []lrp.File{{Path: "a", Content: []byte("@IP@:1 and @IP@"), Program: true}}
	if diff := cmp.Diff([]lrp.File{{Path: "a", Content: []byte("10.0.0.7:1 and 10.0.0.7"), Program: true}}, b.addressed(given)); diff != "" || string(given[0].Content) != "@IP@:1 and @IP@" {
		t.Errorf("(-want +got):\n%s\nwhat was given: %s", diff, given[0].Content)
	}
	if diff := cmp.Diff([]string{"x", "--bind", "10.0.0.7:2"}, b.arguments(&lrp.Run{Path: "x", Args: []string{"--bind", "@IP@:2"}})); diff != "" {
		t.Error(diff)
	}
	b.full.AddressMark = ""
	if got := b.withAddress("@IP@"); got != "@IP@" {
		t.Errorf("got %q; want a text without a mark as it is", got)
	}
}

func TestSetFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, dir := newMachine(t), t.TempDir()
		d := boot(t, m, dir)
		spec := web()
		spec.Files = []lrp.File{{Path: "a", Content: []byte("1")}}
		spec.Action.Run.Files = []lrp.File{{Path: "b", Content: []byte("of the action")}}
		d.Start(spec)
		none := web()
		none.GUID = "g2"
		d.Start(none)
		synctest.Wait()
		want := map[string]string{"bindings/a": "1", "bindings/b": "of the action"}
		if diff := cmp.Diff(want, m.bindings("g1")); diff != "" {
			t.Error(diff)
		}
		mounts := 0
		for _, s := range m.specs {
			for _, mount := range s.Mounts {
				if mount.Destination == lrp.FilesPath && s.ID == "g1" && mount.ReadOnly && mount.NoExec {
					mounts++
				}
			}
		}
		if mounts != 1 {
			t.Errorf("got %d mounts of files; want one, read-only", mounts)
		}
		d.kill()
		d = boot(t, m, dir)
		defer d.kill()
		if err := d.setFiles("g1", []lrp.File{{Path: "a", Content: []byte("2")}}); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(map[string]string{"bindings/a": "2"}, m.bindings("g1")); diff != "" {
			t.Error(diff)
		}
		if err := d.setFiles("g2", nil); !errors.Is(err, errNoFiles) {
			t.Errorf("got %v; want %v", err, errNoFiles)
		}
		if err := d.setFiles("g3", nil); !errors.Is(err, errNotRunning) {
			t.Errorf("got %v; want %v", err, errNotRunning)
		}
	})
}

// bindings are the files that a container sees.
func (m *machine) bindings(id string) map[string]string {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := map[string]string{}
	for name, content := range m.memories[id] {
		if name != "own/"+programFile {
			all[name] = string(content)
		}
	}
	return all
}

// fakeIssuer counts what it issues.
type fakeIssuer struct{ issued atomic.Int32 }

func (f *fakeIssuer) Issue(s identity.Subject) (identity.Credentials, error) {
	text := fmt.Sprintf("%d %s %s %v", f.issued.Add(1), s.InstanceGUID, s.Address, s.OrganizationalUnits)
	return identity.Credentials{Certificate: []byte(text), Key: []byte("key"), NotAfter: time.Now().Add(identity.DefaultLife)}, nil
}

func (f *fakeIssuer) IssueLight(s identity.Subject) (identity.Credentials, error) {
	c, err := f.Issue(s)
	c.Key = []byte("light key")
	return c, err
}

func (f *fakeIssuer) IssueServer(s identity.Subject) (identity.Credentials, error) {
	text := fmt.Sprintf("%d server %v", f.issued.Add(1), s.Names)
	return identity.Credentials{Certificate: []byte(text), Key: []byte("key"), NotAfter: time.Now().Add(30 * identity.DefaultLife)}, nil
}

func (*fakeIssuer) Certify(s identity.Subject, of []byte) ([]byte, error) {
	return fmt.Appendf(nil, "%.1s %s %v %v", of, s.InstanceGUID, s.OrganizationalUnits, s.Names), nil
}

func (*fakeIssuer) Certificate() []byte { return []byte("authority") }

func (*fakeIssuer) RenewBefore() time.Duration { return 30 * time.Minute }

func (*fakeIssuer) RenewServerBefore() time.Duration {
	return 29*identity.DefaultLife + 30*time.Minute
}

// TestServerCertificate is renewed each day, is good for a month, and has the names of the servers.
func TestServerCertificate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, dir := newMachine(t), t.TempDir()
		m.issuer = &fakeIssuer{}
		d := boot(t, m, dir)
		spec := web()
		spec.ServerNames = []string{"g.services.internal"}
		d.Start(spec)
		until := func() (times []time.Duration) {
			for _, s := range d.Containers() {
				times = append(times, time.Until(s.ServerCertificateUntil).Round(time.Hour))
			}
			return times
		}
		synctest.Wait()
		if got := m.bindings("g1"); got["credentials/instance.crt"] != "1 server [g.services.internal]" || got["credentials/instance.key"] == "" {
			t.Errorf("got %v", got)
		}
		if got := until(); !slices.Equal(got, []time.Duration{30 * 24 * time.Hour}) {
			t.Errorf("got %v", got)
		}
		d.kill()
		<-time.After(24 * time.Hour)
		d = boot(t, m, dir)
		defer d.kill()
		<-time.After(time.Second)
		if got := m.bindings("g1")["credentials/instance.crt"]; got != "2 server [g.services.internal]" || !slices.Equal(until(), []time.Duration{30 * 24 * time.Hour}) {
			t.Errorf("got %s, %v; want it renewed by the next daemon", got, until())
		}
	})
}

// A certificate is replaced half an hour before it ends, whichever daemon is
// there.
func TestCertificateIsRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, dir, issuer := newMachine(t), t.TempDir(), &fakeIssuer{}
		m.issuer = issuer
		d := boot(t, m, dir)
		spec := web()
		spec.OrganizationalUnits, spec.SystemCertificatesPath = []string{"app:a"}, "/etc/trust"
		d.Start(spec)
		<-time.After(23*time.Hour + 29*time.Minute)
		want := map[string]string{"credentials/instance.crt": "1 g1 10.200.0.1 [app:a]", "credentials/instance.key": "key", "authority/trusted-ca-1.crt": "authority"}
		if diff := cmp.Diff(want, m.bindings("g1")); diff != "" {
			t.Error(diff)
		}
		<-time.After(2 * time.Minute)
		if issuer.issued.Load() != 2 {
			t.Errorf("got %d certificates; want a second one", issuer.issued.Load())
		}
		d.kill()
		<-time.After(48 * time.Hour)
		d = boot(t, m, dir)
		defer d.kill()
		<-time.After(time.Second)
		if issuer.issued.Load() != 3 || m.bindings("g1")["credentials/instance.crt"] != "3 g1 10.200.0.1 [app:a]" {
			t.Errorf("got %d certificates, %v; want a new one of the next daemon", issuer.issued.Load(), m.bindings("g1"))
		}
		env := m.specs[0].Process.Env
		for _, want := range []string{"CF_INSTANCE_CERT=/etc/cf-instance-credentials/instance.crt", "CF_INSTANCE_KEY=/etc/cf-instance-credentials/instance.key", "CF_SYSTEM_CERT_PATH=/etc/trust"} {
			found := false
			for _, v := range env {
				found = found || v == want
			}
			if !found {
				t.Errorf("got %v; want %s", env, want)
			}
		}
	})
}
