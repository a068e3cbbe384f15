package restart

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"cupola/test/e2e"
)

// TestTop looks at what an app uses while it answers requests: as JSON, as text and on a
// terminal of 80 columns.
func TestTop(t *testing.T) {
	t.Parallel()
	d := e2e.StartDaemon(t, e2e.NeedBinary(t))
	dir := t.TempDir()
	for file, text := range map[string]string{"manifest.yml": "applications:\n- name: server\n  stack: host\n  memory: 64M\n  buildpacks: [binary_buildpack]\n  command: python3 -m http.server $PORT\n", "index.html": "here"} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	must(d, "push", dir)
	defer load(d)()
	e2e.Eventually(t, time.Minute, func() string {
		var all []struct {
			Process   string
			Instances int
			CPU       float64 `json:"cpu_percent"`
			Memory    int64   `json:"memory_bytes"`
			Quota     int64   `json:"memory_quota_bytes"`
			Requests  float64 `json:"requests_per_second"`
		}
		text := must(d, "top", "--json", "--interval", "1s")
		if err := json.Unmarshal([]byte(text), &all); err != nil {
			t.Fatal(err, text)
		}
		if len(all) != 1 || all[0].Process != "cupola/dev/server" || all[0].Instances != 1 || all[0].Memory == 0 || all[0].Quota != 64<<20 || all[0].Requests < 1 || all[0].CPU <= 0 {
			return text
		}
		return ""
	})
	if out := must(d, "top", "--interval", "500ms"); !strings.Contains(out, "REQ/S") || !strings.Contains(out, "cupola/dev/server") || strings.Contains(out, "\x1b") {
		t.Errorf("without a terminal:\n%q", out)
	}
	if out, err := d.Run("top", "--interval", "1ms"); err == nil || !strings.Contains(out, "invalid --interval 1ms: give at least 500ms") {
		t.Errorf("got %v, %s", err, out)
	}
	onTerminalOf80(t, d)
}

// onTerminalOf80 presses keys.
func onTerminalOf80(t *testing.T, d *e2e.Daemon) {
	t.Helper()
	cmd := exec.Command(d.Binary, "top")
	cmd.Env = append(os.Environ(), "CUPOLA_API=http://"+d.Addr, "CUPOLA_PASSWORD="+e2e.AdminPassword)
	terminal := e2e.OnTerminal(t, cmd)
	if err := unix.IoctlSetWinsize(int(terminal.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80}); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var said strings.Builder
	go func() {
		for part := make([]byte, 4096); ; {
			n, err := terminal.Read(part)
			mu.Lock()
			said.Write(part[:n])
			mu.Unlock()
			if err != nil {
				return // it has ended
			}
		}
	}()
	screen := func() string {
		mu.Lock()
		defer mu.Unlock()
		return said.String()
	}
	shows := func(text string) {
		t.Helper()
		e2e.Eventually(t, time.Minute, func() string {
			if !strings.Contains(screen(), text) {
				return "the terminal does not show " + text + ":\n" + screen()
			}
			return ""
		})
	}
	press := func(key string) {
		t.Helper()
		if _, err := terminal.WriteString(key); err != nil {
			t.Fatal(err)
		}
	}
	shows("cupola/dev/server")
	press("m")
	shows("by memory")
	press("q")
	if err := cmd.Wait(); err != nil {
		t.Errorf("after q: %v", err)
	}
	shows("\x1b[?1049l") // the screen of before
	for line := range strings.SplitSeq(screen(), "\r\n") {
		if text, _, whole := strings.Cut(line, "\x1b[K"); whole && len([]rune(strings.TrimPrefix(text, "\x1b[H"))) > 80 && !strings.Contains(text, "\x1b[?") {
			t.Errorf("a line is longer than 80 columns: %q", text)
		}
	}
}

// load asks the app until stop.
func load(d *e2e.Daemon) (stop func()) {
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-end:
				return
			case <-time.After(20 * time.Millisecond):
				req, _ := http.NewRequest(http.MethodGet, "http://"+d.Addr+"/", nil)
				req.Host = "server.localhost"
				if res, err := http.DefaultClient.Do(req); err == nil {
					res.Body.Close()
				}
			}
		}
	}()
	return func() { close(end); <-ended }
}
