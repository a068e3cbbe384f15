package autoscaling

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// met reports whether all points of the rule's breach duration are beyond its threshold. Points
// must reach back further than that.
func (r Rule) met(points []Point, now time.Time) bool {
	since := now.Add(-r.breach())
	if len(points) == 0 || !points[0].At.Before(since) {
		return false
	}
	within := 0
	for _, p := range points {
		if p.At.Before(since) {
			continue
		}
		if within++; !r.beyond(p.Value) {
			return false
		}
	}
	return within > 0
}

func (r Rule) beyond(value int64) bool {
	switch r.Operator {
	case ">":
		return value > r.Threshold
	case ">=":
		return value >= r.Threshold
	case "<":
		return value < r.Threshold
	}
	return value <= r.Threshold
}

// reason is what the history says of a rule that was met (App Autoscaler's words).
func (r Rule) reason(unit string) string {
	return fmt.Sprintf("%s instance(s) because %s %s %d%s for %d seconds", r.Adjustment, r.Metric, r.Operator, r.Threshold, unit, int(r.breach().Seconds()))
}

// apply is the number of instances after an adjustment. A percentage changes it by at least one.
func apply(adjustment string, instances int) int {
	text, percentage := strings.CutSuffix(adjustment, "%")
	n, _ := strconv.Atoi(text) // it is as its pattern demands
	if !percentage {
		return instances + n
	}
	changed := int(math.Floor(float64(instances)*(1+float64(n)/100) + 0.5))
	if changed == instances {
		changed += n / max(n, -n)
	}
	return changed
}

// within is a number of instances within limits, and what the history says if they changed it.
func within(instances, lowest, highest int) (int, string) {
	switch {
	case instances < lowest:
		return lowest, fmt.Sprintf("limited by min instances %d", lowest)
	case instances > highest:
		return highest, fmt.Sprintf("limited by max instances %d", highest)
	}
	return instances, ""
}
