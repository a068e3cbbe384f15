package logcache

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"time"
)

// maxText bounds the text that is searched for, in bytes.
const maxText = 1 << 10

// serveSearch answers with the newest lines that match, in the form of a read, and with the end_time to go on
// with where not all was looked at.
func (c *Cache) serveSearch(w http.ResponseWriter, r *http.Request) {
	q, err := parseSearch(r.PathValue("source_id"), r.URL.Query())
	if err != nil {
		writeInvalid(w, err)
		return
	}
	found, next, err := c.Search(r.Context(), q)
	if err != nil {
		return // the client left
	}
	answer := searchAnswer{readAnswer: viewRead(found)}
	if !next.IsZero() {
		answer.NextEndTime = int64String(next.UnixNano())
	}
	writeJSON(w, http.StatusOK, answer)
}

func parseSearch(sourceID string, values url.Values) (s Search, err error) {
	q := Query{Start: time.Unix(0, 0)}
	if err := parseSpan(&q, values); err != nil {
		return s, err
	}
	s = Search{SourceID: sourceID, Text: values.Get("text"), InstanceID: values.Get("instance_id"), SourceType: values.Get("source_type"), Start: q.Start, End: q.End, Limit: defaultLimit}
	if len(s.Text) > maxText {
		return s, fmt.Errorf("text has %d bytes: %d are allowed", len(s.Text), maxText)
	}
	for name, to := range map[string]*bool{"ignore_case": &s.FoldCase, "stderr": &s.Stderr} {
		if v := values.Get(name); v != "" {
			if *to, err = strconv.ParseBool(v); err != nil {
				return s, fmt.Errorf("parsing field %q: %q is not a boolean", name, v)
			}
		}
	}
	if v := values.Get("limit"); v != "" {
		if s.Limit, err = parseLimit(v); err != nil {
			return s, err
		}
	}
	if s.Level, err = parseLevel(values.Get("level")); err != nil {
		return s, err
	}
	return s, s.compile(values.Get("pattern"))
}

// compile reads the regular expression.
func (q *Search) compile(text string) (err error) {
	if text == "" {
		return nil
	}
	if err = CheckPattern(text); err == nil {
		q.Pattern, err = regexp.Compile(text)
	}
	if err != nil {
		return fmt.Errorf("pattern must be a valid regular expression: %v", err)
	}
	return nil
}
