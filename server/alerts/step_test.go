package alerts

import (
	"slices"
	"strings"
	"testing"
	"time"

	"cupola/store/cf"
)

// course runs step at some times, on what it wrote before, and returns its events.
type course struct {
	World
	t      *testing.T
	began  time.Time
	closed []cf.Alert
}

func newCourse(t *testing.T, rules ...Rule) *course {
	return &course{World: World{Rules: rules, Unknown: map[string]bool{}}, t: t, began: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
}

// at steps with the subjects that are found of the first rule.
func (c *course) at(after time.Duration, subjects ...string) (events []string) {
	c.t.Helper()
	c.Now, c.Found = c.began.Add(after), nil
	for _, s := range subjects {
		c.Found = append(c.Found, Finding{Rule: c.Rules[0].Name, Subject: s, Name: s, Text: "it is bad"})
	}
	for _, s := range step(c.World) {
		if s.Event != "" {
			events = append(events, s.Event+" "+s.Alert.Subject)
		}
		c.keep(s)
	}
	if again := step(c.World); slices.ContainsFunc(again, func(s Step) bool { return s.Event != "" }) {
		c.t.Errorf("after %s: a second look at the same time tells again: %+v", after, again)
	}
	return events
}

func (c *course) keep(s Step) {
	c.Open = slices.DeleteFunc(c.Open, func(a *cf.Alert) bool { return a.Subject == s.Alert.Subject && a.Rule == s.Alert.Rule })
	switch {
	case s.Drop:
	case s.Alert.State == cf.AlertResolved:
		c.closed = append(c.closed, s.Alert)
	default:
		c.Open = append(c.Open, &s.Alert)
	}
}

func (c *course) want(after time.Duration, found string, events ...string) {
	c.t.Helper()
	if got := c.at(after, strings.Fields(found)...); !slices.Equal(got, events) {
		c.t.Errorf("after %s with %q: got %q; want %q", after, found, got, events)
	}
}

const h = time.Hour

func TestAnAlertFiresIsRepeatedAndResolved(t *testing.T) {
	c := newCourse(t, Rule{Name: "r", Enabled: true, For: 5 * time.Minute, Severity: cf.AlertWarning})
	c.want(0, "a b")
	c.want(4*time.Minute, "a") // b was over before it fired: nothing is said
	c.want(5*time.Minute, "a", "firing a")
	c.want(6*time.Minute, "a b")
	c.want(h, "a b", "firing b")
	c.want(h+6*time.Minute, "a b", "repeated a")     // an hour after
	c.want(2*h, "a b", "repeated b")                 //
	c.want(3*h, "a b")                               // two hours after
	c.want(3*h+6*time.Minute, "a b", "repeated a")   //
	c.want(3*h+10*time.Minute, "b")                  // a is gone
	c.want(3*h+10*time.Minute+30*time.Second, "a b") // and there again: one alert
	c.want(3*h+20*time.Minute, "b")                  //
	c.want(3*h+21*time.Minute, "b", "resolved a")    // gone for a minute
	c.want(4*h, "b", "repeated b")
	if n := len(c.closed); n != 1 || c.closed[0].Repeats != 2 { //
		t.Errorf("got %+v; want one that is over, after two repetitions", c.closed)
	}
}

func TestStepKeepsWhatIsUnknown(t *testing.T) {
	c := newCourse(t, Rule{Name: "r", Enabled: true})
	c.want(0, "a", "firing a")
	c.Unknown["r"] = true
	c.want(time.Minute, "")
	c.want(9*time.Minute, "")
	c.Unknown["r"] = false
	c.want(10*time.Minute, "", "resolved a")
}

func TestSilencesHoldBackUntilTheyEnd(t *testing.T) {
	c := newCourse(t, Rule{Name: "r", Enabled: true})
	c.Silences = []*cf.AlertSilence{{Name: "org/space", EndsAt: c.began.Add(h)}}
	c.want(0, "org/space/app org/spaces/app", "firing org/spaces/app")
	c.want(h-time.Second, "org/space/app org/spaces/app")
	c.want(h, "org/space/app org/spaces/app", "firing org/space/app", "repeated org/spaces/app")
	c.Silences = []*cf.AlertSilence{{Rule: "other", EndsAt: c.began.Add(9 * h)}, {Rule: "r", EndsAt: c.began.Add(9 * h)}}
	c.want(5*h, "org/space/app org/spaces/app more")
	c.want(6*h, "", "resolved org/space/app", "resolved org/spaces/app") // more was never told of
}

func TestADisabledRuleResolvesItsAlerts(t *testing.T) {
	c := newCourse(t, Rule{Name: "r", Enabled: true, For: h})
	c.want(0, "a")
	c.want(h, "a", "firing a")
	c.Rules[0].Enabled = false
	c.Unknown["r"] = true
	c.want(h+time.Second, "a", "resolved a")
}

func TestOnceIsNotRepeated(t *testing.T) {
	c := newCourse(t, Rule{Name: "r", Enabled: true, Once: true})
	c.want(0, "a", "firing a")
	c.want(100*h, "a")
}

func TestRepetitionsBackOffToADay(t *testing.T) {
	c := newCourse(t, Rule{Name: "r", Enabled: true})
	n := 0
	for m := time.Duration(0); m <= 30*24*h; m += 10 * time.Minute {
		n += len(c.at(m, "a"))
	}
	if n < 30 || n > 36 {
		t.Errorf("got %d messages in 30 days; want about one a day after the first ones", n)
	}
}
