package logcache

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"cupola/runtime/fault"
)

func onDisk(t testing.TB, dir string, c Config) *Cache {
	t.Helper()
	c.Dir = dir
	if c.Log == nil {
		c.Log = slog.New(slog.NewTextHandler(t.Output(), nil))
	}
	return New(c)
}

func tagged(e Envelope, source string, stderr bool) Envelope {
	e.Tags, e.Err = map[string]string{"source_type": source, "app_name": "täg"}, stderr
	return e
}

// everything is all log lines by source.
func everything(c *Cache) map[string][]Envelope {
	all := map[string][]Envelope{}
	for id := range c.Meta() {
		all[id] = c.Read(Query{SourceID: id, Start: time.Unix(0, -1)})
	}
	return all
}

// A daemon that is killed closes nothing and saves nothing.
func TestLinesOutliveAKill(t *testing.T) {
	dir := t.TempDir()
	c := onDisk(t, dir, Config{})
	for at := range int64(50) {
		c.Append(tagged(line("a", at%10, fmt.Sprint("line ", at)), []string{"APP/PROC/WEB", "RTR"}[at%2], at%3 == 0))
		c.Append(tagged(line("../b\x00", at, strings.Repeat("x", int(at))), "APP/PROC/WEB", false))
	}
	c.Append(Envelope{Timestamp: time.Unix(0, 99), SourceID: "a", Kind: Gauge, Metrics: []Metric{{Name: "cpu"}}})
	want := everything(c)
	want["a"] = slices.DeleteFunc(want["a"], func(e Envelope) bool { return e.Kind != Log })
	for range 3 {
		c = onDisk(t, dir, Config{})
		if d := cmp.Diff(want, everything(c)); d != "" {
			t.Fatal(d)
		}
		e := tagged(line("a", 1000, "later"), "APP/PROC/WEB", false)
		c.Append(e)
		want = everything(c)
	}
}

// What a source needs to write a line is given back: most sources are silent most of the time.
func TestSilentSourcesHoldNoBuffers(t *testing.T) {
	c := onDisk(t, t.TempDir(), Config{})
	for at := range int64(50) {
		c.Append(tagged(line(fmt.Sprint(at%5), at, "a line"), "APP/PROC/WEB", false))
	}
	if len(c.disk.tracks) != 5 {
		t.Errorf("got %d sources; want 5", len(c.disk.tracks))
	}
	for source, track := range c.disk.tracks {
		if cap(track.pending) != 0 {
			t.Errorf("source %s holds a buffer of %d bytes", source, cap(track.pending))
		}
	}
}

func TestSegmentsAreBounded(t *testing.T) {
	dir := t.TempDir()
	cfg := Config{MaxPerSource: 10, MaxBytes: 80_000}
	c := onDisk(t, dir, cfg)
	for at := range int64(1000) {
		c.Append(line("a", at, "short"))
		c.Append(line(fmt.Sprint("b", at%20), at, strings.Repeat("x", 3000)))
		if at%100 == 0 {
			want := everything(c)
			c = onDisk(t, dir, cfg)
			if d := cmp.Diff(want, everything(c)); d != "" {
				t.Fatal(d)
			}
		}
	}
	var sum int64
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		sum += info.Size()
	}
	if sources := len(c.Meta()); len(entries) > 2*sources || sum > 2*cfg.MaxBytes {
		t.Errorf("got %d files of %d bytes for %d sources", len(entries), sum, sources)
	}
}

func TestDeleteRemovesFiles(t *testing.T) {
	dir := t.TempDir()
	c := onDisk(t, dir, Config{MaxPerSource: 2})
	for at := range int64(10) {
		c.Append(line("a", at, "x"))
	}
	c.Delete("a")
	c.Delete("never there")
	if left, _ := os.ReadDir(dir); len(left) > 0 || len(c.disk.tracks) > 0 || c.disk.open != 0 {
		t.Errorf("got %v, %d tracks, %d open", left, len(c.disk.tracks), c.disk.open)
	}
	c.Append(line("a", 20, "again"))
	if got := texts(onDisk(t, dir, Config{}).Read(Query{SourceID: "a"})); got != "20:again" {
		t.Errorf("got %q", got)
	}
}

func TestDamagedSegments(t *testing.T) {
	dir := t.TempDir()
	c := onDisk(t, dir, Config{})
	for at := range int64(3) {
		c.Append(line("a", at, "x"))
	}
	path := filepath.Join(dir, fileName("a")+newerSuffix)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Clone(whole)
	flipped[len(flipped)-1] ^= 1
	for name, c := range map[string]struct {
		text []byte
		want string
	}{
		"half a record":  {whole[:len(whole)-3], "0:x 1:x 9:next"},
		"zeros":          {append(bytes.Clone(whole), make([]byte, 4096)...), "0:x 1:x 2:x 9:next"},
		"a flipped bit":  {flipped, "0:x 1:x 9:next"},
		"nothing":        {nil, "9:next"},
		"something else": {[]byte("something else"), "9:next"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(path, c.text, 0o600); err != nil {
				t.Fatal(err)
			}
			onDisk(t, dir, Config{}).Append(line("a", 9, "next"))
			if got := texts(onDisk(t, dir, Config{}).Read(Query{SourceID: "a"})); got != c.want {
				t.Errorf("got %q; want %q", got, c.want)
			}
		})
	}
}

// A disk that takes nothing costs no line in memory, is complained about once,
// and is used again later.
func TestADiskThatFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "logs")
		var said bytes.Buffer
		c := onDisk(t, dir, Config{Log: slog.New(slog.NewTextHandler(&said, nil))})
		c.Append(line("a", 1, "before"))
		if err := os.RemoveAll(dir); err != nil { // the open file goes on
			t.Fatal(err)
		}
		for at := range int64(100) {
			c.Append(line("b", at, "x"))
			time.Sleep(time.Second)
		}
		if n := len(c.Read(Query{SourceID: "b"})); n != 100 || strings.Count(said.String(), "level=WARN") != 1 {
			t.Errorf("%d lines are there, and it said:\n%s", n, &said)
		}
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		time.Sleep(diskRest)
		c.Append(line("b", 200, "back"))
		if got := texts(onDisk(t, dir, Config{}).Read(Query{SourceID: "b"})); got != "200:back" || !strings.Contains(said.String(), "on the disk again") {
			t.Errorf("got %q, and it said:\n%s", got, &said)
		}
	})
}

func TestADirectoryThatCannotBe(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	c := onDisk(t, filepath.Join(file, "logs"), Config{Log: slog.New(slog.NewTextHandler(&said, nil))})
	c.Append(line("a", 1, "x"))
	c.Delete("b")
	c.Close()
	if got := texts(c.Read(Query{SourceID: "a"})); got != "1:x" || !strings.Contains(said.String(), "in memory alone") {
		t.Errorf("got %q, and it said:\n%s", got, &said)
	}
}

func TestManyWritersAndSources(t *testing.T) {
	dir := t.TempDir()
	c := onDisk(t, dir, Config{})
	var running sync.WaitGroup
	for w := range 8 {
		running.Go(func() {
			for n := range 500 {
				source := fmt.Sprint("s", n%(2*maxOpenSegments)) // more than may be open
				c.Append(line(source, int64(n*10+w), fmt.Sprint(w, " ", n)))
				if w == 0 && n%50 == 0 {
					c.Delete("busy")
				}
				c.Append(line("busy", int64(n*10+w), fmt.Sprint(w, " ", n)))
			}
		})
	}
	running.Wait()
	if c.disk.open > maxOpenSegments+8 {
		t.Errorf("%d files are open", c.disk.open)
	}
	want, got := everything(c), everything(onDisk(t, dir, Config{}))
	// A line that is appended while its source is deleted may stay in memory alone.
	maps.DeleteFunc(want, func(id string, _ []Envelope) bool { return id == "busy" })
	maps.DeleteFunc(got, func(id string, _ []Envelope) bool { return id == "busy" })
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	c.Close()
	if c.disk.open != 0 {
		t.Errorf("%d files are open after Close", c.disk.open)
	}
}

// An older daemon saved log lines with the measures: they come over once.
func TestLinesOfAnOlderDaemon(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "logs.gob")
	old := New(Config{})
	old.Append(line("a", 1, "old"))
	old.Append(Envelope{Timestamp: time.Unix(0, 2), SourceID: "a", Kind: Gauge, Metrics: []Metric{{Name: "cpu"}}})
	if err := old.Save(path); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		c := onDisk(t, filepath.Join(dir, "logs"), Config{})
		c.Load(path, slog.New(slog.DiscardHandler))
		if got, all := texts(c.Read(Query{SourceID: "a"})), c.Meta()["a"].Count; got != "1:old" || all != 2 {
			t.Errorf("got %q of %d envelopes", got, all)
		}
	}
}

func FuzzSegment(f *testing.F) {
	c := &track{numbers: map[tagsDigest]uint64{}, rotate: -1}
	for at := range int64(3) {
		e := tagged(line("a", at, "text"), fmt.Sprint(at), at == 1)
		c.encode(&e, 10, 1<<20)
	}
	f.Add(c.pending)
	f.Add(c.pending[:len(c.pending)-1])
	f.Add(appendSource(nil, ""))
	f.Fuzz(func(t *testing.T, b []byte) {
		s := parseSegment(b)
		if s.bytes > len(b) || s.bytes == 0 && len(s.lines) > 0 {
			t.Fatalf("got %d lines in %d of %d bytes", len(s.lines), s.bytes, len(b))
		}
		if d := cmp.Diff(s, parseSegment(b[:s.bytes]), cmp.AllowUnexported(segment{})); d != "" {
			t.Fatal(d)
		}
	})
}

func BenchmarkAppend(b *testing.B) {
	tags := map[string]string{"source_type": "APP/PROC/WEB", "app_id": "x", "app_name": "y", "space_id": "z", "space_name": "a", "organization_id": "b", "organization_name": "c", "instance_id": "0", "process_type": "web"}
	for name, disk := range map[string]bool{"memory": false, "disk": true} {
		b.Run(name, func(b *testing.B) {
			dir := ""
			if disk {
				dir = b.TempDir()
			}
			c := New(Config{Dir: dir, Log: slog.New(slog.DiscardHandler)})
			defer c.Close()
			e := Envelope{SourceID: "a", InstanceID: "0", Tags: tags, Payload: bytes.Repeat([]byte("x"), 120)}
			b.ReportAllocs()
			for n := range b.N {
				e.Timestamp = time.Unix(0, int64(n))
				c.Append(e)
			}
		})
	}
}

func BenchmarkLoad(b *testing.B) {
	dir := b.TempDir()
	cfg := Config{Dir: dir, Log: slog.New(slog.DiscardHandler)}
	c := New(cfg)
	for n := range 200_000 {
		c.Append(tagged(line(fmt.Sprint("s", n%100), int64(n), strings.Repeat("x", 120)), "APP/PROC/WEB", false))
	}
	c.Close()
	for b.Loop() {
		New(cfg).Close()
	}
}

// TestPanicOfTheDiskUnlocks panics beside the lock: after a recover the source is
// unlocked, and can be written again.
func TestPanicOfTheDiskUnlocks(t *testing.T) {
	c := onDisk(t, t.TempDir(), Config{})
	defer c.Close()
	line := Envelope{SourceID: "a", Kind: Log, Timestamp: time.Now()}
	log := c.disk.log
	c.disk.log, c.disk.broken = nil, true // it panics to say that the disk works again
	if err := fault.Guard("test", func() error { c.Append(line); return nil }); err == nil {
		t.Fatal("nothing panicked")
	}
	c.disk.log = log
	c.Append(line)
	if got := len(c.Read(Query{SourceID: "a"})); got != 2 {
		t.Errorf("%d lines of 2 are there", got)
	}
}

// TestReadEnvelopesShareTags: a daemon that has read what its predecessor kept holds tags once, not once for each envelope.
func TestReadEnvelopesShareTags(t *testing.T) {
	dir := t.TempDir()
	saved := filepath.Join(dir, "saved")
	c := New(Config{Dir: filepath.Join(dir, "lines"), Log: slog.New(slog.DiscardHandler)})
	for n := range 4 {
		tags := map[string]string{"source_type": "APP/PROC/WEB", "instance": fmt.Sprint(n % 2)}
		c.Append(Envelope{SourceID: "a", InstanceID: "0", Timestamp: time.Unix(int64(n), 0), Tags: tags, Payload: []byte("line")})
		c.Append(Envelope{SourceID: "a", InstanceID: "0", Timestamp: time.Unix(int64(n), 0), Tags: tags, Kind: Gauge, Metrics: []Metric{{Name: "cpu", Value: float64(n)}}})
	}
	want := append(c.Read(Query{SourceID: "a"}), c.Read(Query{SourceID: "a", Kinds: []Kind{Gauge}})...)
	if err := errors.Join(c.Save(saved), c.Close()); err != nil {
		t.Fatal(err)
	}
	next := New(Config{Dir: filepath.Join(dir, "lines"), Log: slog.New(slog.DiscardHandler)})
	defer next.Close()
	next.Load(saved, slog.New(slog.DiscardHandler))
	lines, gauges := next.Read(Query{SourceID: "a"}), next.Read(Query{SourceID: "a", Kinds: []Kind{Gauge}})
	if diff := cmp.Diff(want, append(slices.Clone(lines), gauges...)); diff != "" {
		t.Errorf("read (-want +got):\n%s", diff)
	}
	for _, all := range [][]Envelope{lines, gauges} {
		maps := map[uintptr]bool{}
		for _, e := range all {
			maps[reflect.ValueOf(e.Tags).Pointer()] = true
		}
		if len(maps) != 2 {
			t.Errorf("%d envelopes have %d maps of tags; want 2, one for each content", len(all), len(maps))
		}
	}
}
