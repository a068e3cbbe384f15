package executor

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cupola/server/config"
	"cupola/server/datadir"
)

// The settings of TLS ports by the flags: whom they let in.
func TestTLSPorts(t *testing.T) {
	dir := t.TempDir()
	d, err := datadir.Open(dir, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	own, err := d.Authority()
	if err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(dir, "other.pem")
	if err := os.WriteFile(other, append([]byte("a comment\n"), own.Trust()...), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		config config.Config
		cas    int // certificates of authorities; -1: clients need none
		names  []string
	}{
		"on":           {config.Config{InstanceTLS: "on"}, -1, nil},
		"mutual":       {config.Config{InstanceTLS: "mutual"}, 1, []string{"gorouter.service.cf.internal"}},
		"with a CA":    {config.Config{InstanceTLS: "mutual", InstanceTLSCAs: []string{other}}, 2, nil},
		"with a name":  {config.Config{InstanceTLS: "mutual", InstanceTLSCAs: []string{other}, InstanceTLSNames: []string{"n"}}, 2, []string{"gorouter.service.cf.internal", "n"}},
		"with two CAs": {config.Config{InstanceTLS: "mutual", InstanceTLSCAs: []string{other, other}}, 3, nil},
	} {
		x := &Executor{Config: &c.config, Dir: d}
		got, err := x.tlsPorts()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		cas := -1
		if got.ClientCAs != nil {
			cas = strings.Count(string(got.ClientCAs()), "BEGIN CERTIFICATE")
		}
		if cas != c.cas || !slices.Equal(got.ClientNames, c.names) {
			t.Errorf("%s: got %d authorities, names %q", name, cas, got.ClientNames)
		}
	}
	if got, err := (&Executor{Config: &config.Config{InstanceTLS: "off"}}).tlsPorts(); got != nil || err != nil {
		t.Errorf("off: got %v, %v", got, err)
	}
	for _, bad := range []string{filepath.Join(dir, "missing"), dir, os.Args[0]} {
		x := &Executor{Config: &config.Config{InstanceTLS: "mutual", InstanceTLSCAs: []string{bad}}, Dir: d}
		if _, err := x.tlsPorts(); err == nil || !strings.HasPrefix(err.Error(), "invalid --instance-tls-ca: ") {
			t.Errorf("%s: got %v", bad, err)
		}
	}
}
