package deployment

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"cupola/cmd/cupola/capi"
	"cupola/cmd/cupola/command"
)

type logsCmd struct {
	boshOne
	Instance string   `arg:"" optional:"" help:"An instance group, or an instance like nats/0; all by default." placeholder:"GROUP[/INDEX|GUID]"`
	Follow   bool     `help:"Follow the log." short:"f"`
	Num      int      `help:"Show only so many of the last lines." placeholder:"LINES"`
	Quiet    bool     `help:"Print lines without their time, instance and process." short:"q"`
	Job      []string `help:"Only logs of this job." placeholder:"JOB"`
	Dir      string   `help:"Instead, download the files in /var/vcap/sys/log of each instance to this directory, as a .tgz." placeholder:"DIR"`
	Only     []string `help:"With --dir, only files whose path in /var/vcap/sys/log matches, like 'nats/*.log'." aliases:"filter" placeholder:"PATTERN"`
}

// Run shows what the processes and scripts of a deployment have written of late, or
// downloads their log files.
func (c *logsCmd) Run(e *command.Env) error {
	if err := c.check(); err != nil {
		return err
	}
	api, err := c.Login(e.Ctx)
	if err != nil {
		return err
	}
	if c.Dir != "" {
		return c.download(e, api)
	}
	var d boshView
	if err := api.Call(e.Ctx, "GET", c.path(), nil, &d); err != nil {
		return err
	}
	v := &logView{e: e, api: api, guid: d.GUID, num: c.Num, quiet: c.Quiet, jobs: c.Job}
	if c.Instance != "" {
		if v.instances, err = instancesOf(e, api, c.Deployment, c.Instance); err != nil {
			return err
		}
	}
	for from := int64(0); ; {
		last, err := v.show(from)
		if err != nil || !c.Follow {
			return err
		}
		from = max(from, last+1)
		if capi.Pause(e.Ctx, taskPoll) != nil {
			return nil
		}
	}
}

func (c *logsCmd) check() error {
	switch {
	case c.Num < 0:
		return fmt.Errorf("invalid --num %d: give a number of lines", c.Num)
	case c.Dir != "" && (c.Follow || c.Num > 0 || c.Quiet):
		return errors.New("--dir downloads files: it cannot be given with --follow, --num or --quiet")
	case c.Dir == "" && c.Only != nil:
		return errors.New("--only needs --dir")
	}
	return nil
}

// logView prints lines of a deployment's log.
type logView struct {
	e         *command.Env
	api       *capi.Client
	guid      string // of the deployment
	num       int
	quiet     bool
	jobs      []string           // nil: all
	instances []boshInstanceView // nil: all
}

// logLine is an envelope of the log cache.
type logLine struct {
	Timestamp string
	Tags      map[string]string
	Log       struct{ Payload, Type string }
}

// show prints lines from a time on, or the last ones when that is 0, and returns when
// the last of them was written.
func (v *logView) show(from int64) (last int64, err error) {
	var answer struct{ Envelopes struct{ Batch []logLine } }
	newest := from == 0
	if err := v.api.Call(v.e.Ctx, "GET", fmt.Sprintf("/api/v1/read/%s?envelope_types=LOG&limit=1000&start_time=%d&descending=%t", v.guid, from, newest), nil, &answer); err != nil {
		return from, err
	}
	batch := answer.Envelopes.Batch
	if newest {
		slices.Reverse(batch)
	}
	var wanted []logLine
	for _, l := range batch {
		if at, err := strconv.ParseInt(l.Timestamp, 10, 64); err == nil {
			last = max(last, at)
		}
		if v.wants(l.Tags) {
			wanted = append(wanted, l)
		}
	}
	if newest && v.num > 0 {
		wanted = wanted[max(len(wanted)-v.num, 0):]
	}
	for _, l := range wanted {
		v.print(l)
	}
	return last, nil
}

func (v *logView) wants(tags map[string]string) bool {
	if v.jobs != nil && !slices.Contains(v.jobs, tags["bosh_job"]) {
		return false
	}
	return v.instances == nil || slices.ContainsFunc(v.instances, func(i boshInstanceView) bool {
		return i.Group == tags["job"] && strconv.Itoa(i.Index) == tags["index"]
	})
}

func (v *logView) print(l logLine) {
	at, err := strconv.ParseInt(l.Timestamp, 10, 64)
	payload, err2 := base64.StdEncoding.DecodeString(l.Log.Payload)
	if err != nil || err2 != nil {
		return
	}
	text := command.Printable(string(payload))
	if v.quiet {
		fmt.Fprintln(v.e.Out, text)
		return
	}
	// Each instance has separate LRPs, so the index in the envelope is always 0.
	// The cell's own lines have no group in their source.
	group := l.Tags["job"]
	process := strings.TrimPrefix(l.Tags["source_type"], group+"/")
	fmt.Fprintf(v.e.Out, "%s [%s/%s %s] %s\n", time.Unix(0, at).Local().Format("15:04:05.00"), group, l.Tags["index"], process, text)
}
