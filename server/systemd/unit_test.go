package systemd

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func testService(command ...string) Service {
	return Service{Command: command, DataDir: "/var/lib/cup \"ola\"", Sockets: []Socket{{"http", "127.0.0.1:8080"}, {"https", "[::1]:8443"}, {"ssh", "127.0.0.1:2222"}}}
}

func TestUnits(t *testing.T) {
	units := testService("/usr/local/bin/cupola", "serve", "--domain", "a b%$\"'").Units()
	names := slices.Sorted(maps.Keys(units))
	if want := []string{"cupola-http.socket", "cupola-https.socket", "cupola-ssh.socket", "cupola.service", "cupola.slice"}; !slices.Equal(names, want) || len(AllUnits()) != len(want) {
		t.Errorf("got %q; want %q", names, want)
	}
	service := units[ServiceUnit]
	for _, want := range []string{
		"\nType=notify\n", "\nKillMode=process\n", "\nDelegate=yes\n", "\nSlice=cupola.slice\n", "\nRestart=always\n", "\nWatchdogSec=60\n", "\nFileDescriptorStoreMax=65535\n",
		"\nSockets=cupola-http.socket cupola-https.socket cupola-ssh.socket\n",
		"\nExecStart=/usr/local/bin/cupola serve --domain \"a b%%$$\\\"'\"\n",
	} {
		if !strings.Contains(service, want) {
			t.Errorf("%q is missing in\n%s", want, service)
		}
	}
	if dir, err := DataDirOf(service); err != nil || dir != `/var/lib/cup "ola"` {
		t.Errorf("got %q, %v", dir, err)
	}
	if _, err := DataDirOf("[Service]\n"); err == nil {
		t.Error("a unit of somebody else's was taken")
	}
	if s := units["cupola-https.socket"]; !strings.Contains(s, "\nListenStream=[::1]:8443\nFileDescriptorName=https\nService=cupola.service\n") {
		t.Errorf("got\n%s", s)
	}
	// The containers' mounts would go with a mount namespace, and apps inherit
	// filters of system calls.
	for line := range strings.Lines(service) {
		for _, no := range []string{"Protect", "Private", "ReadOnly", "TemporaryFileSystem", "RootDirectory", "SystemCall", "Restrict", "LockPersonality", "MemoryDeny", "NoNewPrivileges", "UMask"} {
			if strings.HasPrefix(line, no) && strings.Contains(line, "=") && !strings.HasPrefix(line, "Restart") {
				t.Errorf("%q does harm", line)
			}
		}
	}
}

// TestSystemdTakesTheUnits asks systemd itself, where it is installed.
func TestSystemdTakesTheUnits(t *testing.T) {
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("there is no systemd-analyze")
	}
	dir := t.TempDir()
	args := []string{"verify", "--man=no"}
	for name, text := range testService("/bin/true", "a b").Units() {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, file)
	}
	out, err := exec.Command("systemd-analyze", args...).CombinedOutput()
	if err != nil || strings.Contains(string(out), "cupola") {
		t.Errorf("%v\n%s", err, out)
	}
}
