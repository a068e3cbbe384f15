package loggregator

import (
	"context"
	"time"

	"cupola/runtime/cell"
	"cupola/server/logcache"
)

// measureInterval is how often containers are measured (Diego).
const measureInterval = 15 * time.Second

// Measure keeps what containers use in the log cache, until ctx ends.
func (s *Stream) Measure(ctx context.Context, measure func() []cell.Measured) error {
	ticker := time.NewTicker(measureInterval)
	defer ticker.Stop()
	for {
		now := time.Now()
		for _, m := range measure() {
			if m.Log.GUID == "" {
				continue
			}
			s.Cache.Append(logcache.Envelope{Timestamp: now, SourceID: m.Log.GUID, InstanceID: m.Log.Instance, Tags: m.Log.Tags, Kind: logcache.Gauge, Metrics: metricsOf(m)})
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
	}
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
