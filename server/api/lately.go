package api

import (
	"maps"
	"sync"
	"time"

	"cupola/store/cf"
)

// The CLI lists the processes of an app and then reads each. A deployment that ends
// between the two deletes the old web process: for readLately the CLI can read it still,
// as one without instances.
const (
	readLately = 30 * time.Second
	maxLately  = 10_000 // processes
)

// lately are web processes that were listed to the CLI, by GUID.
type lately struct {
	mu   sync.Mutex
	seen map[string]seenProcess
}

type seenProcess struct {
	process cf.Process
	at      time.Time
}

// note keeps a process that is listed.
func (l *lately) note(p *cf.Process, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.seen) >= maxLately {
		maps.DeleteFunc(l.seen, func(_ string, s seenProcess) bool { return now.Sub(s.at) > readLately })
	}
	if l.seen == nil || len(l.seen) >= maxLately {
		l.seen = map[string]seenProcess{}
	}
	l.seen[p.GUID] = seenProcess{*p, now}
}

// find is a process that was listed a moment ago, without instances; nil for none.
func (l *lately) find(guid string, now time.Time) *cf.Process {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, ok := l.seen[guid]
	if !ok || now.Sub(s.at) > readLately {
		return nil
	}
	s.process.Instances = 0
	return &s.process
}
