package deployment

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"cupola/cmd/cupola/capi"
	"cupola/cmd/cupola/command"
	"cupola/server/bosh/director"
	"cupola/store/cf"
)

// writeTaskEvents prints the events of a task as the director's event log has them.
func writeTaskEvents(e *command.Env, t boshTask) error {
	events := make([]*cf.BOSHTaskEvent, len(t.Events))
	for n, v := range t.Events {
		events[n] = &cf.BOSHTaskEvent{Resource: cf.Resource{CreatedAt: v.At}, Stage: v.Stage, Subject: v.Subject, State: v.State, Detail: v.Detail}
	}
	text, err := director.EventLog(&cf.BOSHTask{State: cf.BOSHTaskState(t.State), Result: t.Result, EndedAt: t.EndedAt}, events)
	if err != nil {
		return err
	}
	_, err = e.Out.Write(text)
	return err
}

// writeTaskResult prints what came of a task: how errands ended, with what they wrote, as JSON, one a line, and
// its last words.
func writeTaskResult(e *command.Env, api *capi.Client, t boshTask) error {
	if len(t.Errands) > 0 {
		lines, err := taskLines(e, api, t)
		if err != nil {
			return err
		}
		for n := range t.Errands {
			t.Errands[n].collect(lines)
		}
	}
	encoder := json.NewEncoder(e.Out)
	for _, r := range t.Errands {
		if err := encoder.Encode(r); err != nil {
			return err
		}
	}
	if t.Result == "" {
		return nil
	}
	_, err := fmt.Fprintln(e.Out, printedLines(t.Result))
	return err
}

// stamped is a line of a debug log.
type stamped struct {
	at   time.Time
	text string
}

// writeTaskDebug prints the events of a task among the lines that its deployment logged
// meanwhile.
func writeTaskDebug(e *command.Env, api *capi.Client, t boshTask) error {
	var all []stamped
	for _, v := range t.Events {
		text := fmt.Sprintf("[task %d] %s: %s: %s", t.ID, v.Stage, v.Subject, v.State)
		if v.Detail != "" {
			text += ": " + v.Detail
		}
		all = append(all, stamped{v.At, text})
	}
	logged, err := loggedDuring(e, api, t)
	if err != nil {
		return err
	}
	all = append(all, logged...)
	slices.SortStableFunc(all, func(a, b stamped) int { return a.at.Compare(b.at) })
	for _, l := range all {
		if _, err := fmt.Fprintf(e.Out, "%s %s\n", l.at.UTC().Format("2006-01-02T15:04:05.000000Z"), printedLines(l.text)); err != nil {
			return err
		}
	}
	return nil
}

// taskLines are the lines of a task's deployment since it began; none if the deployment is gone.
func taskLines(e *command.Env, api *capi.Client, t boshTask) ([]logLine, error) {
	if t.StartedAt.IsZero() {
		return nil, nil
	}
	var deployments []boshView
	if err := api.Call(e.Ctx, "GET", "/v1/deployments", nil, &deployments); err != nil {
		return nil, err
	}
	at := slices.IndexFunc(deployments, func(d boshView) bool { return d.Name == t.Deployment })
	if at < 0 {
		return nil, nil
	}
	return linesSince(e, api, deployments[at].GUID, t.StartedAt.UnixNano())
}

// loggedDuring are the lines of a task's deployment while it was done.
func loggedDuring(e *command.Env, api *capi.Client, t boshTask) (all []stamped, err error) {
	lines, err := taskLines(e, api, t)
	for _, l := range lines {
		ns, parseErr := strconv.ParseInt(l.Timestamp, 10, 64)
		payload, decodeErr := base64.StdEncoding.DecodeString(l.Log.Payload)
		if cmp.Or(parseErr, decodeErr) != nil || t.ended() && time.Unix(0, ns).After(t.EndedAt) {
			continue
		}
		source := strings.TrimPrefix(l.Tags["source_type"], l.Tags["job"]+"/")
		all = append(all, stamped{time.Unix(0, ns), fmt.Sprintf("[%s/%s %s] %s", l.Tags["job"], l.Tags["index"], source, payload)})
	}
	return all, err
}

type locksCmd struct {
	capi.Flags
	JSON bool `help:"Print JSON." name:"json"`
}

// Run lists the deployments that a task is changing.
func (c *locksCmd) Run(e *command.Env) error {
	type lock struct {
		Type     string    `json:"type"`
		Resource string    `json:"resource"`
		TaskID   int       `json:"task_id"`
		Since    time.Time `json:"since"`
	}
	return printList(e, &c.Flags, "/v1/deployment_locks", c.JSON, "TYPE\tRESOURCE\tTASK\tSINCE", func(w io.Writer, l lock) {
		fmt.Fprintf(w, "%s\t%s\t%d\t%s\n", l.Type, l.Resource, l.TaskID, command.When(l.Since))
	})
}
