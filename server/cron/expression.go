package cron

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // machines may lack it
)

// maxLength bounds an expression in bytes.
const maxLength = 256

// Expression is a cron expression that was read.
type Expression struct {
	text   string
	zone   *time.Location
	zoned  bool // the text names it
	fields [5]set
	// anyDay and anyWeekday report whether a field of days is "*": the other alone counts.
	anyDay, anyWeekday bool
}

// set has a bit for each value of a field.
type set uint64

func (s set) has(n int) bool { return s&(1<<n) != 0 }

// The fields in their order.
const (
	minute = iota
	hour
	day
	month
	weekday
)

// field says what values a field has.
type field struct {
	name     string
	min, max int
	names    []string // of min, min+1, …
}

var fieldsOf = [5]field{
	{"minute", 0, 59, nil},
	{"hour", 0, 23, nil},
	{"day of the month", 1, 31, nil},
	{"month", 1, 12, []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}},
	{"day of the week", 0, 7, []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}},
}

var descriptors = map[string]string{
	"@hourly": "0 * * * *", "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@weekly": "0 0 * * 0",
	"@monthly": "0 0 1 * *", "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *",
}

// Parse reads an expression. One that is never due, like 30 February, is an error.
func Parse(text string) (*Expression, error) {
	if len(text) > maxLength {
		return nil, fmt.Errorf("cron expression must have at most %d characters", maxLength)
	}
	words := strings.Fields(text)
	e := &Expression{text: strings.Join(words, " "), zone: time.UTC}
	if len(words) > 0 {
		if key, zone, ok := strings.Cut(words[0], "="); ok && (key == "CRON_TZ" || key == "TZ") {
			loc, err := Zone(zone)
			if err != nil {
				return nil, err
			}
			e.zone, e.zoned, words = loc, true, words[1:]
		}
	}
	if len(words) == 1 && strings.HasPrefix(words[0], "@") {
		short, ok := descriptors[strings.ToLower(words[0])]
		if !ok {
			return nil, fmt.Errorf("cron expression %q is invalid: use @hourly, @daily, @weekly, @monthly, @yearly or five fields", text)
		}
		words = strings.Fields(short)
	}
	if len(words) != len(fieldsOf) {
		return nil, fmt.Errorf(`cron expression %q has %d fields: it must have five (MIN HOUR DAY-OF-MONTH MONTH DAY-OF-WEEK), as in "30 2 * * *"`, text, len(words))
	}
	for i, w := range words {
		s, err := fieldsOf[i].parse(w)
		if err != nil {
			return nil, fmt.Errorf("cron expression %q: %w", text, err)
		}
		e.fields[i] = s
	}
	if e.fields[weekday].has(7) {
		e.fields[weekday] |= 1
	}
	e.anyDay, e.anyWeekday = isAny(words[day]), isAny(words[weekday])
	if e.Next(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return nil, fmt.Errorf("cron expression %q is never due: no month that it names has such a day", text)
	}
	return e, nil
}

// Zone is the time zone of a name of the IANA database. "Local" is none: the zone of a
// machine changes with the machine.
func Zone(name string) (*time.Location, error) {
	if name != "" && !strings.EqualFold(name, "local") {
		if loc, err := time.LoadLocation(name); err == nil {
			return loc, nil
		}
	}
	return nil, fmt.Errorf("time zone %q is invalid: use a name like Europe/Berlin or UTC", name)
}

// isAny reports whether a field begins with a star: then it does not restrict days.
func isAny(text string) bool { return text[0] == '*' || text[0] == '?' }

// parse reads a list.
func (f field) parse(text string) (set, error) {
	var all set
	for part := range strings.SplitSeq(text, ",") {
		s, err := f.part(part)
		if err != nil {
			return 0, err
		}
		all |= s
	}
	return all, nil
}

// part reads a value, a range or a step.
func (f field) part(text string) (s set, err error) {
	span, steps, stepped := strings.Cut(text, "/")
	step := 1
	if stepped {
		if step, err = number(steps); err != nil || step < 1 || step > f.max {
			return 0, fmt.Errorf("step %q of the field %s must be a number from 1 to %d", steps, f.name, f.max)
		}
	}
	from, to, ranged := strings.Cut(span, "-")
	low, high := f.min, f.top()
	if span != "*" && span != "?" {
		if low, err = f.value(from); err != nil {
			return 0, err
		}
		switch {
		case ranged:
			if high, err = f.value(to); err != nil {
				return 0, err
			}
		case !stepped:
			high = low
		}
	}
	if low > high {
		return 0, fmt.Errorf("range %q of the field %s must begin with the lower value", span, f.name)
	}
	for n := low; n <= high; n += step {
		s |= 1 << n
	}
	return s, nil
}

// top is the highest value of "*": Sunday is not twice in a week.
func (f field) top() int {
	if f.max == 7 {
		return 6
	}
	return f.max
}

// value reads a number or a name.
func (f field) value(text string) (int, error) {
	for i, name := range f.names {
		if strings.EqualFold(text, name) {
			return f.min + i, nil
		}
	}
	n, err := number(text)
	if err != nil || n < f.min || n > f.max {
		return 0, fmt.Errorf("%q of the field %s must be a number from %d to %d", text, f.name, f.min, f.max)
	}
	return n, nil
}

// number reads digits alone: no sign.
func number(text string) (int, error) {
	n, err := strconv.ParseUint(text, 10, 16)
	return int(n), err
}

// String is the expression with single spaces.
func (e *Expression) String() string { return e.text }

// In is the expression with the fields in a time zone, "" for no change. It must not name
// another.
func In(text, zone string) (string, error) {
	e, err := Parse(text)
	if err != nil || zone == "" {
		return text, err
	}
	loc, err := Zone(zone)
	if err != nil {
		return "", err
	}
	if e.zoned && e.zone.String() != loc.String() {
		return "", fmt.Errorf("cron expression %q names another time zone than %q", text, zone)
	}
	if e.zoned {
		return e.text, nil
	}
	return "CRON_TZ=" + zone + " " + e.text, nil
}

// TimeZone is the name of the time zone of the fields.
func (e *Expression) TimeZone() string { return e.zone.String() }

// lowest is the smallest value of a set.
func (s set) lowest() int { return bits.TrailingZeros64(uint64(s)) }
