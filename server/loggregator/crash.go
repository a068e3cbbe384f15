package loggregator

import (
	"slices"
	"strconv"
	"strings"

	"cupola/runtime/lrp"
	"cupola/server/crash"
	"cupola/server/logcache"
	"cupola/store/cf"
)

// What is looked through of an instance's log: its last lines, and of each the beginning.
const (
	lastLines   = 200
	longestLine = 2 << 10 // bytes
)

// WhyCrashed reads the log of a process once, and returns what says in one line why an instance of it crashed, from its row and
// its last lines. It looks no further back once it has those of all instances.
func (s *Stream) WhyCrashed(p *cf.Process) func(*lrp.Actual) string {
	of := map[string][]crash.Line{} // by instance, the newest first
	process := "APP/PROC/" + strings.ToUpper(p.Type)
	full := 0
	s.Cache.Newest(p.AppGUID, func(e *logcache.Envelope) bool {
		source := e.Tags["source_type"]
		if is := source == process || strings.HasPrefix(source, process+"/"); is && len(of[e.InstanceID]) < lastLines { // its sidecars', too
			of[e.InstanceID] = append(of[e.InstanceID], crash.Line{Source: source, Text: string(e.Payload[:min(len(e.Payload), longestLine)])})
			if index, _ := strconv.Atoi(e.InstanceID); index < p.Instances && len(of[e.InstanceID]) == lastLines {
				full++
			}
		}
		return full < p.Instances
	})
	for _, lines := range of {
		slices.Reverse(lines)
	}
	return func(a *lrp.Actual) string { return crash.Brief(a.CrashReason, of[strconv.Itoa(a.Index)]) }
}
