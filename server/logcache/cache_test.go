package logcache

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func line(source string, at int64, text string) Envelope {
	return Envelope{Timestamp: time.Unix(0, at), SourceID: source, InstanceID: "0", Payload: []byte(text)}
}

// texts is what envelopes say, with their times.
func texts(es []Envelope) string {
	var all []string
	for _, e := range es {
		all = append(all, fmt.Sprintf("%d:%s", e.Timestamp.UnixNano(), e.Payload))
	}
	return strings.Join(all, " ")
}

func TestRead(t *testing.T) {
	c := New(Config{})
	for _, at := range []int64{10, 30, 20, 30, 40, 30} {
		c.Append(line("a", at, fmt.Sprint("t", at)))
	}
	c.Append(line("b", 1, "other"))
	tests := []struct {
		q    Query
		want string
	}{
		{Query{SourceID: "a"}, "10:t10 20:t20 30:t30 31:t30 32:t30 40:t40"},
		{Query{SourceID: "a", Start: time.Unix(0, 20)}, "20:t20 30:t30 31:t30 32:t30 40:t40"},
		{Query{SourceID: "a", Start: time.Unix(0, 20), End: time.Unix(0, 30)}, "20:t20"},
		{Query{SourceID: "a", Limit: 2}, "10:t10 20:t20"},
		{Query{SourceID: "a", Limit: 2, Descending: true}, "40:t40 32:t30"},
		{Query{SourceID: "a", Start: time.Unix(0, 41)}, ""},
		{Query{SourceID: "a", Start: time.Unix(0, 30), End: time.Unix(0, 10)}, ""},
		{Query{SourceID: "none"}, ""},
	}
	for _, tt := range tests {
		if got := texts(c.Read(tt.q)); got != tt.want {
			t.Errorf("%+v: got %q; want %q", tt.q, got, tt.want)
		}
	}
}

// What a limit cuts off is not copied, and Newest reads no further than it must.
func TestReadCopiesNoMoreThanItsLimit(t *testing.T) {
	c := New(Config{})
	for at := range int64(5000) {
		c.Append(line("a", at+1, strconv.FormatInt(at, 10)))
	}
	for _, descending := range []bool{false, true} {
		if got := cap(c.find(Query{SourceID: "a", Limit: 3, Descending: descending})); got > 8 {
			t.Errorf("descending %v: room for %d envelopes; want 3", descending, got)
		}
	}
	var got []string
	c.Newest("a", func(e *Envelope) bool {
		got = append(got, string(e.Payload))
		return len(got) < 2
	})
	c.Newest("none", func(*Envelope) bool { t.Error("a source without lines has one"); return true })
	if want := "4999 4998"; strings.Join(got, " ") != want {
		t.Errorf("the newest are %v; want %s", got, want)
	}
}

func TestAppendCopiesPayload(t *testing.T) {
	c := New(Config{})
	buf := []byte("before")
	e := line("a", 1, "")
	e.Payload = buf
	c.Append(e)
	copy(buf, "after!")
	if got := texts(c.Read(Query{SourceID: "a"})); got != "1:before" {
		t.Errorf("got %q; want 1:before", got)
	}
}

func TestBounds(t *testing.T) {
	c := New(Config{MaxPerSource: 3, MaxBytes: 1 << 20})
	for at := range int64(5) {
		c.Append(line("a", at, "x"))
	}
	if got := texts(c.Read(Query{SourceID: "a"})); got != "2:x 3:x 4:x" {
		t.Errorf("by count: got %q; want the newest three", got)
	}
	if got := c.Meta()["a"]; got.Count != 3 || got.Expired != 2 || got.Oldest.UnixNano() != 2 || got.Newest.UnixNano() != 4 {
		t.Errorf("got meta %+v", got)
	}
	c = New(Config{MaxBytes: 8000})
	for i := range 10 {
		for at := range int64(3) {
			c.Append(line(fmt.Sprint("s", i), at, strings.Repeat("x", 1000-envelopeOverhead))) // 1000 bytes each
		}
	}
	var left []string
	for i := range 10 {
		if n := len(c.Read(Query{SourceID: fmt.Sprint("s", i)})); n > 0 {
			left = append(left, fmt.Sprintf("s%d=%d", i, n))
		}
	}
	want := []string{"s2=1", "s3=1", "s4=1", "s5=1", "s6=1", "s7=1", "s8=1", "s9=1"}
	if diff := cmp.Diff(want, left); diff != "" {
		t.Errorf("by bytes (-want +got):\n%s", diff)
	}
}

func TestDelete(t *testing.T) {
	c := New(Config{})
	c.Append(line("a", 1, "x"))
	c.Delete("a")
	c.Delete("a")
	if len(c.Meta()) != 0 || c.shelves[logShelf].bytes != 0 {
		t.Errorf("got %v and %d bytes; want nothing left", c.Meta(), c.shelves[logShelf].bytes)
	}
}

// TestInvariants holds the books against what is really there.
func TestInvariants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := New(Config{MaxPerSource: 5, MaxBytes: 4000})
		for range rapid.IntRange(0, 60).Draw(t, "n") {
			source := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "source")
			size := rapid.IntRange(0, 2000).Draw(t, "size")
			c.Append(line(source, int64(rapid.IntRange(0, 20).Draw(t, "at")), strings.Repeat("x", size)))
		}
		var sum int64
		for id := range c.shelves[logShelf].sources {
			es := c.Read(Query{SourceID: id, Start: time.Unix(0, -1)})
			if len(es) == 0 || len(es) > 5 {
				t.Fatalf("source %s has %d envelopes", id, len(es))
			}
			for i := range es {
				sum += es[i].bytes()
				if i > 0 && !es[i].Timestamp.After(es[i-1].Timestamp) {
					t.Fatalf("out of order: %s", texts(es))
				}
			}
		}
		if sum != c.shelves[logShelf].bytes || sum > 4000+2200 {
			t.Fatalf("got %d bytes in the books, %d really", c.shelves[logShelf].bytes, sum)
		}
	})
}

func TestSaveLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "logcache")
	c := New(Config{})
	e := line("a", 1, "one")
	e.Tags, e.Err = map[string]string{"source_type": "APP/PROC/WEB"}, true
	c.Append(e)
	c.Append(line("b", 2, "two"))
	if err := c.Save(path); err != nil {
		t.Fatal(err)
	}
	again := New(Config{})
	again.Load(path, slog.New(slog.DiscardHandler))
	if diff := cmp.Diff(everything(c), everything(again)); diff != "" {
		t.Errorf("after a restart (-want +got):\n%s", diff)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"cut": string(data[:len(data)-3]), "empty": "", "text": "hello", "version": strings.Replace(string(data), "log cache", "log-cache", 1)}
	for name, content := range files {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		var warned strings.Builder
		damaged := New(Config{})
		damaged.Load(path, slog.New(slog.NewTextHandler(&warned, nil)))
		if len(damaged.Meta()) != 0 || !strings.Contains(warned.String(), "level=WARN") {
			t.Errorf("%s: got %v, log %q; want nothing and a warning", name, damaged.Meta(), warned.String())
		}
	}
	damaged := New(Config{})
	damaged.Load(path+"-missing", slog.New(slog.NewTextHandler(t.Output(), nil)))
	if left, _ := filepath.Glob(path + ".*"); len(left) != 0 {
		t.Errorf("left behind: %q", left)
	}
}

func FuzzDecode(f *testing.F) {
	var b strings.Builder
	if err := encode(&b, []view{{source: "a", newest: []Envelope{line("a", 1, "one")}}}, 1); err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(b.String()))
	f.Fuzz(func(t *testing.T, data []byte) {
		all, err := decode(strings.NewReader(string(data)))
		if err == nil {
			New(Config{}).appendAll(all)
		}
	})
}
