package boshapi

import (
	"bytes"
	"net/http"
	"time"

	"cupola/server/bosh/director"
	"cupola/store"
	"cupola/store/cf"
)

// written is what a task has written so far.
type written struct {
	*cf.BOSHTask
	events []*cf.BOSHTaskEvent
	ran    []director.ErrandResult
	output string
	source string // of the deployment's log lines
}

// showOutput answers with what the query's type chooses of what a task has written so far.
// The CLI asks for what it has not got by a Range: an output only grows.
func showOutput(c *call) (*answer, error) {
	var t written
	err := c.in(false, func() (err error) {
		t, err = c.written()
		return err
	})
	if err != nil {
		return nil, err
	}
	var text []byte
	switch kind := c.query("type"); kind {
	case "event":
		text, err = director.EventLog(t.BOSHTask, t.events)
	case "result":
		text, err = c.result(t)
	case "debug", "":
		text = debugLog(t.BOSHTask, t.events, c.logged(t.source, t.BOSHTask))
	case "cpi": // there is none
	default:
		err = &refusal{http.StatusBadRequest, 40000, "type must be event, result, debug or cpi"}
	}
	return &answer{raw: func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(text))
	}}, err
}

// written reads the task of {id}.
func (c *call) written() (w written, err error) {
	if w.BOSHTask, err = c.task(); err != nil {
		return w, err
	}
	if w.events, err = store.BOSHTaskEvents.By(c.tx, "task_guids", w.GUID); err != nil {
		return w, err
	}
	if w.ran, err = director.ErrandResults(w.BOSHTask); err != nil {
		return w, err
	}
	if w.output, err = director.Output(w.BOSHTask); err != nil {
		return w, err
	}
	w.source, err = c.sourceOf(w.DeploymentName)
	return w, err
}

// result is the type result: of errands one JSON line for each run.
func (c *call) result(t written) ([]byte, error) {
	if director.Kind(t.Kind) == director.RunErrand {
		return c.runs(t.BOSHTask, t.source, t.ran)
	}
	return []byte(t.output), nil
}

// events are those of a stage, whose tasks were done one after the other.
func events(stage string, tasks ...string) (all []cf.BOSHTaskEvent) {
	for _, task := range tasks {
		for _, state := range []string{"started", "finished"} {
			all = append(all, cf.BOSHTaskEvent{Stage: stage, Subject: task, State: state})
		}
	}
	return all
}
