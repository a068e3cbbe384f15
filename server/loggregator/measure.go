package loggregator

import (
	"context"
	"maps"
	"math"
	"slices"
	"time"

	"cupola/runtime/cell"
	"cupola/server/logcache"
	"cupola/server/logcache/history"
)

// measureInterval is how often containers are measured (Diego).
const measureInterval = 15 * time.Second

// Measure keeps what containers use in the log cache, until ctx ends.
func (s *Stream) Measure(ctx context.Context, measure func() []cell.Measured) error {
	return s.EachMeasure(ctx, func(_ context.Context, now time.Time) error {
		for _, m := range measure() {
			if m.Log.GUID != "" {
				s.gauge(m, now)
			}
		}
		return nil
	})
}

// EachMeasure calls measure as often as containers are measured, until ctx ends. An error is logged.
func (s *Stream) EachMeasure(ctx context.Context, measure func(ctx context.Context, now time.Time) error) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	<-timer.C
	for {
		if err := measure(ctx, time.Now()); err != nil && ctx.Err() == nil {
			s.Log.Warn("metrics were not measured", "err", err)
		}
		// At the same seconds each time, which takes less room on the disk.
		timer.Reset(time.Until(time.Now().Truncate(measureInterval).Add(measureInterval)))
		select {
		case <-timer.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// gauge keeps what a container uses. The cache has it as one envelope, which takes
// less room; streams get Diego's three (diego-logging-client: SendAppMetrics,
// SendAppLogRate), for a selector names all metrics of an envelope.
func (s *Stream) gauge(m cell.Measured, now time.Time) {
	e := logcache.Envelope{Timestamp: now, SourceID: m.Log.GUID, InstanceID: m.Log.Instance, Tags: m.Log.Tags, Kind: logcache.Gauge}
	groups := [][]logcache.Metric{usageOf(m), ratesOf(m), logRateOf(m)}
	for _, group := range groups {
		e.Metrics = group
		s.Hub.Publish(e)
	}
	e.Metrics = slices.Concat(groups...)
	s.Cache.Append(e)
	s.record(&e)
}

// Gauge keeps what was measured of a service instance.
func (s *Stream) Gauge(e logcache.Envelope) {
	tags := fromCell.tags()
	maps.Copy(tags, e.Tags)
	e.Tags = tags
	s.keep(e)
	s.record(&e)
}

// recorded are the gauges of which the history keeps means at coarse resolutions, and of
// some maxima; of the others it keeps the last value.
var recorded = map[string]history.Kind{"cpu": history.Peak, "cpu_entitlement": history.Peak, "memory": history.Peak, "disk": history.Mean, "log_rate": history.Mean,
	"persistent_disk": history.Mean, "connections": history.Peak}

// record keeps gauges in the history.
func (s *Stream) record(e *logcache.Envelope) {
	if s.Cache.History == nil {
		return
	}
	points := make([]history.Point, 0, len(e.Metrics))
	for _, m := range e.Metrics {
		points = append(points, history.Point{Name: m.Name, Kind: recorded[m.Name], Value: precise(m)})
	}
	s.Cache.History.Append(history.Origin{Source: e.SourceID, Instance: e.InstanceID, Tags: e.Tags}, e.Timestamp, points...)
}

// precise is a metric without digits that say nothing, which would take most of its room
// on the disk: it is exact to a thousandth of a percent, or a millisecond.
func precise(m logcache.Metric) float64 {
	switch m.Unit {
	case "percentage":
		return math.Round(m.Value*(1<<10)) / (1 << 10)
	case "nanoseconds":
		return math.Round(m.Value/(1<<20)) * (1 << 20)
	}
	return m.Value
}

// WebGauges are what was measured of the instances of an app's web process since a time, by the
// names of Diego's gauges.
func (s *Stream) WebGauges(appGUID string, since time.Time) (all []map[string]float64) {
	for _, e := range s.Cache.Read(logcache.Query{SourceID: appGUID, Kinds: []logcache.Kind{logcache.Gauge}, Start: since}) {
		if e.Tags[tagProcess] != "web" {
			continue
		}
		gauges := map[string]float64{}
		for _, m := range e.Metrics {
			gauges[m.Name] = m.Value
		}
		all = append(all, gauges)
	}
	return all
}

// usageOf is what the first protocol calls a container metric.
func usageOf(m cell.Measured) []logcache.Metric {
	return []logcache.Metric{
		{Name: "cpu", Unit: "percentage", Value: m.CPUPercent},
		{Name: "memory", Unit: "bytes", Value: float64(m.MemoryBytes)},
		{Name: "memory_quota", Unit: "bytes", Value: float64(m.MemoryQuota)},
		{Name: "disk", Unit: "bytes", Value: float64(m.DiskBytes)},
		{Name: "disk_quota", Unit: "bytes", Value: float64(m.DiskQuota)},
	}
}

func logRateOf(m cell.Measured) []logcache.Metric {
	return []logcache.Metric{
		{Name: "log_rate", Unit: "B/s", Value: float64(m.LogRate)},
		{Name: "log_rate_limit", Unit: "B/s", Value: float64(m.LogRateLimit)},
	}
}

// ratesOf are the newer metrics of a container.
func ratesOf(m cell.Measured) []logcache.Metric {
	return []logcache.Metric{
		{Name: "cpu_entitlement", Unit: "percentage", Value: m.Entitlement * 100},
		{Name: "absolute_usage", Unit: "nanoseconds", Value: float64(m.CPU)},
		{Name: "absolute_entitlement", Unit: "nanoseconds", Value: m.EntitledCPU * float64(m.Uptime)},
		{Name: "container_age", Unit: "nanoseconds", Value: float64(m.Uptime)},
	}
}
