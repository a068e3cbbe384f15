// Package logpage reads an app's log as clients of the log cache get it.
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
			Tags      map[string]string
			Log       struct{ Payload string }
		}
	}
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
