package cell

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"cupola/runtime/container"
	"cupola/runtime/contract"
	"cupola/runtime/lrp"
)

func withTLSPorts(c *Cell) {
	c.cfg.TLSPorts = &TLSPorts{ClientCAs: func() []byte { return []byte("clients") }, ClientNames: []string{"gorouter"}}
}

// settings are those of a container's TLS ports.
func (m *machine) settings(t *testing.T, id string) (s contract.ProxyConfig) {
	t.Helper()
	if err := json.Unmarshal([]byte(m.bindings(id)["proxy/config.json"]), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

// An instance's ports have TLS ports, whose certificates are renewed and follow the
// names that lead to the instance, whichever daemon is there.
func TestTLSPorts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, dir := newMachine(t), t.TempDir()
		m.issuer = &fakeIssuer{}
		d := boot(t, m, dir, withTLSPorts)
		spec := web()
		spec.OrganizationalUnits, spec.Ports = []string{"app:a"}, []uint16{8080, 9090}
		d.Start(spec)
		<-time.After(time.Second)
		want := contract.ProxyConfig{
			Address: "10.200.0.1", Ports: map[uint16]uint16{61001: 8080, 61443: 8080, 61002: 9090},
			Certificate: "1 g1 10.200.0.1 [app:a]", Key: "key", InternalCertificate: "1 g1 [app:a] []", ClientCAs: "clients", ClientNames: []string{"gorouter"},
		}
		if diff := cmp.Diff(want, m.settings(t, "g1")); diff != "" {
			t.Error(diff)
		}
		const ports = `CF_INSTANCE_PORTS=[{"external":8080,"internal":8080,"external_tls_proxy":61001,"internal_tls_proxy":61001},` +
			`{"external":8080,"internal":8080,"internal_tls_proxy":61443},{"external":9090,"internal":9090,"external_tls_proxy":61002,"internal_tls_proxy":61002}]`
		if env := m.specs[0].Process.Env; !slices.Contains(env, ports) {
			t.Errorf("got %v; want %s", env, ports)
		}
		if got := m.specs[0].TLSPorts; !slices.Equal(got, []uint16{61001, 61443, 61002}) {
			t.Errorf("the init listens at %v", got)
		}
		d.SetInternalNames(map[string][]string{"g1": {"back.apps.internal"}, "other": {"x"}})
		want.InternalCertificate = "1 g1 [app:a] [back.apps.internal]"
		if diff := cmp.Diff(want, m.settings(t, "g1")); diff != "" {
			t.Error(diff)
		}
		d.kill()
		<-time.After(48 * time.Hour)
		d = boot(t, m, dir)
		defer d.kill()
		<-time.After(time.Second)
		want.Certificate, want.InternalCertificate, want.ClientCAs, want.ClientNames = "2 g1 10.200.0.1 [app:a]", "2 g1 [app:a] [back.apps.internal]", "", nil
		if diff := cmp.Diff(want, m.settings(t, "g1")); diff != "" {
			t.Error("after the end of the first certificate, by a daemon that gives new instances no TLS ports and knows no names yet:", diff)
		}
		d.SetInternalNames(map[string][]string{})
		if got := m.settings(t, "g1").InternalCertificate; got != "2 g1 [app:a] []" {
			t.Errorf("got %s; want the name gone", got)
		}
		if got := d.Containers(); len(got) != 1 || !got[0].TLSPorts {
			t.Errorf("got %+v", got)
		}
	})
}

// Who has TLS ports, and who has none.
func TestWhoHasTLSPorts(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*lrp.Container)
		tls    bool
	}{
		"an app":                    {func(*lrp.Container) {}, true},
		"without organization":      {func(c *lrp.Container) { c.OrganizationalUnits = nil }, true},
		"without ports":             {func(c *lrp.Container) { c.Ports = nil }, false},
		"a task":                    {func(c *lrp.Container) { c.Kind = lrp.KindTask }, false},
		"one of a pod":              {func(c *lrp.Container) { c.Pod = "p" }, false},
		"a port that is a TLS port": {func(c *lrp.Container) { c.Ports = []uint16{61443} }, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			m := newMachine(t)
			m.issuer = &fakeIssuer{}
			d := boot(t, m, t.TempDir(), withTLSPorts)
			defer d.kill()
			spec := web()
			spec.OrganizationalUnits, spec.Ports = []string{"app:a"}, []uint16{8080}
			c.change(&spec)
			d.Start(spec)
			<-time.After(time.Second)
			if slices.Equal(spec.Ports, []uint16{61443}) {
				if e := d.last(t); len(m.specs) > 0 || !strings.HasSuffix(e.Exit.Reason, "port 61443 is reserved for container networking") {
					t.Errorf("%s: got %+v", name, e)
				}
				return
			}
			_, settings := m.bindings("g1")["proxy/config.json"]
			mounted := slices.ContainsFunc(m.specs[0].Mounts, func(m container.Mount) bool { return m.Destination == contract.ProxyDir && m.ReadOnly })
			if got := len(m.specs[0].TLSPorts) > 0; got != c.tls || settings != c.tls || mounted != c.tls {
				t.Errorf("%s: got ports %v, settings %v, mounted %v; want %v", name, got, settings, mounted, c.tls)
			}
			env := strings.Join(m.specs[0].Process.Env, " ")
			if own := len(spec.OrganizationalUnits) > 0; strings.Contains(env, "CF_INSTANCE_CERT=") != own {
				t.Errorf("%s: got %s", name, env)
			}
		})
	}
}
