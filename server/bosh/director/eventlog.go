package director

import (
	"bytes"
	"encoding/json"
	"strings"

	"cupola/store/cf"
)

// logLine is a line of the director's event log.
type logLine struct {
	Time     int64     `json:"time"`
	Stage    string    `json:"stage"`
	Tags     []string  `json:"tags"`
	Total    int       `json:"total"`
	Task     string    `json:"task"`
	Index    int       `json:"index"`
	State    string    `json:"state"`
	Progress int       `json:"progress"`
	Data     *logError `json:"data,omitempty"`
}

type logError struct {
	Error string `json:"error"`
}

// taskError is the last line of a task that has failed.
type taskError struct {
	Time  int64 `json:"time"`
	Error struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// EventLog writes the events of a task as BOSH's director does, JSON lines. With more
// events it only grows: clients read it from where they have got to.
func EventLog(t *cf.BOSHTask, events []*cf.BOSHTaskEvent) ([]byte, error) {
	type key struct{ stage, subject string }
	indices, totals := map[key]int{}, map[string]int{}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	for _, e := range events {
		k := key{e.Stage, e.Subject}
		if indices[k] == 0 {
			totals[e.Stage]++
			indices[k] = totals[e.Stage]
		}
		line := logLine{Time: e.CreatedAt.Unix(), Total: totals[e.Stage], Task: e.Subject, Index: indices[k], State: e.State, Progress: 100}
		line.Stage, line.Tags = stageOf(e.Stage)
		switch e.State {
		case "started":
			line.Progress = 0
		case "failed":
			line.Data = &logError{e.Detail}
		}
		if err := encoder.Encode(line); err != nil {
			return nil, err
		}
	}
	if t.State != cf.BOSHError && t.State != cf.BOSHCancelled {
		return out.Bytes(), nil
	}
	last := taskError{Time: t.EndedAt.Unix()}
	last.Error.Code, last.Error.Message = 100, t.Result
	if t.State == cf.BOSHCancelled {
		last.Error.Code = 10001
	}
	err := encoder.Encode(last)
	return out.Bytes(), err
}

// stageOf takes the group, which BOSH has as a tag, from the name of a stage.
func stageOf(name string) (stage string, tags []string) {
	for _, stage := range []string{"Updating instance", "Deleting unneeded instances", "Renaming instances"} {
		if group, ok := strings.CutPrefix(name, stage+" "); ok {
			return stage, []string{group}
		}
	}
	return name, []string{}
}
