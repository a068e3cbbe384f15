package cron

import (
	"strings"
	"testing"
	"time"
)

func at(t *testing.T, text string) time.Time {
	t.Helper()
	when, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return when
}

func TestNext(t *testing.T) {
	for _, c := range []struct{ expression, after, want string }{
		{"* * * * *", "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"},
		{"* * * * *", "2026-01-01T00:00:30.5Z", "2026-01-01T00:01:00Z"},
		{"*/15 * * * *", "2026-01-01T00:46:00Z", "2026-01-01T01:00:00Z"},
		{"5/20 * * * *", "2026-01-01T00:26:00Z", "2026-01-01T00:45:00Z"},
		{"30 2 * * *", "2026-01-01T02:30:00Z", "2026-01-02T02:30:00Z"},
		{"0 9-17/4 * * mon-fri", "2026-01-02T17:00:00Z", "2026-01-05T09:00:00Z"},
		{"0 0 13 * FRI", "2026-02-01T00:00:00Z", "2026-02-06T00:00:00Z"}, // either field
		{"0 0 */2 * MON", "2026-02-01T00:00:00Z", "2026-02-09T00:00:00Z"},
		{"0 0 29 feb ?", "2026-01-01T00:00:00Z", "2028-02-29T00:00:00Z"},
		{"0 0 * * 7", "2026-01-01T00:00:00Z", "2026-01-04T00:00:00Z"},
		{"1,2,50-52 3 1 jan,dec *", "2026-01-01T03:02:00Z", "2026-01-01T03:50:00Z"},
		{"@daily", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"},
		{"@hourly", "2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z"},
		{"@yearly", "2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z"},
		{"CRON_TZ=Asia/Kolkata 0 9 * * *", "2026-01-01T00:00:00Z", "2026-01-01T03:30:00Z"},
		{"CRON_TZ=Asia/Kolkata 0 * * * *", "2026-01-01T00:00:00Z", "2026-01-01T00:30:00Z"},
		// Clocks of Berlin skip from 02:00 to 03:00 on 29 March 2026.
		{"TZ=Europe/Berlin 30 2 * * *", "2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z"},
		{"TZ=Europe/Berlin 30 2 * * *", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"},
		{"TZ=Europe/Berlin */30 * * * *", "2026-03-29T00:30:00Z", "2026-03-29T01:00:00Z"},
		// They show 02:00 to 03:00 twice on 25 October 2026.
		{"TZ=Europe/Berlin 30 2 * * *", "2026-10-24T00:30:00Z", "2026-10-25T00:30:00Z"},
		{"TZ=Europe/Berlin 30 2 * * *", "2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"},
		{"TZ=Europe/Berlin 30 2 * * *", "2026-10-25T01:10:00Z", "2026-10-26T01:30:00Z"},
		{"TZ=Europe/Berlin 30 * * * *", "2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"},
		// Clocks of Apia skipped 30 December 2011.
		{"TZ=Pacific/Apia 0 12 30 12 *", "2011-12-01T00:00:00Z", "2011-12-30T10:00:00Z"},
		// Midnight does not exist in Beirut on 29 March 2026.
		{"TZ=Asia/Beirut 0 0 * * *", "2026-03-28T12:00:00Z", "2026-03-28T22:00:00Z"},
	} {
		e, err := Parse(c.expression)
		if err != nil {
			t.Errorf("%s: %v", c.expression, err)
			continue
		}
		if got := e.Next(at(t, c.after)); !got.Equal(at(t, c.want)) {
			t.Errorf("%s after %s: got %s; want %s", c.expression, c.after, got.UTC().Format(time.RFC3339), c.want)
		}
	}
}

func TestBetween(t *testing.T) {
	e, err := Parse("*/10 * * * *")
	if err != nil {
		t.Fatal(err)
	}
	from := at(t, "2026-01-01T00:00:00Z")
	if got, more := e.Between(from, from.Add(time.Hour), 10); len(got) != 6 || more {
		t.Errorf("got %d, %t; want 6 and no more", len(got), more)
	}
	if got, more := e.Between(from, from.Add(24*time.Hour), 10); len(got) != 10 || !more {
		t.Errorf("got %d, %t; want 10 and more", len(got), more)
	}
	for _, c := range []struct{ expression, from, to, want string }{
		{"*/10 * * * *", "2026-01-01T00:00:00Z", "2036-01-01T00:05:00Z", "2036-01-01T00:00:00Z"},
		{"30 2 * * *", "2026-01-01T00:00:00Z", "2026-01-09T02:29:00Z", "2026-01-08T02:30:00Z"},
		{"0 0 29 2 *", "2026-01-01T00:00:00Z", "2035-01-09T02:29:00Z", "2032-02-29T00:00:00Z"},
		{"30 2 * * *", "2026-01-01T03:00:00Z", "2026-01-01T05:00:00Z", "0001-01-01T00:00:00Z"},
	} {
		e, err := Parse(c.expression)
		if err != nil {
			t.Fatal(err)
		}
		if got := e.Last(at(t, c.from), at(t, c.to)); !got.Equal(at(t, c.want)) {
			t.Errorf("the last of %s from %s to %s: got %s; want %s", c.expression, c.from, c.to, got, c.want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"":                             "has 0 fields",
		"* * * *":                      "has 4 fields",
		"0 0 0 * * *":                  "has 6 fields",
		"60 * * * *":                   `"60" of the field minute must be a number from 0 to 59`,
		"* 24 * * *":                   "field hour",
		"* * 0 * *":                    "field day of the month",
		"* * * foo *":                  "field month",
		"* * * * 8":                    "field day of the week",
		"-1 * * * *":                   "field minute",
		"+1 * * * *":                   "field minute",
		"1- * * * *":                   "field minute",
		"1-2-3 * * * *":                "field minute",
		"*/0 * * * *":                  `step "0" of the field minute`,
		"*/ * * * *":                   `step ""`,
		"1/2/3 * * * *":                `step "2/3"`,
		"5-1 * * * *":                  `range "5-1" of the field minute must begin with the lower value`,
		"1,,2 * * * *":                 "field minute",
		"0 0 30 2 *":                   "never due",
		"0 * 31 4,6 ?":                 "never due",
		"@every 5m":                    "has 2 fields",
		"@reboot":                      "use @hourly",
		"CRON_TZ=Mars/X 0 0 * * *":     `time zone "Mars/X" is invalid`,
		"TZ=Local 0 0 * * *":           `time zone "Local" is invalid`,
		"TZ=../../etc/x 0 0 * * *":     "time zone",
		"CRON_TZ=UTC":                  "has 0 fields",
		strings.Repeat("1,", 200):      "at most 256",
		"99999999999999999999 * * * *": "field minute",
	} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v; want %q", text, err, want)
		}
	}
}

func TestIn(t *testing.T) {
	for _, c := range []struct{ text, zone, want, fault string }{
		{"0  3 * * *", "", "0  3 * * *", ""},
		{"0 3 * * *", "Europe/Berlin", "CRON_TZ=Europe/Berlin 0 3 * * *", ""},
		{"TZ=Europe/Berlin 0 3 * * *", "Europe/Berlin", "TZ=Europe/Berlin 0 3 * * *", ""},
		{"TZ=UTC 0 3 * * *", "Europe/Berlin", "", "names another time zone"},
		{"0 3 * * *", "Nowhere", "", `time zone "Nowhere" is invalid`},
	} {
		got, err := In(c.text, c.zone)
		if got != c.want || c.fault == "" && err != nil || c.fault != "" && (err == nil || !strings.Contains(err.Error(), c.fault)) {
			t.Errorf("In(%q, %q): got %q, %v", c.text, c.zone, got, err)
		}
	}
}

// FuzzParse checks that what is read is due after now, at a whole minute that its fields name
// where clocks do not change.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"* * * * *", "TZ=Europe/Berlin 30 2 * * *", "0 0 29 2 ?", "1,2-9/3 */5 L jan-mar 7", "@daily", "CRON_TZ=Asia/Beirut 0 0 * * 0"} {
		f.Add(s, int64(1774746000))
	}
	f.Fuzz(func(t *testing.T, text string, unix int64) {
		e, err := Parse(text)
		if err != nil {
			return
		}
		now := time.Unix(unix%(1<<32), 0)
		next := e.Next(now)
		if !next.After(now) || next.Second() != 0 {
			t.Fatalf("%q after %s: %s", text, now, next)
		}
		if e.zone == time.UTC && (!e.onDay(next) || !e.fields[hour].has(next.Hour()) || !e.fields[minute].has(next.Minute())) {
			t.Fatalf("%q after %s: %s does not match", text, now, next)
		}
		if again, err := Parse(e.String()); err != nil || !again.Next(now).Equal(next) {
			t.Fatalf("%q is not read as %q", e, text)
		}
	})
}
