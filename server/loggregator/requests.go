package loggregator

import (
	"context"
	"math"
	"slices"
	"strconv"
	"sync"
	"time"

	"cupola/server/logcache"
	"cupola/server/logcache/history"
)

// What the history has of requests: counters that grow until nothing was counted for an
// hour, and begin again.
const (
	requestsTotal  = "http_requests_total"           // by instance, method and status
	requestSeconds = "http_request_duration_seconds" // a histogram of all requests of an app

	recordInterval  = time.Second
	measuredSeconds = int64(measureInterval / time.Second)
	countedFor      = 3600 // seconds
	maxCounters     = 4096 // of an app: instances answer with what status they like
)

// bounds are the upper bounds of the histogram's buckets, in seconds (Prometheus's).
var bounds = [...]float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, math.Inf(1)}

// bucketTags are the tags of the buckets; the last has those of the sum and the count.
var bucketTags = func() (all [len(bounds) + 1]map[string]string) {
	for i := range all {
		all[i] = map[string]string{"origin": "gorouter", "peer_type": "Server"}
		if i < len(bounds) {
			all[i]["le"] = strconv.FormatFloat(bounds[i], 'g', -1, 64)
		}
	}
	return all
}()

// requests counts requests between two records.
type requests struct {
	mu     sync.Mutex
	counts map[countKey]*counter
	apps   map[string]*durations
}

type countKey struct{ app, instance, method, status string }

// counter is a number and when it was recorded. Times are in seconds since 1970.
type counter struct {
	tags     map[string]string
	value    float64
	written  float64 // the value that the history has
	recorded int64   // when it got that; 0: never
	changed  int64   // when it was another
}

// durations is a histogram.
type durations struct {
	counter      // of all requests
	counters int // by instance, method and status
	buckets  [len(bounds)]float64
	sum      float64
	before   [len(bounds)]float64 // as written
	sumWas   float64
}

// count counts a request by its timer.
func (r *requests) count(timer *logcache.Envelope) {
	key := countKey{timer.SourceID, timer.InstanceID, timer.Tags["method"], timer.Tags["status_code"]}
	took := timer.Metrics[0].Value / float64(time.Second)
	bucket, _ := slices.BinarySearch(bounds[:], took)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.counts == nil {
		r.counts, r.apps = map[countKey]*counter{}, map[string]*durations{}
	}
	d := r.apps[key.app]
	if d == nil {
		d = &durations{}
		r.apps[key.app] = d
	}
	c := r.counts[key]
	if c == nil && d.counters < maxCounters {
		c = &counter{tags: timer.Tags}
		r.counts[key] = c
		d.counters++
	}
	if c != nil {
		c.value++
	}
	d.value++
	d.sum += took
	d.buckets[min(bucket, len(bounds)-1)]++
}

// Requests keeps numbers of requests in the history, until ctx ends.
func (s *Stream) Requests(ctx context.Context) error {
	ticker := time.NewTicker(recordInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			s.recordRequests(time.Now())
		case <-ctx.Done():
			return nil
		}
	}
}

// batch is what the history gets of an origin.
type batch struct {
	of    history.Origin
	at    int64
	point history.Point
}

// recordRequests keeps what was counted. What did not change is said once in a while.
func (s *Stream) recordRequests(now time.Time) {
	if s.Cache.History == nil {
		return
	}
	for _, b := range s.served.record(now.Unix()) {
		s.Cache.History.Append(b.of, time.Unix(b.at, 0), b.point)
	}
}

func (r *requests) record(now int64) (all []batch) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, c := range r.counts {
		of, times := history.Origin{Source: key.app, Instance: key.instance, Tags: c.tags}, c.due(now, 1)
		for _, at := range times {
			value := c.value
			if at < now {
				value = c.written
			}
			all = append(all, batch{of, at, history.Point{Name: requestsTotal, Kind: history.Fast, Value: value}})
		}
		if times != nil && c.note(now) {
			delete(r.counts, key)
			if d := r.apps[key.app]; d != nil {
				d.counters--
			}
		}
	}
	for app, d := range r.apps {
		times := d.due(now, measuredSeconds)
		for _, at := range times {
			all = append(all, d.batches(app, at, at < now)...)
		}
		if times == nil {
			continue
		}
		if d.before, d.sumWas = d.buckets, d.sum; d.note(now) {
			delete(r.apps, app)
		}
	}
	return all
}

// due reports whether a counter must be recorded now. One that grew is recorded at once, but
// not before interval is over, and for the time before with the value that it had, as
// it did not grow then; one that did not grow is recorded every 15 s.
func (c *counter) due(now, interval int64) []int64 {
	grew := c.value > c.written
	switch {
	case now-c.recorded < interval || !grew && now/measuredSeconds == c.recorded/measuredSeconds:
		return nil
	case grew && now-c.recorded >= 2*interval:
		return []int64{now - interval, now}
	}
	return []int64{now}
}

// note marks what is recorded now, and reports whether the counter ends.
func (c *counter) note(now int64) (over bool) {
	if c.value > c.written {
		c.written, c.changed = c.value, now
	}
	c.recorded = now
	return now-c.changed > countedFor
}

// batches is the histogram as it is, or as it was recorded last.
func (d *durations) batches(app string, at int64, before bool) (all []batch) {
	buckets, sum, count := d.buckets, d.sum, d.value
	if before {
		buckets, sum, count = d.before, d.sumWas, d.written
	}
	add := func(tags map[string]string, name string, value float64) {
		all = append(all, batch{history.Origin{Source: app, Tags: tags}, at, history.Point{Name: requestSeconds + name, Kind: history.Counter, Value: value}})
	}
	var below float64
	for i, n := range buckets {
		below += n
		add(bucketTags[i], "_bucket", below)
	}
	add(bucketTags[len(bounds)], "_count", count)
	add(bucketTags[len(bounds)], "_sum", math.Round(sum*(1<<20))/(1<<20))
	return all
}
