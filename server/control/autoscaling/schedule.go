package autoscaling

import (
	"encoding/json"
	"slices"
	"time"
)

// active is the schedule whose time it is, and text that tells it from others and from itself on
// another day; nil and "" when it is none's. A specific date comes before what recurs.
func (s *Schedules) active(now time.Time) (*Limits, string) {
	if s == nil {
		return nil, ""
	}
	at, err := time.LoadLocation(s.Timezone)
	if err != nil { // it was there when the policy was set
		return nil, ""
	}
	now = now.In(at)
	for _, d := range s.Dates {
		if start, end := d.in(at); !now.Before(start) && now.Before(end) {
			return &d.Limits, name(d, "")
		}
	}
	for _, r := range s.Recurring {
		if r.isOn(now) {
			return &r.Limits, name(r, now.Format(dateLayout))
		}
	}
	return nil, ""
}

func name(schedule any, day string) string {
	b, _ := json.Marshal(schedule) // of strings and numbers alone
	return string(b) + day
}

// in are the begin and the end in a time zone.
func (d Date) in(at *time.Location) (start, end time.Time) {
	start, _ = time.ParseInLocation(dateTimeLayout, d.Start, at)
	end, _ = time.ParseInLocation(dateTimeLayout, d.End, at)
	return start, end
}

// isOn reports whether now lies on one of the days, and within the times of a day.
func (r Recurring) isOn(now time.Time) bool {
	day, clock := now.Format(dateLayout), now.Format(timeLayout)
	weekday := (int(now.Weekday())+6)%7 + 1
	return (r.StartDate == "" || r.StartDate <= day) && (r.EndDate == "" || day <= r.EndDate) &&
		(slices.Contains(r.DaysOfWeek, weekday) || slices.Contains(r.DaysOfMonth, now.Day())) &&
		r.StartTime <= clock && clock < r.EndTime
}
