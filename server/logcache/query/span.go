package query

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/prometheus/promql/parser"
)

const (
	defaultStep = 15 * time.Second // of containers' metrics
	maxPoints   = 11_000           // of a series (Prometheus)
)

// span is when a query is asked for; step is 0 for the instant start.
type span struct {
	start, end time.Time
	step       time.Duration
}

// form is what a request says, and when it came.
type form struct {
	value func(name string) string
	now   time.Time
}

func parseInstant(f form) (s span, err error) {
	s.start, err = f.time("time", f.now)
	return s, err
}

func parseRange(f form) (s span, err error) {
	var errs [3]error
	s.start, errs[0] = f.time("start", time.Time{})
	s.end, errs[1] = f.time("end", time.Time{})
	s.step, errs[2] = parseStep(f.value("step"))
	if err := errors.Join(errs[:]...); err != nil {
		return s, err
	}
	if s.end.Before(s.start) {
		return s, errors.New("end timestamp must not be before start time")
	}
	if s.end.Sub(s.start)/s.step > maxPoints {
		return s, errors.New("exceeded maximum resolution of 11,000 points per timeseries. Try decreasing the query resolution (?step=XX)")
	}
	return s, nil
}

// time is a field in seconds since 1970 or as RFC 3339 has it; without
// otherwise it has to be there.
func (f form) time(name string, otherwise time.Time) (time.Time, error) {
	v := f.value(name)
	if v == "" && !otherwise.IsZero() {
		return otherwise, nil
	}
	if seconds, err := strconv.ParseFloat(v, 64); err == nil && math.Abs(seconds) < math.MaxInt64/float64(time.Second) {
		return time.UnixMilli(int64(seconds * 1000)).UTC(), nil
	}
	t, err := time.Parse(time.RFC3339Nano, v)
	if err != nil {
		return t, fmt.Errorf("cannot parse %q of %q to a valid timestamp", v, name)
	}
	return t, nil
}

// parseStep reads seconds, or a duration like 1m.
func parseStep(v string) (time.Duration, error) {
	seconds, err := strconv.ParseFloat(v, 64)
	if err != nil {
		seconds, err = parseDuration(v)
	}
	if err != nil || !(math.Abs(seconds) < math.MaxInt64/float64(time.Second)) { // neither is NaN
		return 0, fmt.Errorf("cannot parse %q to a valid duration", v)
	}
	d := time.Duration(seconds * float64(time.Second))
	if d < time.Millisecond {
		return 0, errors.New("zero or negative query resolution step widths are not accepted. Try a positive integer")
	}
	return d, nil
}

// parseDuration reads a duration as PromQL writes it, which is a number of
// seconds there.
func parseDuration(v string) (seconds float64, err error) {
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(v)
	if err != nil {
		return 0, err
	}
	number, ok := expr.(*parser.NumberLiteral)
	if !ok || !number.Duration || strings.ContainsAny(v, "+-# \t\n\r()") { // a literal and nothing else
		return 0, errors.New("not a duration")
	}
	return number.Val, nil
}
