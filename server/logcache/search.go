package logcache

import (
	"bytes"
	"context"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"
)

const (
	// maxSearches is how many searches work at a time; others wait.
	maxSearches = 2
	// searchTime is how long a search works until it gives what it found so far.
	searchTime = 3 * time.Second
)

// Search says which log lines of a source to look for. Zero fields ask for nothing.
type Search struct {
	SourceID   string
	Text       string         // that a line has
	FoldCase   bool           // of Text
	Pattern    *regexp.Regexp // that a line matches
	Level      Level          // that a line has at least
	InstanceID string
	SourceType string    // a prefix, like APP or APP/PROC/WEB
	Stderr     bool      // lines of the standard error alone
	Start, End time.Time // inclusive; exclusive, zero: open
	Limit      int

	text []byte // Text, in lower case if that does not matter
}

// Search looks through all that is kept of a source, the newest lines first. It returns at most Limit
// lines, and the End with which to go on, or zero if there is no more.
func (c *Cache) Search(ctx context.Context, q Search) (found []Envelope, next time.Time, err error) {
	select {
	case c.busy <- struct{}{}:
		defer func() { <-c.busy }()
	case <-ctx.Done():
		return nil, next, context.Cause(ctx)
	}
	if q.End.IsZero() {
		q.End = time.Unix(1<<40, 0)
	}
	q.text = []byte(q.Text)
	if q.FoldCase {
		q.text = bytes.ToLower(q.text)
	}
	return c.search(ctx, q)
}

// search reads the segments of the disk, then those of the archive: one that goes from the first to the second
// meanwhile is read twice, and none is left out.
func (c *Cache) search(ctx context.Context, q Search) (found []Envelope, next time.Time, err error) {
	s := searching{Search: q, until: time.Now().Add(searchTime), reached: q.End}
	if c.disk == nil {
		s.add(c.Read(Query{SourceID: q.SourceID, Start: q.Start, End: q.End}))
		return s.result(false)
	}
	path := c.disk.path(q.SourceID)
	for _, suffix := range []string{newerSuffix, olderSuffix} {
		b, err := os.ReadFile(path + suffix)
		if err == nil {
			s.add(parseSegment(b).lines)
		}
	}
	if c.archive == nil {
		return s.result(false)
	}
	for n, f := range c.archive.Files(q.SourceID, q.Start, q.End) {
		if late := n > 0 && time.Now().After(s.until); s.enough(f.Last) || late || ctx.Err() != nil { // each search gets on by a file
			return s.result(true)
		}
		segment, err := f.Read(q.Text)
		if err != nil {
			c.disk.log.Warn("old log lines were not read", "err", err)
		}
		if segment != nil {
			s.add(parseSegment(segment).lines)
		}
		if f.First.Before(s.reached) {
			s.reached = f.First
		}
	}
	return s.result(false)
}

// searching is a search and what it found.
type searching struct {
	Search
	until   time.Time // when it ends
	reached time.Time // all lines from there on were looked at
	found   []Envelope
	seen    map[int64]bool // the times of found: no two lines of a source have the same
}

// add looks at lines.
func (s *searching) add(lines []Envelope) {
	if s.seen == nil {
		s.seen = map[int64]bool{}
	}
	for i := range lines {
		e := &lines[i]
		if at := e.Timestamp.UnixNano(); s.wants(e) && !s.seen[at] {
			s.seen[at] = true
			s.found = append(s.found, *e)
		}
		if e.Timestamp.Before(s.reached) {
			s.reached = e.Timestamp
		}
	}
}

// enough reports whether lines that are not newer than last are not asked for any more.
func (s *searching) enough(last time.Time) bool {
	if len(s.found) < s.Limit {
		return false
	}
	s.sort()
	return last.Before(s.found[s.Limit-1].Timestamp)
}

func (s *searching) sort() {
	slices.SortFunc(s.found, func(a, b Envelope) int { return b.Timestamp.Compare(a.Timestamp) })
}

// result is what Search returns. more says that not all was looked at.
func (s *searching) result(more bool) ([]Envelope, time.Time, error) {
	s.sort()
	switch {
	case len(s.found) > s.Limit:
		s.found = s.found[:s.Limit]
		return s.found, s.found[s.Limit-1].Timestamp, nil
	case more && len(s.found) == s.Limit:
		return s.found, s.found[s.Limit-1].Timestamp, nil
	case more:
		return s.found, s.reached, nil
	}
	return s.found, time.Time{}, nil
}

// wants reports whether a line is what is looked for.
func (q *Search) wants(e *Envelope) bool {
	return !e.Timestamp.Before(q.Start) && e.Timestamp.Before(q.End) &&
		(q.InstanceID == "" || e.InstanceID == q.InstanceID) && (!q.Stderr || e.Err) &&
		strings.HasPrefix(e.Tags[sourceTag], q.SourceType) &&
		(len(q.text) == 0 || q.has(e.Payload)) &&
		(q.Pattern == nil || q.Pattern.Match(e.Payload)) && (q.Level == NoLevel || levelOf(e.Payload) >= q.Level)
}

func (q *Search) has(line []byte) bool {
	if q.FoldCase {
		line = bytes.ToLower(line)
	}
	return bytes.Contains(line, q.text)
}
