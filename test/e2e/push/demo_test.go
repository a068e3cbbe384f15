package push

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
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

// TestDemoInterrupted presses Ctrl-C at a demo: twice, and it still cleans up;
// thrice, and what it said cleans up.
func TestDemoInterrupted(t *testing.T) {
	binary := e2e.NeedBinary(t)
	for _, thrice := range []bool{false, true} {
		t.Run(fmt.Sprint("thrice ", thrice), func(t *testing.T) {
			demoDir(t)
			c := exec.Command(binary, "demo", "--http", "127.0.0.1:0")
			terminal := e2e.OnTerminal(t, c)
			var said e2e.LogBuffer
			ended := make(chan struct{})
			go func() {
				_, _ = io.Copy(&said, terminal) // ends with EIO, as terminals do
				close(ended)
			}()
			says := func(text string) {
				t.Helper()
				e2e.Eventually(t, time.Minute, func() string {
					if strings.Contains(said.String(), text) {
						return ""
					}
					return fmt.Sprintf("it does not say %q:\n%s", text, &said)
				})
			}
			press := func() {
				if _, err := terminal.WriteString("\x03"); err != nil {
					t.Fatal(err)
				}
			}
			says("until Ctrl-C")
			press()
			says("Cleaning up")
			press()
			says("sudo rm -r ")
			if thrice {
				press()
			}
			<-ended
			err := c.Wait()
			if !thrice && err != nil {
				t.Errorf("got %v\n%s", err, &said)
			}
			fix := regexp.MustCompile(`sudo (\S+ cleanup --data-dir \S+ && )sudo (rm -r \S+)`).FindStringSubmatch(said.String())
			if fix == nil {
				t.Fatalf("it does not say what cleans up:\n%s", &said)
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

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}
