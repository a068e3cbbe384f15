package cron

import "time"

// horizon bounds the search in years: 29 February recurs within eight, on a given day of the
// week within forty.
const horizon = 41

// Next is the first time after t that the expression is due; zero for none.
func (e *Expression) Next(t time.Time) time.Time {
	if e.fields[hour] == 1<<24-1 {
		return e.elapsed(t)
	}
	return e.fixed(t)
}

// Between lists the times after from up to to, at most so many; more reports whether
// there are others.
func (e *Expression) Between(from, to time.Time, most int) (times []time.Time, more bool) {
	for t := e.Next(from); !t.IsZero() && !t.After(to); t = e.Next(t) {
		if len(times) == most {
			return times, true
		}
		times = append(times, t)
	}
	return times, false
}

// Last is the last time after from up to to; zero for none.
func (e *Expression) Last(from, to time.Time) (last time.Time) {
	for _, span := range []time.Duration{time.Hour, 25 * time.Hour, 32 * 24 * time.Hour, 367 * 24 * time.Hour, to.Sub(from)} {
		since := to.Add(-span)
		if since.Before(from) {
			since = from
		}
		for t := e.Next(since); !t.IsZero() && !t.After(to); t = e.Next(t) {
			last = t
		}
		if !last.IsZero() || since.Equal(from) {
			return last
		}
	}
	return last
}

// elapsed is Next for expressions of all hours: it walks the instants, so that an hour that
// clocks skip has none, and one that they show twice counts twice.
func (e *Expression) elapsed(t time.Time) time.Time {
	t = t.In(e.zone)
	t = t.Add(time.Minute - time.Duration(t.Second())*time.Second - time.Duration(t.Nanosecond()))
	for end := t.Year() + horizon; t.Year() < end; {
		switch {
		case !e.onDay(t):
			y, m, d := t.Date()
			t = first(e.zone, time.Date(y, m, d+1, 0, 0, 0, 0, time.UTC))
		case !e.fields[minute].has(t.Minute()):
			t = t.Add(time.Minute)
		default:
			return t
		}
	}
	return time.Time{}
}

// fixed is Next for expressions of certain hours: it walks what clocks show, each of which
// is due at the first instant that clocks show it or are past it.
func (e *Expression) fixed(t time.Time) time.Time {
	shown := wall(t.In(e.zone))
	y, m, d := shown.Date()
	for n := range horizon * 366 {
		date := time.Date(y, m, d+n, 0, 0, 0, 0, time.UTC)
		if !e.onDay(date) {
			continue
		}
		for h := e.fields[hour].lowest(); h < 24; h++ {
			if !e.fields[hour].has(h) {
				continue
			}
			for i := e.fields[minute].lowest(); i < 60; i++ {
				at := date.Add(time.Duration(h)*time.Hour + time.Duration(i)*time.Minute)
				if !e.fields[minute].has(i) || !at.After(shown) {
					continue
				}
				if due := first(e.zone, at); due.After(t) {
					return due
				}
			}
		}
	}
	return time.Time{}
}

// onDay reports whether the date of t matches.
func (e *Expression) onDay(t time.Time) bool {
	if !e.fields[month].has(int(t.Month())) {
		return false
	}
	inMonth, inWeek := e.fields[day].has(t.Day()), e.fields[weekday].has(int(t.Weekday()))
	if e.anyDay || e.anyWeekday {
		return inMonth && inWeek
	}
	return inMonth || inWeek
}

// wall is what clocks show at t, as a time in UTC.
func wall(t time.Time) time.Time {
	y, m, d := t.Date()
	return time.Date(y, m, d, t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
}

// first is the first instant at which clocks of a zone show a time, or are past it.
func first(zone *time.Location, shown time.Time) time.Time {
	y, m, d := shown.Date()
	t := time.Date(y, m, d, shown.Hour(), shown.Minute(), 0, 0, zone)
	start, end := t.ZoneBounds()
	switch now := wall(t); {
	case now.After(shown): // skipped; t is reckoned after the change
		return start
	case now.Before(shown):
		return end
	case start.IsZero():
		return t
	}
	_, offset := t.Zone()
	_, before := start.Add(-time.Nanosecond).Zone()
	earlier := t.Add(time.Duration(offset-before) * time.Second)
	if before > offset && wall(earlier).Equal(shown) { // they show it twice
		return earlier
	}
	return t
}
