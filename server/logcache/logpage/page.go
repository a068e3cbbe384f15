// Package logpage reads the log of an app or a service instance as clients of the log cache get it.
package logpage

import (
	"encoding/base64"
	"fmt"
	"strconv"
)

// Page is an answer of the log cache's API.
type Page struct {
	Envelopes struct {
		Batch []struct {
			Timestamp string
			Instance  string `json:"instance_id"`
			Tags      map[string]string
			Log       struct{ Payload string }
		}
	}
}

// PathOfNewest is where the API has the newest lines of a source, the newest first.
func PathOfNewest(source string) string {
	return fmt.Sprintf("/api/v1/read/%s?envelope_types=LOG&limit=1000&descending=true", source)
}

// Line is a line of a log.
type Line struct {
	Nanoseconds            int64 // since 1970
	Source, Instance, Text string
}

// All returns the lines of the page in their order.
func (p *Page) All() (all []Line) {
	for _, e := range p.Envelopes.Batch {
		at, err := strconv.ParseInt(e.Timestamp, 10, 64)
		text, err2 := base64.StdEncoding.DecodeString(e.Log.Payload)
		if err == nil && err2 == nil {
			all = append(all, Line{at, e.Tags["source_type"], e.Instance, string(text)})
		}
	}
	return all
}

// Path is where the API has the log of an app from a time on, in nanoseconds.
func Path(app string, from int64) string {
	return fmt.Sprintf("/api/v1/read/%s?envelope_types=LOG&limit=1000&start_time=%d", app, from)
}

// Lines returns the lines whose source type is wanted, and the time of the last line.
func (p *Page) Lines(wanted func(source string) bool) (lines []string, last int64) {
	for _, e := range p.Envelopes.Batch {
		if t, err := strconv.ParseInt(e.Timestamp, 10, 64); err == nil {
			last = max(last, t)
		}
		if text, err := base64.StdEncoding.DecodeString(e.Log.Payload); err == nil && wanted(e.Tags["source_type"]) {
			lines = append(lines, string(text))
		}
	}
	return lines, last
}
