package files

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cupola/runtime/lrp"
)

// plain is a Store on a disk, which needs no rights: one container, c.
func plain(t *testing.T) *Store {
	t.Helper()
	s, err := New(Config{Dir: filepath.Join(t.TempDir(), "memory")})
	if err != nil {
		t.Fatal(err)
	}
	s.chown = func(*os.Root, string, int, int) error { return nil }
	if err := os.MkdirAll(filepath.Join(s.dir("c"), own), 0o700); err != nil {
		t.Fatal(err)
	}
	return s
}

func file(path, content string) lrp.File { return lrp.File{Path: path, Content: []byte(content)} }

// visible reads a directory as a program would: through links, and without what
// begins with a dot.
func visible(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	var walk func(string)
	walk = func(name string) {
		info, err := os.Stat(filepath.Join(dir, name)) // follows links
		if err != nil {
			t.Fatal(err)
		}
		if !info.IsDir() {
			content, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			all[name] = info.Mode().String() + " " + string(content)
			return
		}
		if name != "." && info.Mode().Perm() != 0o755 {
			t.Errorf("%s: got %s; want 0755", name, info.Mode())
		}
		entries, err := os.ReadDir(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if !strings.HasPrefix(e.Name(), ".") {
				walk(filepath.Join(name, e.Name()))
			}
		}
	}
	walk(".")
	return all
}

func TestReplace(t *testing.T) {
	s := plain(t)
	for _, step := range []struct {
		files []lrp.File
		want  map[string]string
	}{
		{nil, map[string]string{}},
		{[]lrp.File{file("db/uri", "1"), file("db/type", "pg"), file("flat", "x")}, map[string]string{"db/uri": "-r--r----- 1", "db/type": "-r--r----- pg", "flat": "-r--r----- x"}},
		{[]lrp.File{file("db/uri", "2"), file("flat/now/deep", "y")}, map[string]string{"db/uri": "-r--r----- 2", "flat/now/deep": "-r--r----- y"}},
		{nil, map[string]string{}},
	} {
		if err := s.Replace("c", "bindings", 0, step.files); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(step.want, visible(t, s.Path("c", "bindings"))); diff != "" {
			t.Error(diff)
		}
	}
	entries, err := os.ReadDir(s.Path("c", "bindings"))
	if err != nil || len(entries) != 0 {
		t.Errorf("got %v, %v; want nothing left", entries, err)
	}
}

// The top of a tree has the bindings alone, each with one generation of files
// and the link to it; one that stays the same is not written again.
func TestReplaceLeavesTheRest(t *testing.T) {
	s := plain(t)
	dir := s.Path("c", "b")
	// an earlier release had one link for the whole tree
	if err := os.MkdirAll(filepath.Join(dir, "..old", "b"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{data: "..old", "b": data + "/b", "gone": data + "/gone"} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	generation := ""
	for _, user := range []string{"1", "2"} {
		if err := s.Replace("c", "b", 0, []lrp.File{file("a/user", "same"), file("b/user", user), file("b/x/y", user)}); err != nil {
			t.Fatal(err)
		}
		want := map[string]string{"a/user": "-r--r----- same", "b/user": "-r--r----- " + user, "b/x/y": "-r--r----- " + user}
		if diff := cmp.Diff(want, visible(t, dir)); diff != "" {
			t.Error(diff)
		}
		to, err := os.Readlink(filepath.Join(dir, "a", data))
		if err != nil || generation != "" && to != generation {
			t.Errorf("got %q, %v; want %q, which is the same", to, err, generation)
		}
		generation = to
		for path, n := range map[string]int{".": 2, "a": 3, "b": 4, "../own": 0} {
			if entries, err := os.ReadDir(filepath.Join(dir, path)); err != nil || len(entries) != n {
				t.Errorf("%s: got %v, %v; want %d", path, entries, err, n)
			}
		}
	}
}

func TestReplaceRefuses(t *testing.T) {
	s := plain(t)
	if err := s.Replace("c", "b", 0, []lrp.File{file("a", "old")}); err != nil {
		t.Fatal(err)
	}
	big := lrp.File{Path: "b", Content: make([]byte, lrp.MaxFilesBytes)}
	for want, files := range map[string][]lrp.File{
		`path "../x" of a volume mounted file is not allowed`:                          {file("../x", "")},
		`path "/x" of a volume mounted file is not allowed`:                            {file("/x", "")},
		`path "a//x" of a volume mounted file is not allowed`:                          {file("a//x", "")},
		`path "" of a volume mounted file is not allowed`:                              {file("", "")},
		`path "." of a volume mounted file is not allowed`:                             {file(".", "")},
		`path "..data" of a volume mounted file is not allowed`:                        {file("..data", "")},
		`path "a/..b" of a volume mounted file is not allowed`:                         {file("a/..b", "")},
		"path \"a\\x00b\" of a volume mounted file is not allowed":                     {file("a\x00b", "")},
		`path "a" of a volume mounted file is there twice`:                             {file("a/b", ""), file("a", "")},
		`path "b" of a volume mounted file is there twice`:                             {file("b", ""), file("b/c", "")},
		`path "c" of a volume mounted file is there twice`:                             {file("c", ""), file("c", "")},
		"volume mounted files exceed the maximum allowed bytesize of 1048576: 1048577": {big, file("c", "1")},
	} {
		if err := s.Replace("c", "b", 0, files); err == nil || err.Error() != want {
			t.Errorf("got %v; want %s", err, want)
		}
	}
	if diff := cmp.Diff(map[string]string{"a": "-r--r----- old"}, visible(t, s.Path("c", "b"))); diff != "" {
		t.Error(diff)
	}
	if err := s.Replace("c", "b", 0, []lrp.File{big}); err != nil {
		t.Errorf("got %v; want the largest allowed", err)
	}
}

// A reader sees all files of one generation while others replace them.
func TestReplaceIsAtomic(t *testing.T) {
	s := plain(t)
	set := func(n int) []lrp.File {
		text := fmt.Sprint(n)
		return []lrp.File{file("db/user", text), file("db/password", text)}
	}
	if err := s.Replace("c", "b", 0, set(0)); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	var writing sync.WaitGroup
	writing.Go(func() {
		defer close(done)
		for n := range 300 {
			if err := s.Replace("c", "b", 0, set(n)); err != nil {
				t.Error(err)
			}
		}
	})
	sets := 0
	for reading := true; reading; {
		select {
		case <-done:
			reading = false
		default:
		}
		// One look at ..data is one generation, which may go while it is read.
		to, err := os.Readlink(filepath.Join(s.Path("c", "b"), "db", data))
		if err != nil {
			t.Fatal(err)
		}
		user, err := os.ReadFile(filepath.Join(s.Path("c", "b"), "db", to, "user"))
		password, err2 := os.ReadFile(filepath.Join(s.Path("c", "b"), "db", to, "password"))
		if err == nil && err2 == nil {
			if sets++; !bytes.Equal(user, password) {
				t.Fatalf("got %s and %s; want one generation", user, password)
			}
		}
		if _, err := os.ReadFile(filepath.Join(s.Path("c", "b"), "db", "user")); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	writing.Wait()
	if sets == 0 {
		t.Error("read no set of files")
	}
}

func TestKeep(t *testing.T) {
	s := plain(t)
	if err := s.Keep("c", "program", []byte("x")); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Kept("c", "program"); string(got) != "x" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := s.Kept("other", "program"); !os.IsNotExist(err) {
		t.Errorf("got %v; want that it is not there", err)
	}
}

func FuzzCheckFiles(f *testing.F) {
	f.Add("a/b", "a")
	f.Add("..data", "x\x00")
	f.Fuzz(func(t *testing.T, a, b string) {
		if lrp.CheckFiles([]lrp.File{{Path: a}, {Path: b}}) != nil {
			return
		}
		for _, path := range []string{a, b} {
			if !fs.ValidPath(path) || strings.Contains(path, "..") && !filepath.IsLocal(path) {
				t.Errorf("%q is allowed", path)
			}
		}
		if a == b {
			t.Errorf("%q is allowed twice", a)
		}
	})
}

// TestReplaceLinks has a link among the files stay as it is while they are the same, and
// lead elsewhere when it should.
func TestReplaceLinks(t *testing.T) {
	s := plain(t)
	generation := ""
	for _, to := range []string{"/elsewhere", "/elsewhere", "other"} {
		if err := s.Replace("c", "b", 0, []lrp.File{file("a", "x"), {Path: "packages", Link: to}, {Path: "below/link", Link: to}}); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"packages", "below/link"} {
			dir := filepath.Join(s.Path("c", "b"), filepath.Dir(name))
			if got, err := os.Readlink(filepath.Join(dir, data, filepath.Base(name))); got != to || err != nil {
				t.Errorf("%s: got %q, %v; want %q", name, got, err, to)
			}
		}
		now, err := os.Readlink(filepath.Join(s.Path("c", "b"), data))
		if err != nil || (now == generation) != (generation != "" && to == "/elsewhere") {
			t.Errorf("got %q after %q, %v; want it only for other files", now, generation, err)
		}
		generation = now
	}
}
