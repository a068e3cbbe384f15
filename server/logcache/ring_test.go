package logcache

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// plainRing does what a ring does, with a sorted list.
type plainRing []Envelope

func (p *plainRing) insert(e Envelope) Envelope {
	taken := func(at time.Time) bool {
		return slices.ContainsFunc(*p, func(o Envelope) bool { return o.Timestamp.Equal(at) })
	}
	for taken(e.Timestamp) {
		e.Timestamp = e.Timestamp.Add(1)
	}
	*p = append(*p, e)
	slices.SortFunc(*p, func(a, b Envelope) int { return a.Timestamp.Compare(b.Timestamp) })
	return e
}

// However envelopes come, are packed and dropped, a ring has what a sorted list has.
func TestRing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, want := &ring{source: "a"}, plainRing{}
		now := int64(0)
		for range rapid.IntRange(1, 150).Draw(t, "n") {
			switch op := rapid.IntRange(0, 9).Draw(t, "op"); {
			case op == 0 && len(want) > 0:
				if got := r.evict(); got != want[0].bytes() {
					t.Fatalf("dropped %d bytes; want %d", got, want[0].bytes())
				}
				want = want[1:]
			case op == 1:
				r.pack(rapid.Bool().Draw(t, "quiet"))
			default:
				now += int64(rapid.SampledFrom([]int{0, 1, 2, 100, -1, -5, -500}).Draw(t, "later"))
				e := line("a", now, strings.Repeat("x", rapid.SampledFrom([]int{0, 10, 3000, 9000}).Draw(t, "size")))
				e.Tags = map[string]string{"n": fmt.Sprint(now % 3)}
				if got, is := r.insert(e), want.insert(e); !got.Timestamp.Equal(is.Timestamp) {
					t.Fatalf("inserted at %d; want %d", got.Timestamp.UnixNano(), is.Timestamp.UnixNano())
				}
			}
			check(t, r, want)
		}
	})
}

// check holds a ring against a list.
func check(t *rapid.T, r *ring, want plainRing) {
	from := time.Unix(0, int64(rapid.IntRange(-100, 1000).Draw(t, "from")))
	to := from.Add(time.Duration(rapid.IntRange(0, 1000).Draw(t, "long")))
	part := slices.DeleteFunc(slices.Clone(want), func(e Envelope) bool { return e.Timestamp.Before(from) || !e.Timestamp.Before(to) })
	var all, some, turned plainRing
	whole, between := r.all(), r.between(from, to)
	for p := range whole.parts(false) {
		all = append(all, p...)
	}
	for p := range between.parts(false) {
		some = append(some, p...)
	}
	for e := range between.backward() {
		turned = append(turned, *e)
	}
	slices.Reverse(turned)
	var bytes, loose int64
	for i := range want {
		bytes += want[i].bytes()
	}
	for i := range r.newest {
		loose += r.newest[i].bytes()
	}
	if d := cmp.Diff(texts(want)+"|"+texts(part)+"|"+texts(part), texts(all)+"|"+texts(some)+"|"+texts(turned)); d != "" {
		t.Fatal(d)
	}
	if r.count != len(want) || r.bytes != bytes || r.loose != loose {
		t.Fatalf("got %d envelopes of %d bytes, %d of them loose; want %d of %d, %d loose", r.count, r.bytes, r.loose, len(want), bytes, loose)
	}
	if len(want) == 0 {
		return
	}
	if from, to := r.span(); !from.Equal(want[0].Timestamp) || !to.Equal(want[len(want)-1].Timestamp) {
		t.Fatalf("got the span %s to %s", from, to)
	}
}

// Lines that come in the order of an earlier time, as after a clock was set back, are not packed and unpacked one by one.
func TestRingOfASetBackClock(t *testing.T) {
	r := &ring{source: "a"}
	for at := range int64(2000) {
		r.insert(line("a", 1_000_000+at, "a line"))
	}
	if len(r.chunks) < 10 {
		t.Fatalf("got %d chunks", len(r.chunks))
	}
	for at := range int64(10) {
		r.insert(line("a", 1000+at, "a line"))
		if len(r.chunks) > 0 {
			t.Fatalf("%d chunks after %d lines of before", len(r.chunks), at+1)
		}
	}
	r.pack(true)
	if r.count != 2010 || len(r.newest) > 0 {
		t.Errorf("got %d envelopes, %d of them loose", r.count, len(r.newest))
	}
}
