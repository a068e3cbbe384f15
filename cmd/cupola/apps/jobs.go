package apps

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"cupola/cmd/cupola/capi"
	"cupola/cmd/cupola/command"
	"cupola/server/logcache/logpage"
	"cupola/server/manifest"
	"cupola/store/cf"
)

// JobsCmd is cupola jobs.
type JobsCmd struct {
	List       listJobsCmd   `cmd:"" default:"withargs" help:"List the jobs with their schedules."`
	Create     createJobCmd  `cmd:"" help:"Create a job: a command of an app that runs as a task, or a call, which requests a URL."`
	Schedule   scheduleCmd   `cmd:"" help:"Run a job by a cron expression."`
	Unschedule unscheduleCmd `cmd:"" help:"Delete a schedule of a job, or all."`
	Pause      pauseJobCmd   `cmd:"" help:"Stop running a job by its schedules until 'resume'."`
	Resume     resumeJobCmd  `cmd:"" help:"Run a job by its schedules again, from now on."`
	Run        runJobCmd     `cmd:"" help:"Run a job now."`
	History    jobHistoryCmd `cmd:"" help:"List the last runs of a job, the newest first."`
	Logs       jobLogsCmd    `cmd:"" help:"Print the log of a run of a job."`
	Delete     deleteJobCmd  `cmd:"" help:"Delete a job with its schedules and history."`
}

// job is a job or a call as the API shows it.
type job struct {
	GUID, Name, Command, State string
	URL                        string
	App                        string `json:"app_guid"`

	kind cf.AppJobKind
}

// jobsOf are the jobs and the calls that a query asks for, by name.
func jobsOf(ctx context.Context, c *capi.Client, query url.Values) (all []job, err error) {
	for _, kind := range []cf.AppJobKind{cf.KindJob, cf.KindCall} {
		found, err := capi.List[job](ctx, c, job{kind: kind}.base()+"?"+query.Encode())
		if err != nil {
			return nil, err
		}
		for _, j := range found {
			j.kind = kind
			all = append(all, j)
		}
	}
	slices.SortStableFunc(all, func(a, b job) int { return cmp.Compare(a.Name, b.Name) })
	return all, nil
}

// does is what a run of the job does.
func (j job) does() string {
	if j.kind == cf.KindCall {
		return strings.TrimSpace("POST " + j.URL)
	}
	return j.Command
}

// schedule is a schedule of a job as the API shows it.
type schedule struct {
	GUID, Expression string
	Enabled          bool
	Next             *time.Time `json:"next_time"`
}

// execution is a run of a job as the API shows it.
type execution struct {
	GUID, State, Message string
	Task                 string     `json:"task_name"`
	Scheduled            *time.Time `json:"scheduled_time"`
	Started              *time.Time `json:"execution_start_time"`
	Ended                *time.Time `json:"execution_end_time"`
}

// jobFlags name a job.
type jobFlags struct {
	capi.Flags
	App string `help:"The job's app, if the name is not unique." placeholder:"NAME"`
	Job string `arg:"" help:"The job's name."`
}

// find gives the client and the job.
func (f *jobFlags) find(ctx context.Context) (*capi.Client, job, error) {
	c, err := f.Login(ctx)
	if err != nil {
		return nil, job{}, err
	}
	query := url.Values{"name": {f.Job}}
	if f.App != "" {
		app, err := capi.Place{}.Find(ctx, c, "app", "apps", f.App)
		if err != nil {
			return nil, job{}, err
		}
		query.Set("app_guid", app)
	}
	all, err := jobsOf(ctx, c, query)
	switch {
	case err != nil:
		return nil, job{}, err
	case len(all) == 0:
		return nil, job{}, fmt.Errorf("job %s does not exist: see 'cupola jobs list'", f.Job)
	case len(all) > 1:
		return nil, job{}, fmt.Errorf("there are %d jobs named %s: give --app", len(all), f.Job)
	}
	return c, all[0], nil
}

// base is the API's path for the job's kind.
func (j job) base() string { return "/" + string(j.kind) + "s" }

func (j job) path(parts ...string) string {
	return strings.Join(append([]string{j.base(), j.GUID}, parts...), "/")
}

func (j job) schedules(ctx context.Context, c *capi.Client) ([]schedule, error) {
	return capi.List[schedule](ctx, c, j.path("schedules"))
}

type listJobsCmd struct {
	capi.Flags
	App string `arg:"" optional:"" help:"The app whose jobs to list; by default those of all apps." placeholder:"APP"`
	capi.Place
}

// Run lists jobs.
func (l *listJobsCmd) Run(e *command.Env) error {
	c, err := l.Login(e.Ctx)
	if err != nil {
		return err
	}
	query := url.Values{}
	if l.App != "" {
		app, err := l.Find(e.Ctx, c, "app", "apps", l.App)
		if err != nil {
			return err
		}
		query.Set("app_guid", app)
	}
	jobs, err := jobsOf(e.Ctx, c, query)
	if err != nil {
		return err
	}
	names, err := appNames(e.Ctx, c)
	if err != nil {
		return err
	}
	t := &command.Table{}
	t.Add("JOB", "APP", "STATE", "NEXT", "SCHEDULE", "COMMAND")
	for _, j := range jobs {
		all, err := j.schedules(e.Ctx, c)
		if err != nil {
			return err
		}
		if len(all) == 0 {
			t.Add(j.Name, names[j.App], j.State, "-", "-", j.does())
		}
		for _, s := range all {
			next := "paused"
			if s.Enabled {
				next = shown(s.Next)
			}
			t.Add(j.Name, names[j.App], j.State, next, s.Expression, j.does())
		}
	}
	return t.Write(e.Out)
}

// appNames are the names of the apps that the user sees, by GUID.
func appNames(ctx context.Context, c *capi.Client) (map[string]string, error) {
	all, err := capi.List[struct{ GUID, Name string }](ctx, c, "/v3/apps?per_page=5000")
	names := map[string]string{}
	for _, a := range all {
		names[a.GUID] = a.Name
	}
	return names, err
}

// shown is a time as tables show it.
func shown(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return t.Local().Format("2006-01-02 15:04:05")
}

type createJobCmd struct {
	appFlags
	Job           string        `arg:"" help:"The job's name, unique in the app's space."`
	Command       string        `arg:"" optional:"" help:"The command to run."`
	URL           string        `help:"Make it a call: send a POST request to this URL instead." placeholder:"URL"`
	Authorization string        `help:"Authorization header of a call's requests, like 'Bearer abc'." env:"CUPOLA_CALL_AUTHORIZATION" placeholder:"VALUE"`
	Schedule      []string      `help:"Run it by this cron expression; may be repeated." placeholder:"EXPRESSION" sep:"none"`
	TimeZone      string        `help:"Time zone of the schedules, like Europe/Berlin; by default UTC." placeholder:"ZONE"`
	Memory        string        `help:"Memory limit of a run; by default that of tasks." short:"m" placeholder:"SIZE"`
	Disk          string        `help:"Disk limit of a run; by default that of tasks." short:"k" placeholder:"SIZE"`
	Timeout       time.Duration `help:"Cancel a run after this time; by default 24h, a call after 1m." placeholder:"DURATION"`
}

// Run creates a job with its schedules.
func (n *createJobCmd) Run(e *command.Env) error {
	c, path, err := n.find(e.Ctx)
	if err != nil {
		return err
	}
	app := strings.Split(path, "/")[3]
	body, kind, err := n.request()
	if err != nil {
		return err
	}
	j := job{kind: kind}
	if err := c.Call(e.Ctx, http.MethodPost, j.base()+"?"+capi.Filter("app_guid", app), body, &j); err != nil {
		return err
	}
	fmt.Fprintf(e.Out, "Created the %s %s of %s.\n", kind, n.Job, n.App)
	for _, s := range n.Schedule {
		if err := addSchedule(e, c, j, s, n.TimeZone); err != nil {
			return fmt.Errorf("the %s %s was created without the schedule %q: %w", kind, n.Job, s, err)
		}
	}
	return nil
}

// request is a request to the API.
func (n *createJobCmd) request() (capi.Doc, cf.AppJobKind, error) {
	if (n.Command == "") == (n.URL == "") {
		return nil, "", errors.New("give a command, or a URL by --url")
	}
	body := capi.Doc{"name": n.Job}
	if n.Timeout != 0 {
		body["timeout_in_seconds"] = int(n.Timeout.Seconds())
	}
	if n.URL != "" {
		if n.Memory+n.Disk != "" {
			return nil, "", errors.New("--memory and --disk are limits of a command: a call has none")
		}
		body["url"], body["auth_header"] = n.URL, n.Authorization
		return body, cf.KindCall, nil
	}
	if n.Authorization != "" {
		return nil, "", errors.New("--authorization, or CUPOLA_CALL_AUTHORIZATION, is for a call's requests, and a command makes none: leave it out, or give --url")
	}
	body["command"] = n.Command
	for key, size := range map[string]string{"memory_in_mb": n.Memory, "disk_in_mb": n.Disk} {
		if size == "" {
			continue
		}
		bytes, ok := manifest.ParseSize(size)
		if !ok {
			return nil, "", fmt.Errorf("invalid size %q: give a number with a unit, like 256M or 1G", size)
		}
		body[key] = bytes >> 20
	}
	return body, cf.KindJob, nil
}

// addSchedule adds a schedule to a job and prints when it is due.
func addSchedule(e *command.Env, c *capi.Client, j job, expression, zone string) error {
	var s schedule
	if err := c.Call(e.Ctx, http.MethodPost, j.path("schedules"), capi.Doc{"expression": expression, "time_zone": zone}, &s); err != nil {
		return err
	}
	fmt.Fprintf(e.Out, "%s runs by %q, next at %s.\n", j.Name, s.Expression, shown(s.Next))
	return nil
}

type scheduleCmd struct {
	jobFlags
	Expression string `arg:"" help:"A cron expression, like \"30 2 * * *\" or @daily."`
	TimeZone   string `help:"Time zone of the expression, like Europe/Berlin; by default UTC." placeholder:"ZONE"`
}

// Run adds a schedule.
func (s *scheduleCmd) Run(e *command.Env) error {
	c, j, err := s.find(e.Ctx)
	if err != nil {
		return err
	}
	return addSchedule(e, c, j, s.Expression, s.TimeZone)
}

type unscheduleCmd struct {
	jobFlags
	Expression string `arg:"" optional:"" help:"The expression of the schedule to delete; by default all of the job."`
}

// Run deletes schedules.
func (u *unscheduleCmd) Run(e *command.Env) error {
	return u.each(e, func(c *capi.Client, j job, s schedule) (bool, error) {
		if u.Expression != "" && s.Expression != strings.Join(strings.Fields(u.Expression), " ") {
			return false, nil
		}
		return true, c.Call(e.Ctx, http.MethodDelete, j.path("schedules", s.GUID), nil, nil)
	}, "deleted")
}

// each does something to schedules of the job, of which there must be one, and prints which.
func (f *jobFlags) each(e *command.Env, do func(*capi.Client, job, schedule) (bool, error), done string) error {
	c, j, err := f.find(e.Ctx)
	if err != nil {
		return err
	}
	all, err := j.schedules(e.Ctx, c)
	if err != nil {
		return err
	}
	n := 0
	for _, s := range all {
		did, err := do(c, j, s)
		if err != nil {
			return err
		}
		if did {
			n++
			fmt.Fprintf(e.Out, "The schedule %q of %s is %s.\n", s.Expression, j.Name, done)
		}
	}
	if n == 0 {
		return fmt.Errorf("the job %s has no such schedule: see 'cupola jobs list'", j.Name)
	}
	return nil
}

// enable pauses all schedules of the job, or lets them go on.
func (f *jobFlags) enable(e *command.Env, on bool, done string) error {
	return f.each(e, func(c *capi.Client, j job, s schedule) (bool, error) {
		return true, c.Call(e.Ctx, http.MethodPatch, j.path("schedules", s.GUID), capi.Doc{"enabled": on}, nil)
	}, done)
}

type pauseJobCmd struct{ jobFlags }

// Run pauses a job.
func (p *pauseJobCmd) Run(e *command.Env) error { return p.enable(e, false, "paused") }

type resumeJobCmd struct{ jobFlags }

// Run resumes a job.
func (r *resumeJobCmd) Run(e *command.Env) error { return r.enable(e, true, "enabled") }

type runJobCmd struct {
	jobFlags
	Wait bool `help:"Wait until the run has ended; fail if it failed."`
}

// runPoll is how often a run is looked at.
const runPoll = time.Second

// Run runs a job.
func (r *runJobCmd) Run(e *command.Env) error {
	c, j, err := r.find(e.Ctx)
	if err != nil {
		return err
	}
	var x execution
	if err := c.Call(e.Ctx, http.MethodPost, j.path("execute"), nil, &x); err != nil {
		return err
	}
	if x.Task == "" {
		fmt.Fprintf(e.Out, "%s sends its request. See 'cupola jobs history %[1]s'.\n", j.Name)
	} else {
		fmt.Fprintf(e.Out, "%s runs as the task %s. See 'cupola jobs logs %[1]s'.\n", j.Name, x.Task)
	}
	for guid := x.GUID; r.Wait && x.State == "RUNNING"; {
		select {
		case <-time.After(runPoll):
		case <-e.Ctx.Done():
			return e.Ctx.Err()
		}
		all, err := capi.List[execution](e.Ctx, c, j.path("history"))
		if err != nil {
			return err
		}
		for _, one := range all {
			if one.GUID == guid {
				x = one
			}
		}
	}
	if x.State == "FAILED" {
		return errors.New("the run failed: " + x.Message)
	}
	return nil
}

type jobHistoryCmd struct{ jobFlags }

// Run lists runs.
func (h *jobHistoryCmd) Run(e *command.Env) error {
	c, j, err := h.find(e.Ctx)
	if err != nil {
		return err
	}
	all, err := capi.List[execution](e.Ctx, c, j.path("history"))
	if err != nil {
		return err
	}
	t := &command.Table{}
	t.Add("STATE", "SCHEDULED", "STARTED", "ENDED", "TASK", "MESSAGE")
	for _, x := range all {
		task := x.Task
		if task == "" {
			task = "-"
		}
		t.Add(x.State, shown(x.Scheduled), shown(x.Started), shown(x.Ended), task, x.Message)
	}
	return t.Write(e.Out)
}

type jobLogsCmd struct {
	jobFlags
	Task string `arg:"" optional:"" help:"The task of the run, as 'history' shows it; by default the last run's." placeholder:"TASK"`
}

// Run prints the lines of a run that the log still has.
func (l *jobLogsCmd) Run(e *command.Env) error {
	c, j, err := l.find(e.Ctx)
	if err != nil {
		return err
	}
	if j.kind == cf.KindCall {
		return fmt.Errorf("%s is a call and has no log: see 'cupola jobs history %[1]s'", j.Name)
	}
	all, err := capi.List[execution](e.Ctx, c, j.path("history"))
	if err != nil {
		return err
	}
	for _, x := range all {
		if x.Started != nil && (l.Task == "" || x.Task == l.Task) {
			return printTask(e, c, j.App, x)
		}
	}
	return fmt.Errorf("the job %s has no such run: see 'cupola jobs history %[1]s'", j.Name)
}

// printTask prints the lines of a task of an app.
func printTask(e *command.Env, c *capi.Client, app string, x execution) error {
	for from := x.Started.UnixNano(); ; {
		var page logpage.Page
		if err := c.Call(e.Ctx, http.MethodGet, logpage.Path(app, from), nil, &page); err != nil {
			return err
		}
		lines, last := page.Lines(func(source string) bool { return source == "APP/TASK/"+x.Task })
		for _, line := range lines {
			fmt.Fprintln(e.Out, command.Printable(line))
		}
		if last < from {
			return nil
		}
		from = last + 1
	}
}

type deleteJobCmd struct{ jobFlags }

// Run deletes a job.
func (d *deleteJobCmd) Run(e *command.Env) error {
	c, j, err := d.find(e.Ctx)
	if err != nil {
		return err
	}
	if err := c.Call(e.Ctx, http.MethodDelete, j.path(), nil, nil); err != nil {
		return err
	}
	fmt.Fprintf(e.Out, "Deleted the %s %s.\n", j.kind, j.Name)
	return nil
}
