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

// lastLines is how many lines of an app's log are looked through for those of one instance.
const lastLines = 200

// WhyCrashed says in one line why an instance of a process crashed, from its row and its last lines.
func (s *Stream) WhyCrashed(p *cf.Process, a *lrp.Actual) string {
	var lines []crash.Line
	for _, e := range s.Cache.Read(logcache.Query{SourceID: p.AppGUID, Limit: lastLines, Descending: true}) {
		source := e.Tags["source_type"]
		if e.InstanceID == strconv.Itoa(a.Index) && strings.HasPrefix(source+"/", "APP/PROC/"+strings.ToUpper(p.Type)+"/") { // its sidecars', too
			lines = append(lines, crash.Line{Source: source, Text: string(e.Payload)})
		}
	}
	slices.Reverse(lines)
	return crash.Brief(a.CrashReason, lines)
}
