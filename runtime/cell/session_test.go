package cell

import (
	"bufio"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"cupola/runtime/container"
	"cupola/runtime/contract"
	"cupola/runtime/lrp"

	"github.com/google/go-cmp/cmp"
)

func TestParseEnviron(t *testing.T) {
	got := parseEnviron("A=b\x00EMPTY=\x00C=d=e\x00PWD=/\x00_=/bin/x\x00SHLVL=2\x00\x00nonsense\x00nginx: worker=1\x00=x\x00A=last")
	want := map[string]string{"A": "last", "EMPTY": "", "C": "d=e"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func FuzzParseEnviron(f *testing.F) {
	f.Add("A=b\x00C=d")
	f.Fuzz(func(t *testing.T, text string) {
		for name := range parseEnviron(text) {
			if name == "" || strings.ContainsAny(name, "=\x00") {
				t.Errorf("%q: got a variable %q", text, name)
			}
		}
	})
}

func TestLoginsAreKept(t *testing.T) {
	u := user{UID: 1, GID: 2, Groups: []uint32{3, 4}, Name: "n", Home: "/h"}
	p := loginOf(u).process(map[string]string{"HOME": "/elsewhere", "A": "b"})
	if p.UID != 1 || p.GID != 2 || !cmp.Equal(p.Groups, u.Groups) || p.Cwd != "/h" || !cmp.Equal(p.Env, []string{"A=b", "HOME=/h", "USER=n"}) {
		t.Errorf("got %+v", p)
	}
}

// The helper of a container that an earlier version started is elsewhere.
func TestHelperOfEarlierVersions(t *testing.T) {
	for programs, want := range map[string]string{"": "/tmp/lifecycle/lifecycle sshd", contract.ProgramDir: "/.cupola/lifecycle sshd"} {
		i := &instance{rec: record{Programs: programs}}
		if got := strings.Join(i.command([]string{contract.Helper, contract.CommandSSHD}), " "); got != want {
			t.Errorf("%q: got %s; want %s", programs, got, want)
		}
	}
}

func TestRealAttach(t *testing.T) { eachKind(t, testRealAttach) }

func testRealAttach(t *testing.T, kind container.Kind) {
	c, w, r := runReal(t, kind)
	spec := w.instance("g", "sleep", "1h")
	spec.Env = []lrp.EnvVar{{Name: "A", Value: "definition"}}
	spec.Action.Run.Env = []lrp.EnvVar{{Name: "A", Value: "run"}}
	c.Start(spec)
	r.Find(t, "g", lrp.EventRunning)
	for _, adopted := range []bool{false, true} {
		i := c.instance("g")
		if adopted { // as by the next daemon, which has no environment in memory
			i.mu.Lock()
			i.entry.Env = nil
			i.mu.Unlock()
		}
		s, err := c.Attach(t.Context(), "g", "/home/vcap/app/app", "show", "$A", "$HOME", "$CF_INSTANCE_INDEX")
		if err != nil {
			t.Fatal(err)
		}
		want := []string{"A=run", "HOME=/home/vcap", "CF_INSTANCE_INDEX=1", "as 2000 2000 in /home/vcap on g"}
		for lines := bufio.NewScanner(s); len(want) > 0 && lines.Scan(); {
			if strings.Contains(lines.Text(), want[0]) {
				want = want[1:]
			}
		}
		if len(want) > 0 {
			t.Errorf("adopted %t: got no %q", adopted, want)
		}
		p := s.(*attached).process
		pid := p.ID()
		if adopted { // the other one shows that Close does it
			p.Signal(syscall.SIGKILL)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat("/proc/" + strconv.Itoa(pid)); err == nil {
			t.Errorf("process %d has not ended with the session", pid)
		}
	}
	s, err := c.Attach(t.Context(), "g", "/home/vcap/app/app", "sleep", "1h")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c.Stop("g")
	if _, err := io.ReadAll(s); err != nil {
		t.Errorf("got %v; want the end of the session with the container's", err)
	}
	r.Find(t, "g", lrp.EventExited)
	if _, err := c.Attach(t.Context(), "g", "x"); !errors.Is(err, errNotRunning) {
		t.Errorf("got %v; want it not running", err)
	}
	if _, err := c.Attach(t.Context(), "never", "x"); !errors.Is(err, errNotRunning) {
		t.Errorf("got %v; want it not running", err)
	}
}
