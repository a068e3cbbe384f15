package cell

import (
	"runtime"
	"time"

	"cupola/runtime/lrp"
)

// lookInterval is the shortest interval for CPU usage: over shorter ones the
// clock's resolution dominates.
const lookInterval = 500 * time.Millisecond

// usage is the CPU use between two looks at a container.
type usage struct {
	at      time.Time // zero: no measurement yet
	cpu     time.Duration
	percent float64
}

// sample takes the CPU time used until now, and returns the use in percent of one
// core.
func (u *usage) sample(now time.Time, cpu time.Duration) float64 {
	passed := now.Sub(u.at)
	if passed < lookInterval {
		return u.percent
	}
	u.percent = 100 * float64(max(cpu-u.cpu, 0)) / float64(passed)
	u.at, u.cpu = now, cpu
	return u.percent
}

// recentFor is how long a measurement is returned again. Cloud Controller shows Diego's
// measurements for up to 15 s.
const recentFor = 2 * time.Second

// measured is the last measurement of a container.
type measured struct {
	at    time.Time // zero: there is none
	stats lrp.Stats
}

// Stats returns a container's resource usage, as it was at most recentFor ago; false if it
// does not run here. CPUPercent is since the measurement before, or since the start.
func (c *Cell) Stats(guid string) (lrp.Stats, bool) {
	<-c.adopted
	i := c.instance(guid)
	if i == nil {
		return lrp.Stats{}, false
	}
	r := i.record()
	if r.StartedAt.IsZero() {
		return lrp.Stats{}, false
	}
	now := time.Now()
	s, ok := i.recent(now)
	if !ok {
		if s, ok = c.measure(i, now); !ok {
			return s, false
		}
	}
	s.Uptime, s.LogRate = now.Sub(r.StartedAt), i.limiter.Rate()
	s.FilesDigest, s.FilesSince = r.FilesDigest, r.FilesSince
	return s, true
}

// recent is the last measurement, if it is recent.
func (i *instance) recent(now time.Time) (lrp.Stats, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.measured.stats, !i.measured.at.IsZero() && now.Sub(i.measured.at) < recentFor
}

// measure reads what a container uses; false if it has just ended.
func (c *Cell) measure(i *instance, now time.Time) (lrp.Stats, bool) {
	guid := i.guid()
	used, err := c.cfg.Containers.Stats(guid)
	if err != nil {
		return lrp.Stats{}, false
	}
	disk, err := c.cfg.RootFS.DiskUsage(guid)
	if err != nil {
		return lrp.Stats{}, false
	}
	s := i.cpuStats(now, used.CPU)
	s.MemoryBytes, s.MemoryQuota = used.MemoryBytes, uint64(i.spec.MemoryMB)<<20
	s.DiskBytes, s.DiskQuota = uint64(disk), uint64(i.spec.DiskMB)<<20
	if memory, err := c.cfg.Files.Used(guid); err == nil {
		s.DiskBytes += uint64(memory)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.measured = measured{now, s}
	return s, true
}

// Measured is the usage of a container, with its log target.
type Measured struct {
	lrp.Stats
	Log          lrp.LogTarget // read-only: its tags are shared
	GUID         string
	LogRateLimit int64   // bytes a second; -1: none
	EntitledCPU  float64 // cores that its CPU share is worth
}

// Measure returns the usage of all started containers.
func (c *Cell) Measure() (all []Measured) {
	<-c.adopted
	for _, i := range c.all() {
		if s, ok := c.Stats(i.guid()); ok {
			all = append(all, Measured{Stats: s, Log: i.logTarget(""), GUID: i.guid(), LogRateLimit: i.spec.LogRateLimitByte, EntitledCPU: c.entitledCores(i.spec.CPUWeight)})
		}
	}
	return all
}

func (i *instance) cpuStats(now time.Time, cpu time.Duration) lrp.Stats {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.usage.at.IsZero() {
		i.usage.at = i.rec.StartedAt
		if now.Sub(i.usage.at) < lookInterval {
			return lrp.Stats{CPU: cpu, Uptime: now.Sub(i.rec.StartedAt)}
		}
	}
	percent := i.usage.sample(now, cpu)
	return lrp.Stats{
		CPU: cpu, CPUPercent: percent, Uptime: now.Sub(i.rec.StartedAt),
		Entitlement: percent / 100 / i.cell.entitledCores(i.spec.CPUWeight),
	}
}

// fullWeightMB is the memory of a container to which CC gives the full weight.
const fullWeightMB = 8192

// entitledCores is the part of the machine that a weight is entitled to: its
// shares of those that a cell full of containers has. CC makes weights of
// memory, 100 for 8 GB, so a full cell's shares follow from its memory.
func (c *Cell) entitledCores(weight int) float64 {
	cell := float64(c.cfg.Presence.MemoryMB) / fullWeightMB * 100
	cell = max(cell, float64(weight), 1)
	return float64(max(weight, 1)) / cell * float64(runtime.NumCPU())
}
