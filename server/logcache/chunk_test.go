package logcache

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// appTags are as many tags as the lines of an app have.
func appTags(source string) map[string]string {
	return map[string]string{"source_type": source, "origin": "rep", "deployment": "cf", "job": "diego-cell", "index": "0", "ip": "127.0.0.1", "instance_id": "0", "process_type": "web",
		"app_id": "6f1c9a52-77e0-4b5c-9f0e-3d1b0c2a9e11", "app_name": "shop", "process_id": "6f1c9a52-77e0-4b5c-9f0e-3d1b0c2a9e11", "process_instance_id": "0f7c1e1e-1d7e-4f1c-6d1b-2222",
		"space_id": "0a4de3d1-53f5-4f2b-8a58-6f6a3c0d2b11", "space_name": "production", "organization_id": "1a4de3d1-53f5-4f2b-8a58-6f6a3c0d2b12", "organization_name": "example"}
}

// gauge is a measurement of a container.
func gauge(source string, at time.Time, n int) Envelope {
	e := Envelope{Timestamp: at, SourceID: source, InstanceID: "0", Kind: Gauge, Tags: appTags("APP/PROC/WEB")}
	for i, name := range []string{"cpu", "memory", "memory_quota", "disk", "disk_quota", "cpu_entitlement", "absolute_usage", "absolute_entitlement", "container_age", "log_rate", "log_rate_limit"} {
		e.Metrics = append(e.Metrics, Metric{Name: name, Unit: "bytes", Value: float64(i*1000 + n)})
	}
	return e
}

func envelopes() *rapid.Generator[Envelope] {
	text := rapid.SampledFrom([]string{"", "0", "1", "web", "söme", "a text that no other has", "app_id", "\x00"})
	tags := rapid.Custom(func(t *rapid.T) map[string]string {
		if rapid.Bool().Draw(t, "no tags") {
			return nil
		}
		return rapid.MapOfN(text, text, 0, 4).Draw(t, "tags")
	})
	metric := rapid.Custom(func(t *rapid.T) Metric {
		return Metric{Name: text.Draw(t, "name"), Unit: text.Draw(t, "unit"), Value: rapid.SampledFrom([]float64{0, 1, 2, -1, 1e300, math.Inf(1), 0.1}).Draw(t, "value")}
	})
	return rapid.Custom(func(t *rapid.T) Envelope {
		e := Envelope{SourceID: "a", InstanceID: text.Draw(t, "instance"), Kind: rapid.SampledFrom(kinds).Draw(t, "kind"), Tags: tags.Draw(t, "tags"), Err: rapid.Bool().Draw(t, "err")}
		e.Timestamp = time.Unix(0, rapid.Int64Range(-1<<40, math.MaxInt64/2).Draw(t, "at"))
		if rapid.Bool().Draw(t, "timed") {
			e.Began = time.Unix(0, rapid.Int64Range(-1<<40, math.MaxInt64/2).Draw(t, "began"))
		}
		if rapid.Bool().Draw(t, "text") {
			e.Payload = rapid.SliceOfN(rapid.Byte(), 0, 200).Draw(t, "payload")
		}
		if n := rapid.IntRange(0, 3).Draw(t, "metrics"); n > 0 {
			e.Metrics = rapid.SliceOfN(metric, n, n).Draw(t, "metrics")
		}
		return e
	})
}

// What is packed comes out as it was.
func TestChunk(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOfN(envelopes(), 1, 20).Draw(t, "envelopes")
		c := pack(want)
		if d := cmp.Diff(want, c.unpack("a")); d != "" {
			t.Fatal(d)
		}
		var bytes int64
		for i := range want {
			bytes += want[i].bytes()
		}
		if c.count != len(want) || c.bytes != bytes || !c.oldestTime().Equal(want[0].Timestamp) || !c.newestTime().Equal(want[len(want)-1].Timestamp) {
			t.Fatalf("got %d envelopes of %d bytes from %s to %s", c.count, c.bytes, c.oldestTime(), c.newestTime())
		}
	})
}

// Times that nanoseconds do not reach stay as they are, and in order.
func TestTimesThatDoNotFit(t *testing.T) {
	c := New(Config{})
	far := time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	for n := range 3 {
		c.Append(Envelope{SourceID: "a", Timestamp: far.Add(time.Duration(n)), Payload: []byte{'x'}})
		c.Append(line("a", int64(n), "y"))
	}
	want := everything(c)["a"]
	c.Pack()
	c.Pack()
	if got := everything(c)["a"]; cmp.Diff(want, got) != "" || len(got) != 6 || !got[5].Timestamp.Equal(far.Add(2)) {
		t.Errorf("got %v; want %v", got, want)
	}
}

// packedBytes are what all chunks of a cache take, and how many envelopes are in none.
func packedBytes(c *Cache) (bytes, loose int) {
	for i := range c.shelves {
		for _, r := range c.shelves[i].sources {
			loose += len(r.newest) + len(r.oldest)
			for _, chunk := range r.chunks {
				bytes += cap(chunk.data)
			}
		}
	}
	return bytes, loose
}

// A source that is silent takes a tenth of what its envelopes count for.
func TestSilentSourcesTakeLittle(t *testing.T) {
	c := New(Config{})
	for n := range 30 {
		at := time.Unix(1_800_000_000, 0).Add(time.Duration(n) * 15 * time.Second)
		c.Append(gauge("a", at, n))
		c.Append(Envelope{SourceID: "a", Timestamp: at, InstanceID: "0", Tags: appTags([]string{"APP/PROC/WEB", "RTR"}[n%2]), Payload: fmt.Appendf(nil, "line %d of an app", n)})
	}
	var counted int64
	for i := range c.shelves {
		counted += c.shelves[i].bytes
	}
	c.Pack()
	if _, loose := packedBytes(c); loose != 0 {
		t.Errorf("%d envelopes are in no chunk", loose)
	}
	c.Append(gauge("a", time.Unix(1_800_010_000, 0), 1))
	c.Pack()
	if _, loose := packedBytes(c); loose != 1 {
		t.Errorf("%d envelopes are in no chunk; want the one that came since", loose)
	}
	c.Pack()
	if bytes, loose := packedBytes(c); loose != 0 || int64(bytes) > counted/8 {
		t.Errorf("chunks take %d bytes, where envelopes count for %d, and %d are in none", bytes, counted, loose)
	}
}
