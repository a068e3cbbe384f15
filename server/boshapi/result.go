package boshapi

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"cupola/server/bosh/agent"
	"cupola/server/bosh/director"
	"cupola/server/logcache"
	"cupola/store"
	"cupola/store/cf"
)

// errandRun is how an errand has ended on an instance, as the director's result has it.
type errandRun struct {
	Instance struct {
		Group string `json:"group"`
		ID    string `json:"id"`
	} `json:"instance"`
	ErrandName string `json:"errand_name"`
	ExitCode   int    `json:"exit_code"`
	Stdout     string `json:"stdout"`
	Stderr     string `json:"stderr"`
	Logs       struct {
		BlobstoreID string `json:"blobstore_id"`
	} `json:"logs"` // without a digest: they are packed when they are downloaded
}

// outputTime bounds how long the result of an errand waits for its last lines: the cell
// writes one when the errand's container is gone.
const outputTime = 10 * time.Second

// runs are the results of an errand, with what it wrote, as JSON lines.
func (c *call) runs(t *cf.BOSHTask, source string, results []director.ErrandResult) ([]byte, error) {
	slices.SortStableFunc(results, func(a, b director.ErrandResult) int { return strings.Compare(a.Instance, b.Instance) })
	runs := make([]errandRun, len(results))
	for end := time.Now().Add(outputTime); ; {
		lines := c.logged(source, t)
		complete := true
		for n, r := range results {
			complete = runs[n].collect(r, lines) && complete
		}
		if complete || source == "" || time.Now().After(end) {
			break
		}
		select {
		case <-c.Request.Context().Done():
			return nil, c.Request.Context().Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	for n := range runs {
		if source != "" {
			runs[n].Logs.BlobstoreID = logRequest{Deployment: source, GUID: results[n].GUID}.id()
		}
		if err := encoder.Encode(runs[n]); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), nil
}

// collect takes what the errand wrote from lines, and reports whether these are all.
func (e *errandRun) collect(r director.ErrandResult, lines []logcache.Envelope) (complete bool) {
	var stdout, stderr strings.Builder
	for _, l := range lines {
		if l.Tags["bosh_call"] != r.Call {
			continue
		}
		own, last := agent.CallLine(r.Call, string(l.Payload))
		complete = complete || last
		switch {
		case !own:
		case l.Err:
			fmt.Fprintf(&stderr, "%s\n", l.Payload)
		default:
			fmt.Fprintf(&stdout, "%s\n", l.Payload)
		}
	}
	e.Instance.Group, _, _ = strings.Cut(r.Instance, "/")
	e.Instance.ID, e.ErrandName, e.ExitCode = r.GUID, r.Job, r.ExitCode
	e.Stdout, e.Stderr = stdout.String(), stderr.String()
	return complete
}

// logged are the lines of a task's deployment while it was done. They may come later than
// the task's end.
func (c *call) logged(source string, t *cf.BOSHTask) []logcache.Envelope {
	if source == "" || t.StartedAt.IsZero() || c.Logs == nil {
		return nil
	}
	return c.Logs.Read(logcache.Query{SourceID: source, Start: t.StartedAt})
}

// sourceOf is the source of a deployment's log lines; "" if it is gone.
func (c *call) sourceOf(name string) (string, error) {
	d, err := store.BOSHDeployments.First(c.tx, store.Query{Where: map[string][]string{"names": {name}}})
	if store.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return d.GUID, nil
}

// logDelay is the minimum age of a debug log's lines while its task runs, so that lines
// that were read do not change.
const logDelay = 2 * time.Second

// debugLog writes the events of a task among the lines that its deployment logged
// meanwhile.
func debugLog(t *cf.BOSHTask, events []*cf.BOSHTaskEvent, lines []logcache.Envelope) []byte {
	type stamped struct {
		at   time.Time
		text string
	}
	var all []stamped
	for _, e := range events {
		text := fmt.Sprintf("[task %d] %s: %s: %s", t.Number, e.Stage, e.Subject, e.State)
		if e.Detail != "" {
			text += ": " + e.Detail
		}
		all = append(all, stamped{e.CreatedAt, text})
	}
	for _, l := range lines {
		source := strings.TrimPrefix(l.Tags["source_type"], l.Tags["job"]+"/")
		all = append(all, stamped{l.Timestamp, fmt.Sprintf("[%s/%s %s] %s", l.Tags["job"], l.Tags["index"], source, l.Payload)})
	}
	end := t.EndedAt
	if end.IsZero() {
		end = time.Now().Add(-logDelay)
	}
	slices.SortStableFunc(all, func(a, b stamped) int { return cmp.Or(a.at.Compare(b.at)) })
	var out bytes.Buffer
	for _, l := range all {
		if !l.at.After(end) {
			fmt.Fprintf(&out, "%s %s\n", l.at.UTC().Format("2006-01-02T15:04:05.000000Z"), printed(l.text))
		}
	}
	return out.Bytes()
}

// printed is a line without what would change a terminal.
func printed(line string) string {
	return strings.Map(func(r rune) rune {
		if r != '\t' && unicode.IsControl(r) {
			return -1
		}
		return r
	}, line)
}
