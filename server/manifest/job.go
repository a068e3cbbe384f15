package manifest

import (
	"fmt"

	"cupola/server/cron"
)

// maxJobs is how many jobs of an app a manifest may have.
const maxJobs = 50

// Job is a job of an app: a command that runs as a task by schedules.
type Job struct {
	Name      string
	Command   string
	Schedules []string // cron expressions
	MemoryMB  *int
	DiskMB    *int
	Timeout   *int // seconds
}

func (app *App) readJobs(f *fields) {
	list := f.whole("jobs")
	if !f.atMost("jobs", len(list), maxJobs) {
		return
	}
	named := map[string]bool{}
	for _, v := range list {
		m, ok := v.(map[string]any)
		if !ok {
			f.fault("Jobs must be " + listOf["jobs"])
			return
		}
		j, faults := readJob(m)
		if named[j.Name] && j.Name != "" {
			faults = append(faults, "Name must be unique")
		}
		named[j.Name] = true
		for _, fault := range faults {
			f.fault(fmt.Sprintf("Job %q: %s", j.Name, fault))
		}
		app.Jobs = append(app.Jobs, j)
	}
}

// readJob reads a job, whose schedule is a cron expression or a list of them.
func readJob(m map[string]any) (j Job, faults []string) {
	f := &fields{m: underscored(m)}
	j.Name, j.Command = f.filled("name"), f.filled("command")
	f.short("Command", j.Command, maxCommand)
	switch s := m["schedule"].(type) {
	case nil:
	case string:
		j.Schedules = []string{s}
	default:
		j.Schedules, _ = f.texts("schedule")
	}
	for _, s := range j.Schedules {
		if _, err := cron.Parse(s); err != nil {
			f.fault("Schedule is invalid: " + err.Error())
		}
	}
	j.MemoryMB, j.DiskMB, j.Timeout = f.megabytes("memory"), f.megabytes("disk_quota"), f.number("timeout", 1, 7*24*3600)
	return j, f.faults
}
