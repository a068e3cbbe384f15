package compile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"cupola/server/bosh/sandbox"
	"cupola/store"
	"cupola/store/blob"
	"cupola/store/cf"
)

// compiler is a Compiler whose packages install their names, and what ran of it.
type compiler struct {
	*Compiler
	mu   sync.Mutex
	ran  []string // since the last compile
	ever []string
	fail string // a package whose script fails
	dir  string
}

func newCompiler(t *testing.T) *compiler {
	t.Helper()
	s, err := store.Open(store.Config{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	blobs, err := blob.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	c := &compiler{dir: t.TempDir()}
	c.Compiler = New(Config{Store: s, Blobs: blobs, Logs: c.dir, Run: c.run, Log: slog.New(slog.DiscardHandler)})
	return c
}

func (c *compiler) run(ctx context.Context, p sandbox.Compilation) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, on := range p.Dependencies {
		if !slices.Contains(c.ever, strings.TrimPrefix(on.Dest, "/var/vcap/packages/")) {
			return fmt.Errorf("%s is compiled before %s", p.Name, on.Dest)
		}
	}
	c.ran, c.ever = append(c.ran, p.Name), append(c.ever, p.Name)
	fmt.Fprintln(p.Output, "compiling", p.Name)
	if p.Name == c.fail {
		return errors.New("the packaging script ended with status 1")
	}
	_, err := io.WriteString(p.Into, "compiled "+p.Name)
	return err
}

// compile compiles packages of a release, and returns what ran.
func (c *compiler) compile(t *testing.T, r *cf.BOSHRelease, version string, packages ...string) ([]string, map[string]string, error) {
	t.Helper()
	c.ran = nil
	digests, err := c.Compile(t.Context(), Request{Release: r, Packages: packages, OS: "jammy", Stack: "s", Version: version, Deployment: "d",
		Step: func(string, string) func(error) { return func(error) {} }})
	slices.Sort(c.ran)
	return c.ran, digests, err
}

func (c *compiler) release(t *testing.T) *cf.BOSHRelease {
	t.Helper()
	r := &cf.BOSHRelease{Name: "r", Version: "1"}
	for _, p := range []cf.BOSHReleasePackage{{Name: "base"}, {Name: "left", Dependencies: []string{"base"}}, {Name: "right", Dependencies: []string{"base"}},
		{Name: "top", Dependencies: []string{"left", "right"}}, {Name: "unused"}} {
		b, err := c.Blobs.Put(t.Context(), strings.NewReader(p.Name))
		if err != nil {
			t.Fatal(err)
		}
		p.Digest, p.Fingerprint = b.Digest, "f-"+p.Name
		r.Packages = append(r.Packages, p)
	}
	return r
}

func TestCompile(t *testing.T) {
	c := newCompiler(t)
	r := c.release(t)
	check := func(version string, want ...string) {
		t.Helper()
		ran, digests, err := c.compile(t, r, version, "top", "base")
		if err != nil || !slices.Equal(ran, want) || len(digests) != 2 || !c.Blobs.Has(digests["top"]) || !c.Blobs.Has(digests["base"]) {
			t.Errorf("got %v, %v, %v; want %v compiled", ran, digests, err, want)
		}
	}
	check("1", "base", "left", "right", "top")
	check("1")
	r.Package("left").Fingerprint = "other"
	check("1", "left", "top")
	check("2", "base", "left", "right", "top")
	compiled, err := c.Blobs.Put(t.Context(), strings.NewReader("came compiled"))
	if err != nil {
		t.Fatal(err)
	}
	r.Package("base").Compiled = []cf.BOSHReleaseCompiled{{OS: "jammy", Digest: compiled.Digest}}
	check("2", "left", "right", "top")
	r.Package("top").Digest = ""
	if _, _, err := c.compile(t, r, "3", "top"); err == nil || !strings.Contains(err.Error(), "Can't use package 'top/f-top' of release 'r/1' on stemcell jammy: it has no source code") {
		t.Errorf("got %v", err)
	}
	if _, _, err := c.compile(t, r, "3", "none"); err == nil || err.Error() != "release 'r/1' has no package 'none'" {
		t.Errorf("got %v", err)
	}
	if left, err := os.ReadDir(c.dir); err != nil || len(left) > 0 {
		t.Errorf("got the logs %v, %v; want none of what succeeded", left, err)
	}
}

// A failure keeps what was compiled before it, and the whole output.
func TestCompileFails(t *testing.T) {
	c := newCompiler(t)
	r := c.release(t)
	c.fail = "top"
	_, _, err := c.compile(t, r, "1", "top")
	for _, want := range []string{"compile package 'top/f-top' of release 'r/1': the packaging script ended with status 1\ncompiling top\nThe whole output is in " + c.dir + "/r-top-f-top.log"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v; want %s", err, want)
		}
	}
	c.fail = ""
	if ran, _, err := c.compile(t, r, "1", "top"); err != nil || !slices.Equal(ran, []string{"top"}) {
		t.Errorf("got %v, %v; want only the failed package compiled again", ran, err)
	}
}

// Two deployments that need the same compile it once.
func TestCompileAtOnce(t *testing.T) {
	c := newCompiler(t)
	r := c.release(t)
	var all sync.WaitGroup
	for n := range 4 {
		all.Go(func() {
			_, err := c.Compile(t.Context(), Request{Release: r, Packages: []string{"top"}, OS: "jammy", Stack: "s", Version: "1", Deployment: fmt.Sprint(n),
				Step: func(string, string) func(error) { return func(error) {} }})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if slices.Sort(c.ran); !slices.Equal(c.ran, []string{"base", "left", "right", "top"}) {
		t.Errorf("got %v; want each compiled once", c.ran)
	}
}

func TestLogIsBounded(t *testing.T) {
	l, err := openLog(t.TempDir(), "x")
	if err != nil {
		t.Fatal(err)
	}
	l.left = 10
	if _, err := io.Copy(l, strings.NewReader("0123456789the end")); err != nil {
		t.Fatal(err)
	}
	why := l.fail(errors.New("failed")).Error()
	if text, err := os.ReadFile(l.file.Name()); err != nil || string(text) != "0123456789" || !strings.Contains(why, "the end") {
		t.Errorf("got %q, %v, %s", text, err, why)
	}
}
