package push

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"cupola/server/doctor"
	"cupola/test/e2e"
)

// TestDoctorStartsContainers breaks something of the machine that containers need, in a mount namespace of the doctor's own,
// beside a running daemon.
func TestDoctorStartsContainers(t *testing.T) {
	t.Parallel()
	d := e2e.SharedDaemon(t)
	none := e2e.NewDir(t)
	t.Cleanup(func() { os.RemoveAll(none) })
	for _, c := range []struct{ name, script, level, detail, fix string }{
		{"nothing broken", "true", "ok", "minifs", ""},
		{"mounts below /usr", nestedMounts, "ok", "host, minifs", ""},
		{"read-only /proc/sys", "mount --bind /proc/sys /proc/sys; mount -o remount,ro,bind /proc/sys", "fail", "minifs does not start: network", "remount,rw /proc/sys"},
		{"no shell in /usr", "mount --bind /dev/null $(readlink -f /bin/sh)", "fail", "stack host does not start: its shell ended", "serve --debug"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, dir := range []string{d.Dir, filepath.Join(none, "d")} { // with its daemon, and of none
				got := resultFor(t, "containers", e2e.WithMounts(c.script, exec.Command(d.Binary, "doctor", "--json", "--data-dir", dir)))
				if got.Level != c.level || !strings.Contains(got.Detail, c.detail) || !strings.Contains(got.Fix, c.fix) {
					t.Errorf("%s: got %+v", dir, got)
				}
			}
		})
	}
	e2e.CheckLeaks(t, d.Binary, d.Dir)
	e2e.CheckLeaks(t, d.Binary, none)
}

type doctorResult struct{ Name, Level, Detail, Fix string }

// TestDoctorFindsTheDaemon of the data directory, wherever it listens, unless addresses are given.
func TestDoctorFindsTheDaemon(t *testing.T) {
	t.Parallel()
	d := e2e.SharedDaemon(t)
	for _, c := range []struct{ name, flag, want string }{
		{"http", "", d.Addr + ": cupola is running"},
		{"http", "--http=127.0.0.1:8080", "127.0.0.1:8080 is "},
		{"https", "", "as the running daemon listens"},
		{"https", "--https=127.0.0.1:8443", "127.0.0.1:8443 is "},
	} {
		cmd := exec.Command(d.Binary, "doctor", "--json", "--data-dir", d.Dir)
		if c.flag != "" {
			cmd.Args = append(cmd.Args, c.flag)
		}
		if got := resultFor(t, c.name, cmd); !strings.HasPrefix(got.Detail, c.want) {
			t.Errorf("%s %s: got %+v; want %q", c.name, c.flag, got, c.want)
		}
	}
}

// resultFor is what a doctor says of one thing.
func resultFor(t *testing.T, name string, cmd *exec.Cmd) doctorResult {
	t.Helper()
	out, err := cmd.Output() // exit code 1 says that something failed
	var all []doctorResult
	if jerr := json.Unmarshal(out, &all); jerr != nil {
		t.Fatalf("%v: %v\n%s", err, jerr, out)
	}
	for _, r := range all {
		if r.Name == name {
			if fails := err != nil; r.Level == doctor.Fail.String() && !fails {
				t.Error("doctor exits with 0")
			}
			return r
		}
	}
	t.Fatalf("no result for %s: %s", name, out)
	return doctorResult{}
}
