package sandbox

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"cupola/rootfs"
	"cupola/runtime/container"
	"cupola/runtime/users"
	"cupola/server/bosh/erb"
)

// newSandbox is one on this machine's own stores, all of which goes after the
// test.
func newSandbox(t *testing.T, c Config) *Sandbox {
	t.Helper()
	if os.Getenv("CUPOLA_TEST_ROOT") != "1" {
		t.Skip("needs CUPOLA_TEST_ROOT=1 and root")
	}
	dir, err := os.MkdirTemp("", "sandbox") // t.TempDir keeps the containers' root out
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	helper := filepath.Join(dir, "helper")
	if err := errors.Join(os.Chmod(dir, 0o755), os.Mkdir(helper, 0o755), os.Chmod(helper, 0o755)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("../../../cmd/lifecycle/init/build", filepath.Join(helper, "init"))
	if msg, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, msg)
	}
	const base, size = 1 << 20, 1 << 16
	c.Containers, err = container.New(container.Config{
		Dir: filepath.Join(dir, "containers"), CgroupParent: "sandboxt-" + strings.ToLower(rand.Text()[:8]),
		IDMap: container.IDMap{Base: base, Size: size}, HelperDir: helper,
	})
	if err != nil {
		t.Fatal(err)
	}
	c.Roots, err = rootfs.New(rootfs.Config{Dir: filepath.Join(dir, "rootfs"), IDs: users.Range{Base: base, Size: size}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	c.States = filepath.Join(dir, "states")
	if err := os.Mkdir(c.States, 0o700); err != nil {
		t.Fatal(err)
	}
	c.Users = users.Shared{Base: base, Size: size}
	if c.Roots.Shifts() == nil {
		if c.Users, err = users.Open(filepath.Join(dir, "users")); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { checkEmpty(t, c) })
	return New(c)
}

// checkEmpty finds what a run has left, and takes all away.
func checkEmpty(t *testing.T, c Config) {
	t.Helper()
	states, err := c.Containers.List()
	if err != nil || len(states) > 0 {
		t.Errorf("got containers %v, %v; want none left", states, err)
	}
	roots, err := c.Roots.List()
	if err != nil || len(roots) > 0 {
		t.Errorf("got roots %v, %v; want none left", roots, err)
	}
	claims, err := filepath.Glob(filepath.Join(c.States, "../users/[0-9a-f]*"))
	kept, err2 := os.ReadDir(c.States)
	if err := errors.Join(err, err2); err != nil || len(claims)+len(kept) > 0 {
		t.Errorf("got users %v and states %v, %v; want none left", claims, kept, err)
	}
	for _, s := range states {
		t.Log(c.Containers.Remove(context.Background(), s.ID))
	}
	for _, id := range roots {
		t.Log(c.Roots.Unmount(context.Background(), id))
	}
	if err := errors.Join(c.Containers.Teardown(), c.Roots.Close()); err != nil {
		t.Error(err)
	}
}

func hostRuby(t *testing.T, s *Sandbox) erb.Ruby {
	t.Helper()
	ruby, found, err := s.Ruby(t.Context(), "minifs", "no-such-stack", "preloaded:host")
	if err != nil {
		t.Fatal(err)
	}
	if ruby == nil {
		t.Skip("needs ruby")
	}
	if found.Stack != "preloaded:host" || !strings.HasSuffix(found.Path, "/ruby") {
		t.Errorf("got %v", found)
	}
	return ruby
}

func TestRuby(t *testing.T) {
	s := newSandbox(t, Config{})
	ruby := hostRuby(t, s)
	input := strings.Repeat("x", 5<<20)
	start := time.Now()
	out, err := ruby(t.Context(), []byte("text = $stdin.read\nputs text.length, text"), []byte(input))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("took %v", time.Since(start))
	if want := fmt.Sprintf("%d\n%s\n", len(input), input); string(out) != want {
		t.Errorf("got %d bytes: %.80q", len(out), out)
	}
	if ruby, _, err := s.Ruby(t.Context(), "minifs"); ruby != nil || err != nil {
		t.Errorf("got a Ruby of minifs, %v", err)
	}
}

// TestRunsHaveTheirOwnUsers is of two runs at the same time.
func TestRunsHaveTheirOwnUsers(t *testing.T) {
	s := newSandbox(t, Config{})
	if err := s.cfg.Roots.Shifts(); err != nil {
		t.Skip(err)
	}
	ruby := hostRuby(t, s)
	seen := make(chan string, 2)
	var both sync.WaitGroup
	for range cap(seen) {
		both.Go(func() {
			out, err := ruby(t.Context(), []byte(`puts File.read("/proc/self/uid_map"); sleep 0.5`), nil)
			if err != nil {
				t.Error(err)
			}
			seen <- strings.Join(strings.Fields(string(out)), " ")
		})
	}
	both.Wait()
	a, b := <-seen, <-seen
	if a == b || a == fmt.Sprint("0 ", 1<<20, " ", 1<<16) || !strings.HasSuffix(a, " 65536") {
		t.Errorf("got users %q and %q; want each run to have its own", a, b)
	}
}

// TestRubyRenders renders for real, and finds that templates can reach nothing.
func TestRubyRenders(t *testing.T) {
	s := newSandbox(t, Config{})
	ruby := hostRuby(t, s)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	tests := []struct{ text, want string }{
		{`<%= [1, 2].sum %>`, "3"},
		{`<%= begin; File.read("` + secret + `"); rescue => e; e.class; end %>`, "Errno::ENOENT"},
		{`<%= begin; File.read("/etc/shadow"); rescue => e; e.class; end %>`, "Errno::ENOENT"},
		{`<%= begin; File.write("/etc/x", "y"); rescue => e; e.class; end %>`, "Errno::EACCES"},
		{`<%= begin; File.write("/usr/x", "y"); rescue => e; e.class; end %>`, "Errno::EROFS"},
		{`<%= begin; TCPSocket.new("127.0.0.1", 22); rescue => e; e.class; end %>`, "Errno::ENETUNREACH"},
		{`<%= begin; TCPSocket.new("10.0.0.1", 22); rescue => e; e.class; end %>`, "Errno::ENETUNREACH"},
		{`<%= Dir.glob("/proc/[0-9]*").map { |p| p == "/proc/#{$$}" ? "Ruby" : p } %>`, `["/proc/1", "Ruby"]`}, // the first is the container's init
		{`<%= ENV.keys %> <%= Process.uid %>`, `["HOME"] 65534`},
		{`<%= system("mount", "-t", "tmpfs", "x", "/mnt").inspect %>`, "false"},
		{`<%= begin; Process.kill(9, -1); rescue => e; e.class; end %>`, "Errno::ESRCH"},
	}
	all := make([]erb.Template, len(tests))
	for i, test := range tests {
		all[i] = erb.Template{Group: "g", Job: "j", Source: "t", Text: []byte(test.text), Context: &erb.Context{Spec: map[string]any{}}}
	}
	out, err := erb.Render(t.Context(), all, ruby)
	if err != nil {
		t.Fatal(err)
	}
	for i, test := range tests {
		if string(out[i]) != test.want {
			t.Errorf("%s: got %q; want %q", test.text, out[i], test.want)
		}
	}
}

func TestRubyIsBounded(t *testing.T) {
	s := newSandbox(t, Config{MemoryBytes: 64 << 20, OutputBytes: 1 << 20})
	ruby := hostRuby(t, s)
	hurry := s.cfg
	hurry.Time = time.Second
	hurried := hostRuby(t, New(hurry))
	t.Run("each", func(t *testing.T) { // ends when all of them have
		for _, test := range []struct {
			name, text, want string
			ruby             erb.Ruby
		}{
			{"loop", "<% loop {} %>", "did not end within 1s", hurried},
			{"sleep without output", "<% ObjectSpace.each_object(IO) { |io| io.close rescue 0 }; sleep %>", "did not end within 1s", hurried},
			{"signals", "<% %w[TERM INT HUP].each { |s| trap(s) {} }; sleep %>", "did not end within 1s", hurried},
			{"forks", "<% loop { fork { sleep } } %>", "did not end within 1s", hurried},
			{"forks that go on", "<% 5.times { fork { loop {} } }; exit! 3 %>", "ruby ended with status 3", ruby},
			{"memory", "<% x = []; loop { x << 'x' * 1_000_000 } %>", "needed more than 64 MB of memory", ruby},
			{"output", "<%= 'x' * 2_000_000 %>", "wrote more than 1 MB", ruby},
			{"output past the program", "<% ObjectSpace.each_object(IO) { |io| 3000.times { io.write('x' * 1000) } rescue 0 } %>", "wrote more than 1 MB", ruby},
			{"disk", "<% File.open('/tmp/x', 'w') { |f| loop { f.write('x' * 1_000_000) } } %>", "No space left on device", ruby},
			{"exit", "<% exit! 0 %>", "Ruby ended before all was rendered", ruby},
		} {
			t.Run(test.name, func(t *testing.T) {
				t.Parallel()
				_, err := erb.Render(t.Context(), []erb.Template{{Group: "g", Job: "j", Source: "t", Text: []byte(test.text), Context: &erb.Context{Spec: map[string]any{}}}}, test.ruby)
				if err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("got %v; want %s", err, test.want)
				}
			})
		}
	})
}

func TestRubyEndsWithItsCall(t *testing.T) {
	s := newSandbox(t, Config{})
	ruby := hostRuby(t, s)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := ruby(ctx, []byte("sleep"), nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v; want the call's own end", err)
	}
	if _, err := ruby(t.Context(), []byte("raise 'no'"), nil); err == nil || !strings.Contains(err.Error(), "ruby ended with status 1: ") {
		t.Errorf("got %v", err)
	}
	_, err := s.run(t.Context(), Interpreter{"host", "/usr/bin/no-ruby"}, nil, nil)
	if err == nil {
		t.Error("a program that is not there runs")
	}
}

func TestTail(t *testing.T) {
	if got := tail(io.LimitReader(rand.Reader, 100_000)); len(got) > 3*4096 {
		t.Errorf("got %d bytes", len(got))
	}
	if got := lastLine(tail(strings.NewReader(strings.Repeat("a\n", 9000) + " last \n\n"))); got != "last" {
		t.Errorf("got %q", got)
	}
}
