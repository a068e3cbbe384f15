package autoscaling

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// now is a Friday.
var now = time.Date(2030, 3, 1, 12, 0, 0, 0, time.UTC)

const rule = `{"metric_type": "cpu", "threshold": 50, "operator": ">", "adjustment": "+1"}`

// withSchedules is a policy with schedules of one kind.
func withSchedules(kind string, of ...string) string {
	return fmt.Sprintf(`{"instance_min_count": 1, "instance_max_count": 4, "schedules": {"timezone": "Europe/Berlin", "%s": [%s]}}`, kind, strings.Join(of, ","))
}

// configured is a policy with a configuration.
func configured(of string) string {
	return `{"instance_min_count": 1, "instance_max_count": 4, "scaling_rules": [], "configuration": ` + of + `}`
}

func TestPolicies(t *testing.T) {
	recurring := func(of ...string) string { return withSchedules("recurring_schedule", of...) }
	dates := func(of ...string) string { return withSchedules("specific_date", of...) }
	limits := `"instance_min_count": 2, "instance_max_count": 3`
	for name, c := range map[string]struct{ policy, want string }{
		"rules":                    {`{"instance_min_count": 1, "instance_max_count": 4, "scaling_rules": [` + rule + `]}`, ""},
		"fields that none knows":   {`{"instance_min_count": 1, "instance_max_count": 4, "scaling_rules": [` + rule + `], "schema-version": null, "x": [1]}`, ""},
		"a recurring schedule":     {recurring(`{"start_time": "08:00", "end_time": "18:00", "days_of_week": [1, 5], ` + limits + `}`), ""},
		"a specific date":          {dates(`{"start_date_time": "2030-03-01T14:00", "end_date_time": "2030-03-02T14:00", ` + limits + `, "initial_min_instance_count": 3}`), ""},
		"no JSON":                  {`{`, "(root): unexpected EOF"},
		"more than a policy":       {`{"instance_min_count": 1, "instance_max_count": 4, "scaling_rules": []} {}`, "(root): there is more after the policy"},
		"a list":                   {`[]`, "(root): Invalid type. Expected: object, given: array"},
		"nothing in it":            {`{}`, "(root): instance_min_count is required"},
		"neither rules nor times":  {`{"instance_min_count": 1, "instance_max_count": 4}`, "(root): Must validate at least one schema (anyOf): scaling_rules or schedules is required"},
		"min 0":                    {`{"instance_min_count": 0, "instance_max_count": 4, "scaling_rules": []}`, "(root).instance_min_count: Must be greater than or equal to 1"},
		"min 1.5":                  {`{"instance_min_count": 1.5, "instance_max_count": 4, "scaling_rules": []}`, "(root).instance_min_count: Invalid type. Expected: integer, given: number"},
		"min over max":             {`{"instance_min_count": 5, "instance_max_count": 4, "scaling_rules": []}`, "(root).instance_min_count: instance_min_count 5 is higher than instance_max_count 4"},
		"a custom metric":          {policyWith("metric_type", `"jobs_1"`), ""},
		"a name of a metric":       {policyWith("metric_type", `"jobs-1"`), `(root).scaling_rules.0.metric_type: Does not match pattern '^[a-zA-Z0-9_]+$'`},
		"an operator":              {policyWith("operator", `"=="`), `(root).scaling_rules.0.operator: scaling_rules.0.operator must be one of the following: "<", ">", "<=", ">="`},
		"an adjustment":            {policyWith("adjustment", `"1"`), `(root).scaling_rules.0.adjustment: Does not match pattern '^[-+][1-9]+[0-9]*%?$'`},
		"a huge adjustment":        {policyWith("adjustment", `"+99999999999999999999"`), "(root).scaling_rules.0.adjustment: scaling_rules[0].adjustment must be from -100000 to +100000"},
		"a short breach":           {policyWith("breach_duration_secs", `59`), "(root).scaling_rules.0.breach_duration_secs: Must be greater than or equal to 60"},
		"a long cool down":         {policyWith("cool_down_secs", `3601`), "(root).scaling_rules.0.cool_down_secs: Must be less than or equal to 3600"},
		"a threshold":              {policyWith("threshold", `101`), "(root).scaling_rules.0: scaling_rules[0].threshold for metric_type cpu should be greater than or equal 1 and less than or equal to 100"},
		"who submits":              {configured(`{"custom_metrics": {"metric_submission_strategy": {"allow_from": "bound_app"}}}`), ""},
		"a strategy":               {configured(`{"custom_metrics": {"metric_submission_strategy": {"allow_from": "any"}}}`), `(root).configuration.custom_metrics.metric_submission_strategy.allow_from: configuration.custom_metrics.metric_submission_strategy.allow_from must be one of the following: "bound_app", "same_app"`},
		"no strategy":              {configured(`{"custom_metrics": {}}`), "(root).configuration.custom_metrics: metric_submission_strategy is required"},
		"an app of a policy":       {configured(`{"app_guid": "8d0cee08-23ad-4813-a779-ad8118ea0b91"}`), "(root).configuration.app_guid: Must not validate the schema (not)"},
		"another version":          {`{"schema-version": "0.9", "instance_min_count": 1, "instance_max_count": 4, "scaling_rules": []}`, "(root).schema-version: Invalid type. Expected: null, given: string"},
		"a type of credentials":    {`{"credential-type": "none", "instance_min_count": 1, "instance_max_count": 4, "scaling_rules": []}`, `(root).credential-type: credential-type must be one of the following: "x509", "binding-secret"`},
		"a window":                 {policyWith("stats_window_secs", `"60"`), "(root).scaling_rules.0.stats_window_secs: Invalid type. Expected: integer, given: string"},
		"too many rules":           {`{"instance_min_count": 1, "instance_max_count": 4, "scaling_rules": [` + strings.Repeat(rule+",", 50) + rule + `]}`, "(root).scaling_rules: Array must have at most 50 items"},
		"a time zone":              {strings.ReplaceAll(recurring(), "Europe/Berlin", "Mars"), "(root).schedules.timezone: schedules.timezone must be the name of a time zone, like Europe/Berlin or UTC"},
		"days of both kinds":       {recurring(`{"start_time": "08:00", "end_time": "18:00", "days_of_week": [1], "days_of_month": [1], ` + limits + `}`), "(root).schedules.recurring_schedule.0: Must validate one and only one schema (oneOf): either days_of_week or days_of_month"},
		"a day":                    {recurring(`{"start_time": "08:00", "end_time": "18:00", "days_of_week": [8], ` + limits + `}`), "(root).schedules.recurring_schedule.0.days_of_week.0: Must be less than or equal to 7"},
		"a time":                   {recurring(`{"start_time": "8:00", "end_time": "18:00", "days_of_week": [1], ` + limits + `}`), "(root).schedules.recurring_schedule.0.start_time: Does not match pattern '^(2[0-3]|1[0-9]|0[0-9]):([0-5][0-9])$'"},
		"an end before the start":  {recurring(`{"start_time": "18:00", "end_time": "08:00", "days_of_week": [1], ` + limits + `}`), "(root).schedules.recurring_schedule.0: recurring_schedule[0].start_time is same or after recurring_schedule[0].end_time"},
		"a date of the past":       {recurring(`{"start_time": "08:00", "end_time": "18:00", "days_of_week": [1], "end_date": "2030-02-28", ` + limits + `}`), "(root).schedules.recurring_schedule.0: recurring_schedule[0].end_date is before recurring_schedule[0].current_date"},
		"no day of the calendar":   {recurring(`{"start_time": "08:00", "end_time": "18:00", "days_of_week": [1], "end_date": "2030-02-31", ` + limits + `}`), "(root).schedules.recurring_schedule.0.end_date: recurring_schedule[0].end_date is not a day of the calendar"},
		"recurring ones that meet": {recurring(`{"start_time": "08:00", "end_time": "12:00", "days_of_week": [1], `+limits+`}`, `{"start_time": "11:00", "end_time": "13:00", "days_of_week": [1, 2], `+limits+`}`), "(root).schedules.recurring_schedule.0: recurring_schedule[0] and recurring_schedule[1] are overlapping"},
		"a start of the past":      {dates(`{"start_date_time": "2030-03-01T12:59", "end_date_time": "2030-03-02T14:00", ` + limits + `}`), "(root).schedules.specific_date.0: specific_date[0].start_date_time is before current date time"},
		"dates that meet": {dates(`{"start_date_time": "2030-04-01T10:00", "end_date_time": "2030-04-01T12:00", `+limits+`}`, `{"start_date_time": "2030-04-01T11:00", "end_date_time": "2030-04-01T13:00", `+limits+`}`),
			"(root).schedules.specific_date.0: specific_date[0]:{start_date_time: 2030-04-01T10:00, end_date_time: 2030-04-01T12:00} and specific_date[1]:{start_date_time: 2030-04-01T11:00, end_date_time: 2030-04-01T13:00} are overlapping"},
		"an initial number": {dates(`{"start_date_time": "2030-04-01T10:00", "end_date_time": "2030-04-01T12:00", "initial_min_instance_count": 4, ` + limits + `}`), "(root).schedules.specific_date.0.initial_min_instance_count: specific_date[0].initial_min_instance_count 4 is greater than specific_date[0].instance_max_count 3"},
		// encoding/json would take it for scaling_rules
		"rules in another case": {`{"instance_min_count": 1, "instance_max_count": 4, "scaling_rules": [], "Scaling_Rules": [{"operator": "?"}]}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p, _, err := Parse([]byte(c.policy), now)
			if got := fmt.Sprint(err); c.want != "" && got != c.want || c.want == "" && (err != nil || len(p.Rules) > 1) {
				t.Errorf("got %v; want %q", err, c.want)
			}
		})
	}
}

// TestVersion reads what the newer format has, and what it refuses.
func TestVersion(t *testing.T) {
	const guid = "8d0cee08-23ad-4813-a779-ad8118ea0b91"
	of := func(more string) string {
		return `{"schema-version": "0.1", "instance_min_count": 1, "instance_max_count": 4, "scaling_rules": [{"metric_type": "cpu", "threshold": 50, "operator": ">", "adjustment": "+1", "stats_window_secs": 60}]` + more + `}`
	}
	const rules = `"instance_max_count":4,"instance_min_count":1,"scaling_rules":[{"adjustment":"+1","metric_type":"cpu","operator":"\u003e","threshold":50}]}`
	for text, want := range map[string]Parameters{
		of(``): {Known: `{` + rules},
		of(`, "credential-type": "x509", "configuration": {"app_guid": "` + guid + `"}`):                        {Known: `{` + rules, AppGUID: guid, Credential: "x509"},
		of(`, "configuration": {"custom_metrics": {"metric_submission_strategy": {"allow_from": "same_app"}}}`): {Known: `{"configuration":{"custom_metrics":{"metric_submission_strategy":{"allow_from":"same_app"}}},` + rules},
		`{"schema-version": "0.1", "configuration": {"app_guid": "` + guid + `"}}`:                              {AppGUID: guid},
	} {
		p, err := ParseParameters([]byte(text), now)
		if hasPolicy := p.Policy != nil; err != nil || hasPolicy != (want.Known != "") {
			t.Errorf("%s: got %+v, %v", text, p, err)
		}
		if p.Policy = nil; p != want {
			t.Errorf("%s: got %+v; want %+v", text, p, want)
		}
	}
	for text, want := range map[string]string{
		of(`, "more": 1`):                                          "Additional property more is not allowed",
		of(`, "configuration": {}`):                                "Must validate at least one schema (anyOf): custom_metrics or app_guid is required",
		of(`, "configuration": {"app_guid": "x"}`):                 `Does not match pattern '(\d|[a-f]){8}-(\d|[a-f]){4}-(\d|[a-f]){4}-(\d|[a-f]){4}-(\d|[a-f]){12}'`,
		of(`, "configuration": {"custom_metrics": {"other": {}}}`): "Additional property other is not allowed",
		`{"schema-version": "0.1"}`:                                "instance_min_count is required",
		`{"schema-version": "0.1", "configuration": {"app_guid": "` + guid + `", "x": 1}}`: "Additional property x is not allowed",
	} {
		_, err := ParseParameters([]byte(text), now)
		wrong, _ := errors.AsType[Violations](err)
		if len(wrong) < 2 || wrong[0] != (Violation{"(root)", "Must validate one and only one schema (oneOf)"}) || wrong[1].Description != want {
			t.Errorf("%s: got %v; want %q", text, wrong, want)
		}
	}
	if _, _, err := Parse([]byte(`{"schema-version": "0.1", "configuration": {"app_guid": "`+guid+`"}}`), now); fmt.Sprint(err) != "(root): instance_min_count is required" {
		t.Errorf("got %v; want no policy without rules", err)
	}
}

// policyWith is a policy of one rule with another value in a field.
func policyWith(field, value string) string {
	var r map[string]json.RawMessage
	_ = json.Unmarshal([]byte(rule), &r)
	r[field] = json.RawMessage(value)
	text, _ := json.Marshal(r)
	return `{"instance_min_count": 1, "instance_max_count": 4, "scaling_rules": [` + string(text) + `]}`
}

func TestSchedules(t *testing.T) {
	p, _, err := Parse([]byte(`{"instance_min_count": 1, "instance_max_count": 4, "schedules": {"timezone": "Europe/Berlin",
		"recurring_schedule": [{"start_time": "08:00", "end_time": "18:00", "days_of_week": [1, 5], "instance_min_count": 2, "instance_max_count": 5, "start_date": "2030-03-08"},
			{"start_time": "20:00", "end_time": "21:00", "days_of_month": [31], "instance_min_count": 3, "instance_max_count": 5}],
		"specific_date": [{"start_date_time": "2030-03-15T12:00", "end_date_time": "2030-03-15T13:00", "instance_min_count": 9, "instance_max_count": 9}]}}`), now)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{}
	for at, want := range map[string]int{
		"2030-03-01T09:00:00Z": 0, // before the start date
		"2030-03-08T06:59:59Z": 0,
		"2030-03-08T07:00:00Z": 2, // 08:00 in Berlin
		"2030-03-08T16:59:59Z": 2,
		"2030-03-08T17:00:00Z": 0,
		"2030-03-09T09:00:00Z": 0, // a Saturday
		"2030-03-11T09:00:00Z": 2,
		"2030-03-15T11:30:00Z": 9, // a specific date comes first
		"2030-03-15T12:30:00Z": 2,
		"2030-03-31T18:30:00Z": 3, // in summer time
	} {
		when, _ := time.Parse(time.RFC3339, at)
		limits, name := p.Schedules.active(when)
		got := 0
		if limits != nil {
			got = limits.Min
		}
		if got != want || (name == "") != (want == 0) {
			t.Errorf("%s: got %d, %q; want %d", at, got, name, want)
		}
		if at[:10] != "2030-03-08" && name != "" && seen[name] != "" {
			t.Errorf("%s and %s have the same name %q", at, seen[name], name)
		}
		seen[name] = at
	}
	if limits, name := (*Schedules)(nil).active(now); limits != nil || name != "" {
		t.Errorf("got %v, %q of no schedules", limits, name)
	}
}

// FuzzPolicy reads what anybody may send. What is accepted can be kept, read again and acted on.
func FuzzPolicy(f *testing.F) {
	f.Add([]byte(policyWith("operator", `"<"`)))
	f.Add([]byte(withSchedules("recurring_schedule", `{"start_time": "08:00", "end_time": "18:00", "days_of_week": [1], "instance_min_count": 2, "instance_max_count": 3}`)))
	f.Add([]byte(withSchedules("specific_date", `{"start_date_time": "2030-04-01T10:00", "end_date_time": "2030-04-01T12:00", "instance_min_count": 2, "instance_max_count": 3}`)))
	f.Add([]byte(`{"INSTANCE_MIN_COUNT": -1}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		p, kept, err := Parse(text, now)
		if err != nil {
			if wrong, ok := errors.AsType[Violations](err); !ok || len(wrong) == 0 || wrong[0].Description == "" {
				t.Fatalf("got %v; want what is wrong", err)
			}
			return
		}
		again, same, err := Parse([]byte(kept), now)
		if err != nil {
			t.Fatalf("what was accepted as %s is refused: %v", kept, err)
		}
		if same != kept {
			t.Errorf("%s becomes %s", kept, same)
		}
		p.Schedules.active(now)
		for _, r := range again.Rules {
			if n, _ := within(apply(r.Adjustment, 3), again.Min, again.Max); n < 1 {
				t.Errorf("%s of 3 instances makes %d", r.Adjustment, n)
			}
			if _, known := kinds[r.Metric]; !known || r.breach() < time.Minute || r.coolDown() < time.Minute {
				t.Errorf("accepted %+v", r)
			}
		}
	})
}
