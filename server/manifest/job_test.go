package manifest

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestJobs(t *testing.T) {
	m, err := Parse([]byte(`applications:
- name: a
  release: bin/migrate
  jobs:
  - {name: nightly, command: bin/clean, schedule: "CRON_TZ=Europe/Berlin 30 2 * * *", memory: 64M, disk_quota: 1G, timeout: 600}
  - {name: often, command: x, schedule: ["@hourly", "*/20 * * * *"]}
  - {name: by-hand, command: y}
`))
	if err != nil {
		t.Fatal(err)
	}
	memory, disk, timeout := 64, 1024, 600
	want := []Job{{Name: "nightly", Command: "bin/clean", Schedules: []string{"CRON_TZ=Europe/Berlin 30 2 * * *"}, MemoryMB: &memory, DiskMB: &disk, Timeout: &timeout},
		{Name: "often", Command: "x", Schedules: []string{"@hourly", "*/20 * * * *"}}, {Name: "by-hand", Command: "y"}}
	if diff := cmp.Diff(want, m.Apps[0].Jobs); diff != "" {
		t.Error(diff)
	}
	if p := m.Apps[0].Processes; len(p) != 1 || p[0].Type != "release" || *p[0].Command != "bin/migrate" {
		t.Errorf("got processes %+v", p)
	}
	for text, want := range map[string]string{
		"jobs: 1":              "Jobs must be an array of job configurations",
		"jobs: [1]":            "Jobs must be an array of job configurations",
		"jobs: [{name: x}]":    `Job "x": Command can't be blank`,
		"jobs: [{command: x}]": `Job "": Name can't be blank`,
		"jobs: [{name: x, command: y, schedule: 1}]":                            `Job "x": Schedule must be a cron expression, or an array of them`,
		"jobs: [{name: x, command: y, schedule: ['@daily', 1]}]":                `Job "x": Schedule can only contain strings`,
		"jobs: [{name: x, command: y, schedule: '* * *'}]":                      `Job "x": Schedule is invalid: cron expression "* * *" has 3 fields`,
		"jobs: [{name: x, command: y, timeout: 0}]":                             `Job "x": Timeout must be greater than or equal to 1`,
		"jobs: [{name: x, command: y, memory: 5}]":                              `Job "x": Memory must use a supported unit`,
		"jobs: [{name: x, command: y}, {name: x, command: y}]":                  `Job "x": Name must be unique`,
		"jobs: [" + strings.Repeat("{name: x, command: y},", 50) + "{name: z}]": "Jobs may have at most 50 entries, it has 51",
		"release: [x]": "Release: Command must be a string",
	} {
		if _, err := Parse([]byte("applications: [{name: a, " + text + "}]")); err == nil || !strings.Contains(err.Error(), "For application 'a': "+want) {
			t.Errorf("%s: got %v; want %q", text, err, want)
		}
	}
}
