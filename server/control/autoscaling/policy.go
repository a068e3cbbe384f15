package autoscaling

import (
	"encoding/json"
	"time"
)

// Policy is a scaling policy (App Autoscaler: models/policy.go).
type Policy struct {
	Min       int        `json:"instance_min_count"`
	Max       int        `json:"instance_max_count"`
	Rules     []Rule     `json:"scaling_rules,omitempty"`
	Schedules *Schedules `json:"schedules,omitempty"`
	// Configuration says who may submit custom metrics.
	Configuration *Configuration `json:"configuration,omitempty"`
}

// Configuration is that of custom metrics.
type Configuration struct {
	CustomMetrics struct {
		Strategy struct {
			AllowFrom string `json:"allow_from"`
		} `json:"metric_submission_strategy"`
	} `json:"custom_metrics"`
}

// boundApp allows apps that are bound to the same service instance to submit metrics.
const boundApp = "bound_app"

// allowsBound reports whether other apps may submit metrics.
func (p *Policy) allowsBound() bool {
	return p.Configuration != nil && p.Configuration.CustomMetrics.Strategy.AllowFrom == boundApp
}

// Rule changes the number of instances when a metric is beyond a threshold.
type Rule struct {
	Metric     Metric `json:"metric_type"`
	Breach     int    `json:"breach_duration_secs,omitempty"` // 0: defaultBreach
	Threshold  int64  `json:"threshold"`
	Operator   string `json:"operator"`
	CoolDown   int    `json:"cool_down_secs,omitempty"` // 0: defaultCoolDown
	Adjustment string `json:"adjustment"`               // +1, -2, +50%
}

// What a rule has that does not say it (App Autoscaler: its release's default_breach_duration_secs
// and default_cool_down_secs).
const (
	defaultBreach   = 120 * time.Second
	defaultCoolDown = 300 * time.Second
)

func (r Rule) breach() time.Duration   { return secondsOr(r.Breach, defaultBreach) }
func (r Rule) coolDown() time.Duration { return secondsOr(r.CoolDown, defaultCoolDown) }

func secondsOr(n int, otherwise time.Duration) time.Duration {
	if n > 0 {
		return time.Duration(n) * time.Second
	}
	return otherwise
}

// Schedules are times with other limits.
type Schedules struct {
	Timezone  string      `json:"timezone"`
	Recurring []Recurring `json:"recurring_schedule,omitempty"`
	Dates     []Date      `json:"specific_date,omitempty"`
}

// Limits are those of a schedule.
type Limits struct {
	Min     int `json:"instance_min_count"`
	Max     int `json:"instance_max_count"`
	Initial int `json:"initial_min_instance_count,omitempty"` // at least as many when it begins
}

// Recurring is a schedule of certain days, from one time of the day to another.
type Recurring struct {
	StartTime   string `json:"start_time"` // 15:04
	EndTime     string `json:"end_time"`
	DaysOfWeek  []int  `json:"days_of_week,omitempty"` // 1 is Monday
	DaysOfMonth []int  `json:"days_of_month,omitempty"`
	StartDate   string `json:"start_date,omitempty"` // 2006-01-02
	EndDate     string `json:"end_date,omitempty"`   // inclusive
	Limits
}

// Date is a schedule that comes once.
type Date struct {
	Start string `json:"start_date_time"` // 2006-01-02T15:04
	End   string `json:"end_date_time"`
	Limits
}

// The layouts of times in a policy.
const (
	dateTimeLayout = "2006-01-02T15:04"
	dateLayout     = "2006-01-02"
	timeLayout     = "15:04"
)

// stored reads a policy that was kept.
func stored(text string) (*Policy, error) {
	p := &Policy{}
	return p, json.Unmarshal([]byte(text), p)
}
