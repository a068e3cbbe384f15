package launch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// full is a request with every line.
func full() Request {
	return Request{
		Rootfs: "/r", UserNS: "/u", MountNS: "/m", NetNS: "/n", Cgroup: "/c", Hostname: "h", OOMScore: -5, Stdio: [3]bool{true, false, true}, Files: 7, Cgroups: 7,
		Mounts: []Mount{
			{Type: "tmpfs", Source: "shm", Target: "/dev/shm", Attributes: 1<<63 - 1, Data: "mode=1777,size=64m"},
			{Source: "/a", Target: "/b", Attributes: 1, Recursive: true}, {Source: "/c", Target: "/d"},
		},
		ReadOnly: []string{"/proc/sys"}, Masked: []string{"/proc/keys", "/sys/block"},
		Capabilities: Capabilities{Bounding: 1<<64 - 1, Effective: 1, Permitted: 2, Inheritable: 3, Ambient: 4},
		UID:          1<<32 - 2, GID: 5, Groups: []uint32{1, 2}, Args: []string{"/init", "", "x"}, Env: []string{"A=1", "B="}, Cwd: "/w",
	}
}

// checker builds the program so that it ends when it reads or writes where it must not.
func checker(t testing.TB) (check func(request []byte) (answer string, code int)) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "launch")
	if text, err := exec.Command("../../../cmd/launch/build", program, "-fsanitize=address,undefined", "-fno-sanitize-recover").CombinedOutput(); err != nil {
		t.Fatalf("build launch: %v\n%s", err, text)
	}
	return func(request []byte) (string, int) {
		cmd := exec.Command(program, "--check")
		cmd.Env = []string{"ASAN_OPTIONS=exitcode=77:detect_leaks=0"}
		cmd.Stdin = bytes.NewReader(request)
		var said bytes.Buffer
		cmd.Stdout, cmd.Stderr = &said, &said
		err := cmd.Run()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) && !errors.Is(err, os.ErrClosed) && !strings.Contains(err.Error(), "broken pipe") {
			t.Fatal(err)
		}
		return said.String(), cmd.ProcessState.ExitCode()
	}
}

func TestProgramReadsRequests(t *testing.T) {
	check := checker(t)
	text, err := full().Encode()
	if err != nil {
		t.Fatal(err)
	}
	if said, code := check(text); code != 0 || said != "" {
		t.Fatalf("got %q and %d; want the request accepted", said, code)
	}
	for name, c := range map[string]struct {
		change func(*Request)
		want   string
	}{
		"no program":   {func(r *Request) { r.Args = nil }, "error request: it lacks a line\n"},
		"many files":   {func(r *Request) { r.Files = 65 }, "error request: 65 files with 7 cgroups; at most 64 are accepted\n"},
		"many cgroups": {func(r *Request) { r.Cgroups = 8 }, "error request: 7 files with 8 cgroups; at most 64 are accepted\n"},
		"no user":      {func(r *Request) { r.UID = 1<<32 - 1 }, "error request: 4294967295 is not a user or group\n"},
		"no group":     {func(r *Request) { r.Groups = []uint32{1<<32 - 1} }, "error request: 4294967295 is not a user or group\n"},
	} {
		r := full()
		c.change(&r)
		text, err := r.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if said, code := check(text); said != c.want || code != 1 {
			t.Errorf("%s: got %q and %d; want %q", name, said, code, c.want)
		}
	}
	for _, r := range []Request{{Rootfs: "a\x00b"}, {Env: []string{"A"}}, {Env: []string{"=a"}}} {
		if _, err := r.Encode(); err == nil {
			t.Errorf("%+v: got no error", r)
		}
	}
}

func TestCleanEnv(t *testing.T) {
	got, err := cleanEnv([]string{"HOME=/a", "A=1", "B=2", "A=3", "HOME="})
	if want := []string{"B=2", "A=3"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
}

func TestConverse(t *testing.T) {
	for answers, want := range map[string]string{
		"ready 7\nstarted\n":           "",
		"error no\n":                   "no",
		"ready 7\nerror exec /x: no\n": "exec /x: no",
		"ready 8\n":                    "cannot record",
		"ready -1\n":                   `bad answer: process "-1"`,
		"what\n":                       `bad answer: "what"`,
		"ready 7\n":                    "EOF",
		"":                             "EOF",
		strings.Repeat("x", 1<<20):     "EOF",
	} {
		var in bytes.Buffer
		err := Converse(&in, strings.NewReader(answers), full(), func(pid int) error {
			if pid != 7 {
				return errors.New("cannot record")
			}
			return nil
		})
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%.20q: got %q; want %q", answers, got, want)
		}
		size := 4 + int(binary.NativeEndian.Uint32(in.Next(4)))
		_, _ = io.CopyN(io.Discard, &in, int64(size-4))
		if rest := in.String(); (rest == "g") != strings.HasPrefix(answers, "ready 7") {
			t.Errorf("%.20q: got %q after the request; want the byte that lets the process go on, once it is recorded", answers, rest)
		}
	}
}

// FuzzRequest gives the program what the daemon never writes: it refuses it in one line, or accepts it.
func FuzzRequest(f *testing.F) {
	text, err := full().Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text[4:], uint32(len(text)-4))
	f.Add(text[4:len(text)-1], uint32(len(text)-5))
	f.Add(text[4:], uint32(1<<32-1))
	f.Add([]byte("mount\x00"), uint32(6))
	f.Add([]byte{}, uint32(0))
	check := checker(f)
	f.Fuzz(func(t *testing.T, body []byte, size uint32) {
		said, code := check(append(binary.NativeEndian.AppendUint32(nil, size), body...))
		refused := code == 1 && strings.HasPrefix(said, "error request: ") && strings.Count(said, "\n") == 1
		if !refused && (code != 0 || said != "") {
			t.Errorf("got %q and %d; want it accepted, or refused in one line", said, code)
		}
	})
}
