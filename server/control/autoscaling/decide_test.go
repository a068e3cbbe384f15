package autoscaling

import (
	"testing"
	"time"
)

func TestRuleIsMet(t *testing.T) {
	now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
	r := Rule{Metric: CPU, Operator: ">=", Threshold: 50, Breach: 60}
	// points are measured every 20 s, the last one now
	points := func(values ...int64) (all []Point) {
		for n, v := range values {
			all = append(all, Point{At: now.Add(-time.Duration(len(values)-1-n) * 20 * time.Second), Value: v})
		}
		return all
	}
	for name, c := range map[string]struct {
		points []Point
		want   bool
	}{
		"nothing":                          {nil, false},
		"all beyond it":                    {points(0, 50, 60, 70, 80), true},
		"one within it below":              {points(0, 50, 49, 70, 80), false},
		"it is measured for too short":     {points(90, 90, 90), false},
		"it reaches back just far enough":  {points(90, 90, 90, 90, 90), true},
		"only points from before, then no": {[]Point{{At: now.Add(-2 * time.Minute), Value: 90}}, false},
	} {
		if got := r.met(c.points, now); got != c.want {
			t.Errorf("%s: got %v; want %v", name, got, c.want)
		}
	}
}

func TestOperators(t *testing.T) {
	for operator, want := range map[string][3]bool{"<": {true, false, false}, "<=": {true, true, false}, ">": {false, false, true}, ">=": {false, true, true}} {
		for n, value := range []int64{9, 10, 11} {
			if got := (Rule{Operator: operator, Threshold: 10}).beyond(value); got != want[n] {
				t.Errorf("%d %s 10: got %v; want %v", value, operator, got, want[n])
			}
		}
	}
}

func TestAdjustment(t *testing.T) {
	for _, c := range []struct {
		adjustment      string
		instances, want int
	}{
		{"+1", 3, 4}, {"-2", 3, 1}, {"-5", 3, -2}, {"+50%", 4, 6}, {"-50%", 4, 2}, {"+10%", 1, 2}, {"-10%", 1, 0}, {"+100%", 3, 6}, {"+30%", 5, 7},
	} {
		if got := apply(c.adjustment, c.instances); got != c.want {
			t.Errorf("%d %s: got %d; want %d", c.instances, c.adjustment, got, c.want)
		}
	}
}

func TestMetrics(t *testing.T) {
	m := measured{instances: 2, requests: requests{100, 3 * time.Second}, during: 20 * time.Second, gauges: []map[string]float64{
		{"cpu": 10, "cpu_entitlement": 50, "memory": 10 * mebi, "memory_quota": 100 * mebi, "disk": mebi, "disk_quota": 4 * mebi},
		{"cpu": 15, "cpu_entitlement": 70, "memory": 20 * mebi, "memory_quota": 100 * mebi, "disk": 2 * mebi, "disk_quota": 4 * mebi},
	}}
	for of, want := range map[Metric]int64{CPU: 13, CPUUtil: 60, MemoryUsed: 15, MemoryUtil: 15, Disk: 2, DiskUtil: 38, Throughput: 3, ResponseTime: 30} {
		if got, ok := m.value(of); got != want || !ok {
			t.Errorf("%s: got %d, %v; want %d", of, got, ok, want)
		}
	}
	for of := range kinds {
		if got, ok := (measured{}).value(of); ok {
			t.Errorf("%s of nothing: got %d; want none", of, got)
		}
	}
	s := series{}
	at := time.Now()
	for n := range 1000 {
		s.add(at.Add(time.Duration(n)*interval), m)
	}
	if n := len(s[CPU]); n != int(kept/interval)+1 {
		t.Errorf("%d points are kept; want those of %v", n, kept)
	}
	s.add(at.Add(1000*interval), measured{submitted: map[Metric]tally{"jobs": {7, 2, "jobs"}, "far": {-1e300, 1, ""}}})
	if jobs, far := s["jobs"], s["far"]; len(jobs) != 1 || jobs[0].Value != 4 || jobs[0].Unit != "jobs" || far[0].Value != -maxInteger {
		t.Errorf("got %v and %v; want a mean of 4, and the least that a policy can mean", jobs, far)
	}
	if s.add(at.Add(1000*interval+3*kept), measured{}); len(s) != 0 {
		t.Errorf("metrics are kept of which nothing is known: %v", s)
	}
}
