package databroker

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cupola/store/cf"
)

// redisKeeping runs redisKeep in a directory with the files of a log.
type redisKeeping struct {
	t   *testing.T
	dir string
	// clock is when the log was written last. What looks after files that are newer than others would else depend on how
	// often the file system's clock ticks.
	clock time.Time
}

func (k *redisKeeping) path(name string) string { return filepath.Join(k.dir, name) }

// log makes the log consist of a base and files of commands, with their sizes in KB, by their numbers.
func (k *redisKeeping) log(base int, sizes map[int]int) {
	k.t.Helper()
	text := fmt.Sprintf("file appendonly.aof.%[1]d.base.rdb seq %[1]d type b\n", base)
	k.clock = k.clock.Add(time.Minute)
	err := os.MkdirAll(k.path(redisLog), 0o700)
	write := func(name string, size int) {
		f, oerr := os.OpenFile(k.path(redisLog+"/"+name), os.O_CREATE|os.O_RDWR, 0o600)
		if oerr == nil {
			_, oerr = f.WriteAt(make([]byte, size<<10), 0)
			oerr = errors.Join(oerr, f.Close(), os.Chtimes(f.Name(), k.clock, k.clock))
		}
		err = errors.Join(err, oerr)
	}
	write(fmt.Sprintf("appendonly.aof.%d.base.rdb", base), 40)
	for n := 1; n < 10; n++ {
		if size, ok := sizes[n]; ok {
			name := fmt.Sprintf("appendonly.aof.%d.incr.aof", n)
			text += fmt.Sprintf("file %s seq %d type i startoffset 0\n", name, n) // as Redis 8 has it
			write(name, size)
		}
	}
	manifest := k.path(redisLog + "/appendonly.aof.manifest")
	if err := errors.Join(err, os.WriteFile(manifest, []byte(text), 0o600), os.Chtimes(manifest, k.clock, k.clock)); err != nil {
		k.t.Fatal(err)
	}
}

// forget removes files of the log.
func (k *redisKeeping) forget(pattern string) {
	k.t.Helper()
	found, err := filepath.Glob(k.path(redisLog + "/" + pattern))
	for _, name := range found {
		err = errors.Join(err, os.Remove(name))
	}
	if err != nil {
		k.t.Fatal(err)
	}
}

// keep runs the program. It returns what is kept, and what the server was asked for.
func (k *redisKeeping) keep(limitKB int) (kept, asked string) {
	k.t.Helper()
	program := redisArchiving(redisKeep, plan{volumeBytes: int64(limitKB) << 12})
	program = strings.NewReplacer("/tmp/kept", k.path("kept"), fmt.Sprint(rewriteKB), "50").Replace(program)
	c := exec.CommandContext(k.t.Context(), "/bin/sh", "-c", "ask() { echo $*; echo $* > "+k.path("asked")+"; }\npause=0\n"+program+"keep")
	c.Dir = k.dir
	if out, err := c.CombinedOutput(); err != nil || len(out) > 0 && !strings.Contains(string(out), "begins again") {
		k.t.Fatalf("%v\n%s", err, out)
	}
	after := k.clock.Add(time.Second)
	if err := os.Chtimes(k.path("kept"), after, after); err != nil {
		k.t.Fatal(err)
	}
	files, err := filepath.Glob(k.path(archiveDir + "/base-*/*"))
	if err != nil {
		k.t.Fatal(err)
	}
	var all []string
	for _, file := range files {
		number, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(filepath.Dir(file)), basePrefix), "-")
		all = append(all, strings.TrimLeft(number, "0")+"/"+strings.ReplaceAll(filepath.Base(file), "00000000", ""))
	}
	text, err := os.ReadFile(k.path("asked"))
	if err == nil {
		err = os.Remove(k.path("asked"))
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		k.t.Fatal(err)
	}
	return strings.Join(all, " "), strings.TrimSpace(string(text))
}

// TestRedisKeeps keeps a log that is rewritten: each base, with all commands since then, within a limit.
func TestRedisKeeps(t *testing.T) {
	k := &redisKeeping{t: t, dir: t.TempDir(), clock: time.Now().Add(-time.Hour)}
	want := func(limitKB int, kept, asked string) {
		t.Helper()
		if gotKept, gotAsked := k.keep(limitKB); gotKept != kept || gotAsked != asked {
			t.Errorf("got %q, asked for %q; want %q, %q", gotKept, gotAsked, kept, asked)
		}
	}
	if err := os.Mkdir(k.path(archiveDir), 0o700); err != nil {
		t.Fatal(err)
	}
	k.log(1, map[int]int{1: 1})
	want(1000, "1/base 1/log.1", "")
	k.log(1, map[int]int{1: 60})
	want(1000, "1/base 1/log.1", "BGREWRITEAOF")
	k.log(1, map[int]int{1: 60, 2: 1}) // it is under way
	want(1000, "1/base 1/log.1 1/log.2", "")
	k.log(2, map[int]int{2: 1})
	k.forget("*.1.*")
	want(1000, "1/base 1/log.1 1/log.2 2/base 2/log.2", "")
	k.log(3, map[int]int{3: 1})
	k.forget("*.2.*")
	want(150, "2/base 2/log.2 3/base 3/log.3", "") // which is 40 and 1 KB more than the log itself
	want(1, "2/base 2/log.2 3/base 3/log.3", "")   // nothing was written
	k.log(3, map[int]int{3: 2})
	want(1, "3/base 3/log.3", "")
	k.log(5, map[int]int{5: 1}) // the fourth came and went
	want(1000, "4/base 4/log.5", "")
	if err := os.WriteFile(k.path(archiveDir+"/cut"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	k.log(1, map[int]int{1: 0})
	want(1000, "4/base 4/log.5 5/base 5/cut 5/log.1", "")
	for name, age := range map[string]time.Duration{"the clock was set back": -time.Hour, "a day old": 25 * time.Hour} {
		last, err := filepath.Glob(k.path(archiveDir + "/base-000000005-*"))
		if err == nil {
			err = os.Rename(last[0], k.path(archiveDir+"/base-000000005-"+time.Now().Add(-age).UTC().Format(baseTime)))
		}
		if err != nil {
			t.Fatal(err)
		}
		k.log(1, map[int]int{1: 1})
		if _, asked := k.keep(1000); asked != "BGREWRITEAOF" {
			t.Errorf("%s: asked for %q", name, asked)
		}
	}
}

// TestRedisSeed holds what a restore of a Redis copies.
func TestRedisSeed(t *testing.T) {
	w := newWorld(t)
	for name, content := range map[string]string{
		"archive/base-000000001-20261101T100000Z/base": "first", "archive/base-000000001-20261101T100000Z/log.000000009": "nine", "archive/base-000000001-20261101T100000Z/log.000000010": "ten",
		"archive/base-000000002-20261101T120000Z/base": "second", "archive/base-000000002-20261101T120000Z/log.000000010": "ten",
		"archive/base-000000003-20261101T110000Z/base": "third", "archive/base-000000003-20261101T110000Z/log.000000001": "one", "archive/base-000000003-20261101T110000Z/cut": "",
		archiveOn: "", "archive/new/base": "half",
		redisLog + "/appendonly.aof.2.incr.aof": "two", redisLog + "/appendonly.aof.1.incr.aof": "one", redisLog + "/appendonly.aof.1.base.rdb": "third", redisLog + "/appendonly.aof.manifest": "",
	} {
		file := filepath.Join(w.files, "source", name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	p, err := w.points(&cf.DataInstance{Resource: cf.Resource{GUID: "source"}})
	if err != nil || p.First == nil || p.First.Hour() != 10 {
		t.Fatalf("got %+v, %v", p, err)
	}
	for n, c := range []struct {
		hour, minute int
		want         map[string]string
	}{
		{10, 30, map[string]string{"to": "1793529000\n", "base": "first", "log.000000001": "nine", "log.000000002": "ten"}},
		{11, 30, map[string]string{"to": "1793532600\n", "base": "third", "log.000000001": "one", "log.000000002": "two"}}, // the clock was set back
		{13, 0, map[string]string{"to": "1793538000\n", "base": "third", "log.000000001": "one", "log.000000002": "two"}},
	} {
		before := time.Date(2026, 11, 1, c.hour, c.minute, 1, 5000, time.UTC)
		base, err := p.base(before)
		if err != nil {
			t.Fatal(err)
		}
		f, err := w.Temp()
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		err = w.Read("source", func(root *os.Root) error {
			return writeSeed(t.Context(), root, redis{}, archiveDir+"/"+base, before, f)
		})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, filesOf(t, f)); diff != "" {
			t.Errorf("%d: %s", n, diff)
		}
	}
}
