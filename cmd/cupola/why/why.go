// Package why explains why an app's instances do not run, from what the v3 API and the log cache tell of them.
package why

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"cupola/cmd/cupola/capi"
	"cupola/runtime/lrp"
	"cupola/server/crash"
)

// Crash is an app.crash event.
type Crash struct {
	CreatedAt time.Time `json:"created_at"`
	Data      struct {
		Index       int
		Description string `json:"exit_description"`
	}
}

// facts are the API's answers.
type facts struct {
	state     string         // of the app: STARTED or STOPPED
	instances map[string]int // by process type and state
	waits     []string       // why instances cannot be placed, or wait for their cell
	build     string         // error of the last build; "" unless it failed
	bare      bool           // the app has no droplet
	crash     *Crash         // the last
	lines     []logLine
}

// logLine is a line of the app's log, with the index of the instance that it is of.
type logLine struct {
	crash.Line
	instance string
}

// linesOf returns the lines of the app's instances with an index, and of its stagings. source is that of the lines of
// one process or sidecar, like APP/PROC/WORKER, and leaves out the others; "" is any.
func (f *facts) linesOf(source, instance string) (lines []crash.Line) {
	for _, l := range f.lines {
		others := source != "" && strings.HasPrefix(l.Source, "APP/PROC/") && !strings.HasPrefix(l.Source+"/", source+"/")
		if l.instance == instance && !others || strings.HasPrefix(l.Source, "STG") {
			lines = append(lines, l.Line)
		}
	}
	return lines
}

// crashLines returns the lines of the instance that crashed last. The crash's description begins with the source of its process or
// sidecar: "APP/PROC/WORKER: Exited with status 1".
func (f *facts) crashLines() []crash.Line {
	source, _, _ := strings.Cut(f.crash.Data.Description, ":")
	if !strings.HasPrefix(source, "APP/PROC/") {
		source = ""
	}
	return f.linesOf(source, strconv.Itoa(f.crash.Data.Index))
}

// Explain says why instances of an app do not run, a line each; path is the app's in the API.
func Explain(ctx context.Context, c *capi.Client, path string) ([]string, error) {
	f, err := read(ctx, c, path)
	if err != nil {
		return nil, err
	}
	return f.explain(), nil
}

func read(ctx context.Context, c *capi.Client, path string) (f facts, err error) {
	var app struct{ GUID, State string }
	if err := c.Call(ctx, "GET", path, nil, &app); err != nil {
		return f, err
	}
	f.state, f.instances = app.State, map[string]int{}
	if err := f.readStates(ctx, c, path); err != nil {
		return f, err
	}
	var builds struct {
		Resources []struct{ State, Error string }
	}
	if err := c.Call(ctx, "GET", path+"/builds?per_page=1&order_by=-created_at", nil, &builds); err != nil {
		return f, err
	}
	if len(builds.Resources) > 0 && builds.Resources[0].State == "FAILED" {
		f.build = builds.Resources[0].Error
	}
	var droplets struct{ Resources []struct{ GUID string } }
	if err := c.Call(ctx, "GET", path+"/droplets?per_page=1&states=STAGED", nil, &droplets); err != nil {
		return f, err
	}
	f.bare = len(droplets.Resources) == 0
	query := url.Values{"types": {"app.crash"}, "target_guids": {app.GUID}, "order_by": {"-created_at"}, "per_page": {"1"}}
	var events struct{ Resources []Crash }
	if err := c.Call(ctx, "GET", "/v3/audit_events?"+query.Encode(), nil, &events); err != nil {
		return f, err
	}
	if len(events.Resources) > 0 {
		f.crash = &events.Resources[0]
	}
	f.lines, err = readLines(ctx, c, app.GUID)
	return f, err
}

// readStates counts the instances of all processes.
func (f *facts) readStates(ctx context.Context, c *capi.Client, path string) error {
	processes, err := capi.List[struct{ GUID, Type string }](ctx, c, path+"/processes")
	if err != nil {
		return err
	}
	for _, p := range processes {
		var stats struct {
			Resources []struct{ State, Details string }
		}
		if err := c.Call(ctx, "GET", "/v3/processes/"+p.GUID+"/stats", nil, &stats); err != nil {
			return err
		}
		for _, s := range stats.Resources {
			f.instances[p.Type+" "+s.State]++
			if s.State == "DOWN" || strings.HasPrefix(s.Details, lrp.WaitsPrefix) {
				f.waits = append(f.waits, waiting(p.Type, s.Details)...)
			}
		}
	}
	return nil
}

// waiting says what an instance of a process waits for, and how to mend it.
func waiting(process, details string) (said []string) {
	why, placed := strings.CutPrefix(details, lrp.WaitsPrefix)
	switch {
	case details == "":
		return nil
	case placed:
		said = append(said, fmt.Sprintf("An instance of %s waits: %s", process, why))
	default:
		said = append(said, fmt.Sprintf("An instance of %s cannot be placed: %s", process, why))
	}
	if mend := crash.Mend(why); mend != "" {
		said = append(said, "To mend it: "+mend+".")
	}
	return said
}

// readLines reads the end of an app's log.
func readLines(ctx context.Context, c *capi.Client, app string) (lines []logLine, err error) {
	var answer struct {
		Envelopes struct {
			Batch []struct {
				Instance string `json:"instance_id"`
				Tags     map[string]string
				Log      struct{ Payload string }
			}
		}
	}
	if err := c.Call(ctx, "GET", "/api/v1/read/"+app+"?envelope_types=LOG&limit=1000&descending=true&start_time=0", nil, &answer); err != nil {
		return nil, err
	}
	for _, e := range slices.Backward(answer.Envelopes.Batch) {
		if text, err := base64.StdEncoding.DecodeString(e.Log.Payload); err == nil {
			lines = append(lines, logLine{crash.Line{Source: e.Tags["source_type"], Text: strings.TrimRight(string(text), "\n")}, e.Instance})
		}
	}
	return lines, nil
}
