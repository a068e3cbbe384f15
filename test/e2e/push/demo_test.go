package push

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"cupola/test/e2e"
)

func TestDemoOnceLeavesNothing(t *testing.T) {
	demo(t, (*exec.Cmd).CombinedOutput, "--http", "127.0.0.1:0")
}

func TestDemoNeedsNoNetwork(t *testing.T) {
	demo(t, withoutNetwork)
}

func demo(t *testing.T, run func(*exec.Cmd) ([]byte, error), flags ...string) {
	t.Helper()
	binary, dir := e2e.NeedBinary(t), demoDir(t)
	out, err := run(exec.Command(binary, append([]string{"demo", "--once"}, flags...)...))
	if err != nil || !strings.Contains(string(out), "200 OK") {
		t.Fatalf("got %v\n%s", err, out)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
	e2e.CheckLeaks(t, binary, filepath.Join(dir, "cupola-demo-"))
}

// demoDir is where demos have their data directories until the test ends: other
// runs leave nothing there.
func demoDir(t *testing.T) string {
	t.Helper()
	dir := e2e.NewDir(t)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	t.Setenv("TMPDIR", dir)
	return dir
}

// withoutNetwork runs a command in a network namespace that has nothing but
// loopback.
func withoutNetwork(c *exec.Cmd) (out []byte, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if err = unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return
		}
		if err = netlink.LinkSetUp(&netlink.GenericLink{LinkAttrs: netlink.LinkAttrs{Name: "lo", Index: 1}}); err != nil {
			return
		}
		out, err = c.CombinedOutput()
	}()
	<-done
	return out, err
}

// terminalUser reads what a command prints on a terminal, and presses Ctrl-C.
type terminalUser struct {
	t        *testing.T
	terminal *os.File
	parts    chan string // printed and not yet seen; closed at the end
	said     string
}

func atTerminal(t *testing.T, c *exec.Cmd) *terminalUser {
	u := &terminalUser{t: t, terminal: e2e.OnTerminal(t, c), parts: make(chan string, 100)}
	go func() {
		defer close(u.parts)
		buf := make([]byte, 4096)
		for {
			n, err := u.terminal.Read(buf)
			u.parts <- string(buf[:n])
			if err != nil {
				return // EIO, at a terminal's end
			}
		}
	}()
	return u
}

// sees waits until the command has printed a text. It does not poll: the command
// could end between two looks.
func (u *terminalUser) sees(text string) {
	u.t.Helper()
	late := time.After(3 * time.Minute)
	for !strings.Contains(u.said, text) {
		select {
		case part, more := <-u.parts:
			if !more {
				u.t.Fatalf("it ended, and did not print %q:\n%s", text, u.said)
			}
			u.said += part
		case <-late:
			u.t.Fatalf("it does not print %q:\n%s", text, u.said)
		}
	}
}

// has reports whether the command has printed a text by now.
func (u *terminalUser) has(text string) bool {
	u.t.Helper()
	for {
		select {
		case part, more := <-u.parts:
			if !more {
				u.t.Fatalf("it ended, and did not print %q:\n%s", text, u.said)
			}
			u.said += part
		default:
			return strings.Contains(u.said, text)
		}
	}
}

// seesEnd waits until the command ends, and returns all that it printed.
func (u *terminalUser) seesEnd() string {
	for part := range u.parts {
		u.said += part
	}
	return u.said
}

func (u *terminalUser) interrupts() {
	u.t.Helper()
	if _, err := u.terminal.WriteString("\x03"); err != nil {
		u.t.Fatal(err)
	}
}

// TestDemoInterrupted presses Ctrl-C at a demo: twice, and it still cleans up;
// thrice, and what it said cleans up.
func TestDemoInterrupted(t *testing.T) {
	binary := e2e.NeedBinary(t)
	for _, thrice := range []bool{false, true} {
		t.Run(fmt.Sprint("thrice ", thrice), func(t *testing.T) {
			demoDir(t)
			c := exec.Command(binary, "demo", "--http", "127.0.0.1:0")
			user := atTerminal(t, c)
			user.sees("until Ctrl-C")
			user.interrupts()
			for end := time.Now().Add(3 * time.Minute); !user.has("Cleaning up") && time.Now().Before(end); { // which a fast machine does before it reads a second Ctrl-C
				slice(t, c)
			}
			user.interrupts()
			if err := c.Process.Signal(syscall.SIGCONT); err != nil {
				t.Fatal(err)
			}
			user.sees("sudo rm -r ")
			if thrice {
				user.interrupts()
			}
			said := user.seesEnd()
			err := c.Wait()
			if !thrice && err != nil {
				t.Errorf("got %v\n%s", err, said)
			}
			fix := regexp.MustCompile(`sudo (\S+ cleanup --data-dir \S+ && )sudo (rm -r \S+)`).FindStringSubmatch(said)
			if fix == nil {
				t.Fatalf("it does not say what cleans up:\n%s", said)
			}
			dir := strings.Fields(fix[2])[2]
			if exists(dir) {
				if !thrice {
					t.Errorf("left %s", dir)
				}
				if out, err := exec.Command("sh", "-c", fix[1]+fix[2]).CombinedOutput(); err != nil {
					t.Errorf("what it said: %v\n%s", err, out)
				}
			} else if thrice {
				t.Log("it was done before the third")
			}
			e2e.CheckLeaks(t, binary, dir)
		})
	}
}

// slice lets a command go on for less than a millisecond, and stops it: so a test can look at what
// lasts hardly longer.
func slice(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	if err := cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	<-time.After(20 * time.Microsecond)
	if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}
