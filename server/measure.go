package server

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"cupola/runtime/cell"
	"cupola/server/logcache"
	"cupola/server/router"
)

// measureInterval is how often containers are measured (Diego).
const measureInterval = 15 * time.Second

// measure keeps what containers use in the log cache, until ctx ends.
func (d *daemon) measure(ctx context.Context) error {
	tags := map[string]map[string]string{} // by container
	ticker := time.NewTicker(measureInterval)
	defer ticker.Stop()
	for {
		now, seen := time.Now(), map[string]map[string]string{}
		for _, m := range d.cell.Measure() {
			if m.Log.GUID == "" {
				continue
			}
			t, ok := tags[m.GUID]
			if !ok {
				t = withOrigin(m.Log.Tags, "rep")
			}
			seen[m.GUID] = t
			d.logs.Append(logcache.Envelope{Timestamp: now, SourceID: m.Log.GUID, InstanceID: m.Log.Instance, Tags: t, Kind: logcache.Gauge, Metrics: metricsOf(m)})
		}
		tags = seen
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
	}
}

func withOrigin(tags map[string]string, origin string) map[string]string {
	tags = maps.Clone(tags)
	if tags == nil {
		tags = map[string]string{}
	}
	tags["origin"] = origin
	return tags
}

// metricsOf are the metrics of a container by Diego's names and units.
func metricsOf(m cell.Measured) []logcache.Metric {
	return []logcache.Metric{
		{Name: "cpu", Unit: "percentage", Value: m.CPUPercent},
		{Name: "cpu_entitlement", Unit: "percentage", Value: m.Entitlement * 100},
		{Name: "memory", Unit: "bytes", Value: float64(m.MemoryBytes)},
		{Name: "memory_quota", Unit: "bytes", Value: float64(m.MemoryQuota)},
		{Name: "disk", Unit: "bytes", Value: float64(m.DiskBytes)},
		{Name: "disk_quota", Unit: "bytes", Value: float64(m.DiskQuota)},
		{Name: "log_rate", Unit: "B/s", Value: float64(m.LogRate)},
		{Name: "log_rate_limit", Unit: "B/s", Value: float64(m.LogRateLimit)},
		{Name: "absolute_usage", Unit: "nanoseconds", Value: float64(m.CPU)},
		{Name: "absolute_entitlement", Unit: "nanoseconds", Value: m.EntitledCPU * float64(m.Uptime)},
		{Name: "container_age", Unit: "nanoseconds", Value: float64(m.Uptime)},
	}
}

// timed is how long a request took. peer_type says from whose side it was seen
// (Loggregator).
func (d *daemon) timed(e router.AccessEntry, instance string) logcache.Envelope {
	return logcache.Envelope{Timestamp: e.At, SourceID: e.AppGUID, InstanceID: instance, Kind: logcache.Timer, Began: e.Began,
		Tags: d.timerTags.of(e.Method, e.Status), Metrics: []logcache.Metric{{Name: "http", Unit: "ns", Value: float64(e.At.Sub(e.Began))}}}
}

// methods are those that are told apart.
var methods = []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions, http.MethodConnect, http.MethodTrace}

// timerTags are the tags of all requests, which share them: a busy router makes
// none anew. What clients choose, like path and agent, is not among them.
type timerTags struct{ known sync.Map }

type timerKey struct {
	method string
	status int
}

func (t *timerTags) of(method string, status int) map[string]string {
	if !slices.Contains(methods, method) {
		method = "other"
	}
	if status < 100 || status > 599 {
		status = 0
	}
	key := timerKey{method, status}
	if tags, ok := t.known.Load(key); ok {
		return tags.(map[string]string)
	}
	tags, _ := t.known.LoadOrStore(key, map[string]string{
		"origin": "gorouter", "peer_type": "Server", "method": method, "status_code": strconv.Itoa(status),
	})
	return tags.(map[string]string)
}
