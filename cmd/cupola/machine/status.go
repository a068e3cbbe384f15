package machine

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"cupola/cmd/cupola/capi"
	"cupola/cmd/cupola/command"
	"cupola/server/alerts"
	"cupola/server/machine"
	"cupola/store/cf"
)

// StatusCmd is cupola status.
type StatusCmd struct {
	capi.Flags
	JSON bool `help:"Print JSON." name:"json"`
}

// report is the daemon and its machine on one screen.
type report struct {
	API       string              `json:"api"`
	Machine   machine.State       `json:"machine"`
	Counts    map[string]int      `json:"counts"`    // of orgs, spaces, apps and service instances
	Instances map[string]int      `json:"instances"` // that are on cells, by state
	Cells     []cellUse           `json:"cells"`
	Firing    []alerts.AlertView  `json:"firing"`
	Targets   []alerts.TargetView `json:"targets"`
}

// cellUse is a cell as the API shows it.
type cellUse struct {
	ID          string `json:"cell_id"`
	Capacity    room   `json:"capacity"`
	Used        room   `json:"used"`
	Unreachable bool   `json:"unreachable"`
	Instances   []struct {
		State string `json:"state"`
	} `json:"instances,omitempty"`
}

type room struct {
	MemoryMB   int `json:"memory_mb"`
	Containers int `json:"containers"`
}

// Run prints the screen. The exit code is 1 if a critical alert fires.
func (c *StatusCmd) Run(e *command.Env) error {
	api, err := c.Login(e.Ctx)
	if err != nil {
		return err
	}
	r, err := readReport(e.Ctx, api)
	if err != nil {
		return err
	}
	if c.JSON {
		err = command.WriteJSON(e.Out, r)
	} else {
		writeReport(e, r)
	}
	for _, a := range r.Firing {
		if a.Severity == cf.AlertCritical && err == nil {
			return command.ExitCode(1)
		}
	}
	return err
}

func readReport(ctx context.Context, api *capi.Client) (r report, err error) {
	r = report{API: api.API, Counts: map[string]int{}, Instances: map[string]int{}}
	var all struct{ Resources []alerts.AlertView }
	var targets struct{ Resources []alerts.TargetView }
	for _, ask := range []struct {
		path string
		into any
	}{{"/v1/machine", &r.Machine}, {"/v1/cells?include=instances", &r.Cells}, {alerts.Path, &all}, {alerts.Path + "/targets", &targets}} {
		if err := api.Call(ctx, "GET", ask.path, nil, ask.into); err != nil {
			return r, err
		}
	}
	r.Targets = targets.Resources
	for _, a := range all.Resources {
		if a.State == cf.AlertFiring {
			r.Firing = append(r.Firing, a)
		}
	}
	for n, c := range r.Cells {
		for _, i := range c.Instances {
			r.Instances[strings.ToLower(i.State)]++
		}
		r.Cells[n].Instances = nil // counted
	}
	for _, kind := range []string{"organizations", "spaces", "apps", "service_instances"} {
		var list struct {
			Pagination struct {
				Total int `json:"total_results"`
			} `json:"pagination"`
		}
		if err := api.Call(ctx, "GET", "/v3/"+kind+"?per_page=1", nil, &list); err != nil {
			return r, err
		}
		r.Counts[kind] = list.Pagination.Total
	}
	return r, nil
}

// maxShown is how many alerts the screen has room for.
const maxShown = 8

func writeReport(e *command.Env, r report) {
	m, width := r.Machine, command.Width(e)
	line := func(name, format string, args ...any) { writeLine(e.Out, width, name, fmt.Sprintf(format, args...)) }
	line("cupola", "%s on %s, up for %s (Linux %s, cgroup v%d)", m.Version, m.Hostname, shortTime(m.Now.Sub(m.StartedAt)), m.Kernel, m.Cgroup)
	line("address", "%s", r.API)
	line("log in", "%s", e.Called(fmt.Sprintf("cf login -a %s -u admin   (password: 'cupola credentials')", r.API)))
	line("apps", "%s in %s of %s; %s", command.Counted(r.Counts["apps"], "app"), command.Counted(r.Counts["spaces"], "space"),
		command.Counted(r.Counts["organizations"], "org"), command.Counted(r.Counts["service_instances"], "service instance"))
	line("instances", "%s", instancesText(r.Instances))
	for _, c := range r.Cells {
		state := ""
		if c.Unreachable {
			state = "; does not answer"
		}
		line("cell", "%s: %s of memory given out of %s, %d of %d containers%s", command.Printable(c.ID), megabytes(c.Used.MemoryMB), megabytes(c.Capacity.MemoryMB), c.Used.Containers, c.Capacity.Containers, state)
	}
	load := ""
	if len(m.Load) == 3 {
		load = fmt.Sprintf(", load %.2f %.2f %.2f", m.Load[0], m.Load[1], m.Load[2])
	}
	line("processors", "%s %3.0f %% of %d%s", bar(m.CPUUsed), 100*m.CPUUsed, m.CPUs, load)
	line("memory", "%s; the daemon has %s", useText(m.Memory.Total-m.Memory.Available, m.Memory.Total), bytesText(m.Memory.Daemon))
	line("disk", "%s at %s", useText(m.Disk.Total-m.Disk.Available, m.Disk.Total), m.Disk.Path)
	backup := "of the database: none yet"
	if b := m.Backup; b != nil {
		backup = fmt.Sprintf("of the database, %s ago; %d kept", shortTime(m.Now.Sub(b.MadeAt)), b.Kept)
	}
	line("backup", "%s", backup)
	writeFiring(e, line, r)
}

func writeFiring(e *command.Env, line func(name, format string, args ...any), r report) {
	line("alerts", "%d firing", len(r.Firing))
	for n, a := range r.Firing {
		if n == maxShown {
			line("", "%s", e.Called(fmt.Sprintf("… and %d more: 'cupola alerts'", len(r.Firing)-n)))
			break
		}
		line("", "%s", command.Printable(fmt.Sprintf("%s: %s, %s: %s", a.Severity, a.Rule, a.Subject, a.Text)))
	}
	for _, t := range r.Targets {
		if t.FailingSince != nil {
			line("", "%s", e.Called("The target "+t.Name+" takes no alerts: 'cupola alerts targets'"))
		}
	}
	if len(r.Targets) == 0 {
		line("", "%s", e.Called("alerts have no target: 'cupola alerts add-target --help'"))
	}
}

func instancesText(by map[string]int) string {
	var parts []string
	for _, state := range []string{"running", "claimed", "unclaimed", "crashed"} {
		if by[state] > 0 || state == "running" {
			parts = append(parts, fmt.Sprintf("%d %s", by[state], state))
		}
	}
	return strings.Join(parts, ", ")
}

// writeLine writes a name and a text, which goes on below itself where the terminal
// ends.
func writeLine(w io.Writer, width int, name, text string) {
	t := command.Table{Width: width}
	t.Add(fmt.Sprintf("%-10s", name), text)
	_ = t.Write(w) // the terminal may be gone
}

// bar draws a part of 1 in ten cells. It has no spaces: tables fold lines at those.
func bar(part float64) string {
	const cells = 10
	full := min(max(int(part*cells+0.5), 0), cells)
	return "[" + strings.Repeat("=", full) + strings.Repeat(".", cells-full) + "]"
}

func useText(used, total uint64) string {
	part := 0.0
	if total > 0 {
		part = float64(used) / float64(total)
	}
	return fmt.Sprintf("%s %3.0f %% of %s", bar(part), 100*part, bytesText(total))
}

func bytesText(n uint64) string { return command.BytesText(int64(n)) } //nolint:gosec // a size of this machine

func megabytes(mb int) string { return command.BytesText(int64(mb) << 20) }

// shortTime is a duration in its two largest units.
func shortTime(d time.Duration) string {
	switch d = max(d, 0).Round(time.Second); {
	case d >= 24*time.Hour:
		return fmt.Sprintf("%dd %dh", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
	case d >= time.Hour:
		return fmt.Sprintf("%dh %dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return d.String()
}
