package autoscaling

import (
	"math"
	"time"
)

// Metric is what a rule looks at: one of those below, which are measured, or a custom one, which apps
// submit.
type Metric string

// The metrics that are measured (App Autoscaler: docs/user_guide.md).
const (
	MemoryUsed   Metric = "memoryused"
	MemoryUtil   Metric = "memoryutil"
	CPU          Metric = "cpu"
	CPUUtil      Metric = "cpuutil"
	Disk         Metric = "disk"
	DiskUtil     Metric = "diskutil"
	Throughput   Metric = "throughput"
	ResponseTime Metric = "responsetime"
)

// kind is how a metric is measured and what thresholds it may have (App Autoscaler:
// api/default_config.json has those of cpu, cpuutil, disk and diskutil).
type kind struct {
	unit     string
	min, max int64
	// of is the value of one measurement of an instance, by the names of Diego's gauges;
	// nil: requests are counted.
	of func(gauges map[string]float64) float64
}

const noMax = math.MaxInt64

var kinds = map[Metric]kind{
	MemoryUsed:   {"MB", 0, noMax, func(g map[string]float64) float64 { return g["memory"] / mebi }},
	MemoryUtil:   {"%", 1, 100, func(g map[string]float64) float64 { return percent(g["memory"], g["memory_quota"]) }},
	CPU:          {"%", 1, 100, func(g map[string]float64) float64 { return g["cpu"] }},
	CPUUtil:      {"%", 1, 100, func(g map[string]float64) float64 { return g["cpu_entitlement"] }},
	Disk:         {"MB", 1, 2048, func(g map[string]float64) float64 { return g["disk"] / mebi }},
	DiskUtil:     {"%", 1, 100, func(g map[string]float64) float64 { return percent(g["disk"], g["disk_quota"]) }},
	Throughput:   {"rps", 0, noMax, nil},
	ResponseTime: {"ms", 0, noMax, nil},
}

const mebi = 1 << 20

func (m Metric) custom() bool {
	_, known := kinds[m]
	return !known
}

func percent(part, whole float64) float64 {
	if whole <= 0 {
		return 0
	}
	return part / whole * 100
}

// measured is what an app's web instances did during a time.
type measured struct {
	gauges    []map[string]float64 // of all instances; Diego measures each every 15 s
	instances int
	requests  requests
	during    time.Duration // 0: requests were not counted
	submitted map[Metric]tally
}

// requests are how many ended, and how long they took together.
type requests struct {
	count int64
	took  time.Duration
}

// value is a metric's; false: nothing was measured. Whole numbers, rounded up, as App Autoscaler
// compares them: of instances their mean, of throughput what each instance got.
func (m measured) value(of Metric) (int64, bool) {
	k := kinds[of]
	switch {
	case k.of == nil && (m.during <= 0 || m.instances == 0):
		return 0, false
	case of == Throughput:
		return int64(math.Ceil(float64(m.requests.count) / m.during.Seconds() / float64(m.instances))), true
	case of == ResponseTime:
		return int64(math.Ceil(float64(m.requests.took.Milliseconds()) / float64(max(m.requests.count, 1)))), true
	case len(m.gauges) == 0:
		return 0, false
	}
	sum := 0.0
	for _, g := range m.gauges {
		sum += k.of(g)
	}
	return int64(math.Ceil(sum / float64(len(m.gauges)))), true
}

// tally is what came in of a custom metric.
type tally struct {
	sum   float64
	count int
	unit  string
}

// mean is that of all instances' values, as App Autoscaler's aggregator has it.
func (t tally) mean() int64 {
	return int64(math.Ceil(min(max(t.sum/float64(t.count), -maxInteger), maxInteger)))
}

// Point is a metric at one time.
type Point struct {
	At    time.Time
	Value int64
	Unit  string
}

// kept is how long points are: twice the longest breach duration.
const kept = 2 * time.Hour

// series are an app's metrics, the oldest point first.
type series map[Metric][]Point

// add adds what was measured, and forgets the oldest.
func (s series) add(now time.Time, m measured) {
	for of, k := range kinds {
		if v, ok := m.value(of); ok {
			s[of] = append(s[of], Point{now, v, k.unit})
		}
	}
	for of, t := range m.submitted {
		s[of] = append(s[of], Point{now, t.mean(), t.unit})
	}
	for of, points := range s {
		for len(points) > 0 && now.Sub(points[0].At) > kept {
			points = points[1:]
		}
		if s[of] = points; len(points) == 0 {
			delete(s, of)
		}
	}
}
