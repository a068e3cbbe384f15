package autoscaling

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Violation is what is wrong with a policy, and where (App Autoscaler: policyvalidator).
type Violation struct {
	Context     string `json:"context"`
	Description string `json:"description"`
}

// Violations are all that is wrong with a policy. They are an error.
type Violations []Violation

func (v Violations) Error() string {
	return fmt.Sprintf("%s: %s", v[0].Context, v[0].Description)
}

// add notes that something is wrong at a path of names and indexes.
func (v *Violations) add(at path, format string, args ...any) {
	*v = append(*v, Violation{string(at), fmt.Sprintf(format, args...)})
}

// path leads to a value of a policy: (root).scaling_rules.0.
type path string

const root path = "(root)"

func (p path) at(name any) path { return path(fmt.Sprintf("%s.%v", p, name)) }

// maxParts bounds the rules of a policy, and its schedules of each kind.
const maxParts = 50

// Parse reads a policy, of either format, and returns it also as JSON without what it does not know: what that is
// accepted from is accepted again. Its error is Violations. now is the time that dates are compared
// with.
func Parse(text []byte, now time.Time) (policy *Policy, known string, err error) {
	p, err := ParseParameters(text, now)
	if err == nil && p.Policy == nil {
		return nil, "", Violations{{string(root), "instance_min_count is required"}}
	}
	return p.Policy, p.Known, err
}

// ParseParameters reads parameters of a binding, as Parse does.
func ParseParameters(text []byte, now time.Time) (p Parameters, err error) {
	var found Violations
	var value any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	err = d.Decode(&value)
	if err == nil && d.More() {
		err = errors.New("there is more after the policy")
	}
	if err != nil {
		found.add(root, "%s", err)
		return p, found
	}
	if validate(&found, value); len(found) > 0 {
		return p, found
	}
	o, _ := value.(map[string]any) // or validate had found it
	if p = take(o); len(o) == 0 {
		return p, nil
	}
	kept, err := json.Marshal(o)
	if err != nil {
		return p, err
	}
	p.Known = string(kept)
	if p.Policy, err = stored(p.Known); err != nil {
		return p, err
	}
	if p.Policy.check(&found, now); len(found) > 0 {
		return Parameters{}, found
	}
	return p, nil
}

// check finds what its schema does not say.
func (p *Policy) check(found *Violations, now time.Time) {
	if p.Min > p.Max {
		found.add(root.at("instance_min_count"), "instance_min_count %d is higher than instance_max_count %d", p.Min, p.Max)
	}
	for n, r := range p.Rules {
		r.check(found, n)
	}
	if p.Schedules != nil {
		p.Schedules.check(found, now)
	}
}

// maxAdjustment is beyond all that an app can have.
const maxAdjustment = 100_000

func (r Rule) check(found *Violations, n int) {
	at, k := root.at("scaling_rules").at(n), kinds[r.Metric]
	if by, err := strconv.Atoi(strings.TrimSuffix(r.Adjustment, "%")); err != nil || by > maxAdjustment || by < -maxAdjustment {
		found.add(at.at("adjustment"), "scaling_rules[%d].adjustment must be from -%d to +%d", n, maxAdjustment, maxAdjustment)
	}
	switch {
	case r.Metric.custom() || r.Threshold >= k.min && r.Threshold <= k.max:
	case k.max == noMax:
		found.add(at, "scaling_rules[%d].threshold for metric_type %s should be greater than or equal %d", n, r.Metric, max(k.min, 1))
	default:
		found.add(at, "scaling_rules[%d].threshold for metric_type %s should be greater than or equal %d and less than or equal to %d", n, r.Metric, k.min, k.max)
	}
}

func (s *Schedules) check(found *Violations, now time.Time) {
	zone, err := time.LoadLocation(s.Timezone)
	if err != nil || s.Timezone == "" {
		found.add(root.at("schedules").at("timezone"), "schedules.timezone must be the name of a time zone, like Europe/Berlin or UTC")
		return
	}
	today := now.In(zone).Format(dateLayout)
	for n, r := range s.Recurring {
		r.check(found, n, today)
	}
	for n, d := range s.Dates {
		d.check(found, n, zone, now)
	}
	s.overlaps(found, zone)
}

// check finds what is wrong with limits of a schedule, the nth of its kind.
func (l Limits) check(found *Violations, kind string, n int) {
	at, is := root.at("schedules").at(kind).at(n), fmt.Sprintf("%s[%d].", kind, n)
	if l.Min > l.Max {
		found.add(at.at("instance_min_count"), "%sinstance_min_count %d is higher than %sinstance_max_count %d", is, l.Min, is, l.Max)
	}
	if l.Initial != 0 && l.Initial < l.Min {
		found.add(at.at("initial_min_instance_count"), "%sinitial_min_instance_count %d is smaller than %sinstance_min_count %d", is, l.Initial, is, l.Min)
	}
	if l.Initial != 0 && l.Initial > l.Max {
		found.add(at.at("initial_min_instance_count"), "%sinitial_min_instance_count %d is greater than %sinstance_max_count %d", is, l.Initial, is, l.Max)
	}
}

func (r Recurring) check(found *Violations, n int, today string) {
	const kind = "recurring_schedule"
	r.Limits.check(found, kind, n)
	at, is := root.at("schedules").at(kind).at(n), fmt.Sprintf("%s[%d].", kind, n)
	if r.StartTime >= r.EndTime {
		found.add(at, "%sstart_time is same or after %send_time", is, is)
	}
	for _, d := range []struct{ field, date string }{{"start_date", r.StartDate}, {"end_date", r.EndDate}} {
		switch {
		case d.date == "":
		case !isDate(d.date):
			found.add(at.at(d.field), "%s%s is not a day of the calendar", is, d.field)
		case d.date < today:
			found.add(at, "%s%s is before %scurrent_date", is, d.field, is)
		}
	}
	if r.EndDate != "" && r.EndDate < r.StartDate {
		found.add(at, "%sstart_date is after %send_date", is, is)
	}
}

func isDate(s string) bool {
	_, err := time.Parse(dateLayout, s)
	return err == nil
}

func (d Date) check(found *Violations, n int, zone *time.Location, now time.Time) {
	const kind = "specific_date"
	d.Limits.check(found, kind, n)
	at, is := root.at("schedules").at(kind).at(n), fmt.Sprintf("%s[%d].", kind, n)
	start, end := d.in(zone)
	switch {
	case start.IsZero() || end.IsZero():
		found.add(at, "%sstart_date_time or end_date_time is not a day of the calendar", is)
	case !start.After(now):
		found.add(at, "%sstart_date_time is before current date time", is)
	}
	if !end.After(start) {
		found.add(at, "%sstart_date_time is after %send_date_time", is, is)
	}
}

// overlaps finds schedules of one kind that share a time.
func (s *Schedules) overlaps(found *Violations, zone *time.Location) {
	at := root.at("schedules")
	for i, a := range s.Recurring {
		for j, b := range s.Recurring[i+1:] {
			if a.meets(b) {
				found.add(at.at("recurring_schedule").at(i), "recurring_schedule[%d] and recurring_schedule[%d] are overlapping", i, i+1+j)
			}
		}
	}
	for i, a := range s.Dates {
		start, end := a.in(zone)
		for j, b := range s.Dates[i+1:] {
			if from, to := b.in(zone); to.After(start) && end.After(from) {
				found.add(at.at("specific_date").at(i), "specific_date[%d]:{start_date_time: %s, end_date_time: %s} and specific_date[%d]:{start_date_time: %s, end_date_time: %s} are overlapping",
					i, a.Start, a.End, i+1+j, b.Start, b.End)
			}
		}
	}
}

// meets reports whether two schedules, of days of the week both or of the month, share a time.
func (r Recurring) meets(o Recurring) bool {
	share := func(a, b []int) bool {
		return slices.ContainsFunc(a, func(day int) bool { return slices.Contains(b, day) })
	}
	until := func(end, start string) bool { return end == "" || end >= start }
	return (share(r.DaysOfWeek, o.DaysOfWeek) || share(r.DaysOfMonth, o.DaysOfMonth)) &&
		r.EndTime >= o.StartTime && o.EndTime >= r.StartTime && until(r.EndDate, o.StartDate) && until(o.EndDate, r.StartDate)
}
