package container

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// needConnector skips a test where the kernel does not tell this process.
func needConnector(t testing.TB) {
	t.Helper()
	needRoot(t)
	socket, err := openConnector()
	if err != nil {
		t.Skip("no process connector outside the machine's first namespaces:", err)
	}
	socket.Close()
}

// orphan starts a program that is not a child of this process, and ends its input
// with end.
func orphan(t testing.TB, args ...string) (pid int, end func()) {
	t.Helper()
	input, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	cmd := exec.Command("/bin/sh", append([]string{"-c", `"$@" <&3 >/dev/null 2>&1 3<&- & echo $!`, "sh"}, args...)...)
	cmd.ExtraFiles = []*os.File{input}
	out, err := cmd.Output()
	input.Close()
	if err != nil {
		t.Fatal(err)
	}
	pid, err = strconv.Atoi(string(bytes.TrimSpace(out)))
	if err != nil {
		t.Fatal(err)
	}
	return pid, func() { w.Close() }
}

func TestConnectorTellsExits(t *testing.T) {
	needConnector(t)
	probe := filepath.Join(tempDir(t), "probe")
	build(t, "./testdata/probe", probe)
	tests := []struct {
		name string
		args []string
		kill syscall.Signal
		want Exit
	}{
		{"good", []string{"cat"}, 0, Exit{Known: true}},
		{"code", []string{"sh", "-c", "cat; exit 7"}, 0, Exit{Code: 7, Known: true}},
		{"signal", []string{"cat"}, syscall.SIGKILL, Exit{Code: 137, Signal: 9, Known: true}},
		{"many threads", []string{probe, "lines"}, syscall.SIGKILL, Exit{Code: 137, Signal: 9, Known: true}},
		{"first thread leaves", []string{probe, "leave"}, 0, Exit{Code: 5, Known: true}},
	}
	c := newConnector("6.1.0-18-amd64", true, slog.New(slog.DiscardHandler))
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for range 10 {
				pid, end := orphan(t, tt.args...)
				p, err := c.open(pid, 0)
				if err != nil {
					t.Fatal(err)
				}
				if tt.name == "first thread leaves" {
					eventually(t, func() string { return living(p) })
				}
				if tt.kill != 0 {
					_ = p.signal(tt.kill)
				}
				end()
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				got, err := p.wait(ctx)
				cancel()
				if got != tt.want || err != nil {
					t.Fatalf("got %+v, %v; want %+v", got, err, tt.want)
				}
				if p.connector == nil {
					t.Error("got the exit by other ways than the connector")
				}
			}
		})
	}
	eventually(t, func() string {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.socket != nil || len(c.held) > 0 {
			return "a connector without listeners"
		}
		return ""
	})
}

// living says that the first thread of p has not ended.
func living(p *process) string {
	if s, err := readStat(p.pid); err == nil && s.zombie {
		return ""
	}
	return "the first thread"
}

func TestConnectorIsAskedWhereAPidfdIsSilent(t *testing.T) {
	for release, needless := range map[string]bool{"6.1.0-18-amd64": false, "6.14.11": false, "6.15.0": true, "7.0": true, "": false} {
		if got := newConnector(release, false, nil).unused; got != needless {
			t.Errorf("%s: got %t; want %t", release, got, needless)
		}
	}
}

func TestExitOfCorpse(t *testing.T) {
	cmd := exec.Command("/bin/sh", "-c", "exit 7")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	started, err := startTicks(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	var info unix.Siginfo
	if err := unix.Waitid(unix.P_PID, cmd.Process.Pid, &info, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
		t.Fatal(err)
	}
	if got, want := exitOfCorpse(cmd.Process.Pid, started), (Exit{Code: 7, Known: true}); got != want {
		t.Errorf("got %+v; want %+v", got, want)
	}
	_ = cmd.Wait()
	if got := exitOfCorpse(cmd.Process.Pid, started); got.Known {
		t.Errorf("got %+v of one that was reaped", got)
	}
}
