package push

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cupola/test/e2e"
)

// TestWhy pushes apps that do not start, and wants the cause at the end of the push, from cupola app why and, where a health
// check found nothing, in the crash event and the log.
func TestWhy(t *testing.T) {
	t.Parallel()
	d := e2e.SharedDaemon(t)
	for _, c := range []struct {
		name, command, files string // files: NAME, a line with its content
		limit                string
		want                 []string
		event                string
		details              string // of the stats, where the CLI's push ends
	}{
		{"wrong-port", "python3 -m http.server 9090", "", "64M", []string{"Cause: the app listens on 0.0.0.0:9090 and not on port 8080"}, "the app listens on 0.0.0.0:9090 and not on port 8080", "The health check failed: the app listens on 0.0.0.0:9090 and not on port 8080"},
		{"loopback", "python3 -m http.server --bind 127.0.0.1 $PORT", "", "64M", []string{"Cause: the app listens on 127.0.0.1:8080, which only its own container reaches"}, "it must listen on 0.0.0.0:8080", "The health check failed: the app listens on 127.0.0.1:8080"},
		{"no-port", "sleep 1000", "", "64M", []string{"Cause: the app listens on no port"}, "the app listens on no port", "The health check failed: the app listens on no port"},
		{"exits", "echo almost there; exit 3", "", "64M", []string{"Exit status 3: the program ended with its own error", "  almost there"}, "Exited with status 3", "Exited with status 3. Its last output: almost there"},
		{"oom", "python3 -c 'x = bytearray(200 << 20)'", "", "32M", []string{"signal 9: killed", "Cause: The app ran out of memory: its limit is 32M, its peak was 3"}, "(out of memory)", "The app ran out of memory: its limit is 32M"},
		{"interpreter", "./run", "#!/usr/bin/no-such-interpreter\n", "64M", []string{"Cause: The interpreter that the first line of ./run names", "Exit status 127"}, "Exited with status 12", "The interpreter that the first line of ./run names"},
		{"architecture", "./run", "\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\x15\x00\x01\x00\x00\x00" + strings.Repeat("\x00", 200), "64M", []string{"Exit status 126", "Cause: A program is built for another processor"}, "Exited with status 126", "Exited with status 126. A program is built for another processor"},
		{"command", "no-such-program --serve", "", "64M", []string{"Exit status 127: the command was not found", "Cause: The command no-such-program is missing"}, "Exited with status 127", "Exited with status 127. The command no-such-program is missing"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d, app, dir := d.On(t), "why-"+c.name, t.TempDir()
			content := c.files
			if content == "" {
				content = "not used"
			}
			timeout := 60 // s: on a busy machine, too, a program ends before
			if strings.Contains(c.event, "listen") {
				timeout = 5 // it must pass; a slow start is not seen in each of the crashes
			}
			manifest := fmt.Sprintf("applications:\n- name: %s\n  stack: host\n  buildpacks: [binary_buildpack]\n  command: %q\n  memory: %s\n  disk_quota: 64M\n  timeout: %d\n", app, c.command, c.limit, timeout)
			if err := os.WriteFile(filepath.Join(dir, "run"), []byte(content), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "manifest.yml"), []byte(manifest), 0o600); err != nil {
				t.Fatal(err)
			}
			pushed, err := d.Run("push", dir)
			if err == nil {
				t.Fatalf("the push succeeded:\n%s", pushed)
			}
			said, err := d.Run("app", "why", app)
			if err != nil {
				t.Fatalf("app why: %v\n%s", err, said)
			}
			for _, want := range c.want {
				for from, text := range map[string]string{"push": pushed, "app why": said} {
					if !strings.Contains(text, want) {
						t.Errorf("%s does not say %q:\n%s", from, want, text)
					}
				}
			}
			if got := details(d, app); !strings.Contains(got, c.details) {
				t.Errorf("the details of its instances are %q; want %q", got, c.details)
			}
			all := crashes(d, app)
			if !slices.ContainsFunc(all, func(e crash) bool { return strings.Contains(e.Data.Description, c.event) }) {
				t.Errorf("crash events are %+v; want %q", all, c.event)
			}
		})
	}
	t.Run("runs", func(t *testing.T) {
		t.Parallel()
		d := d.On(t)
		d.PushProbe("why-runs")
		if said, err := d.Run("app", "why", "why-runs"); err != nil || !strings.HasPrefix(said, "All instances run.") {
			t.Errorf("got %v, %s", err, said)
		}
	})
}

// details are those of an app's first instance.
func details(d *e2e.Daemon, app string) string {
	d.T.Helper()
	var stats struct{ Resources []struct{ Details string } }
	d.API("GET", "/v3/apps/"+d.App(app)+"/processes/web/stats", nil, &stats)
	if len(stats.Resources) == 0 {
		return ""
	}
	return stats.Resources[0].Details
}
