package loggregator

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"cupola/runtime/lrp"
	"cupola/server/logcache"
	"cupola/store/cf"
)

// Each instance gets what it has printed itself, or a sidecar beside it, however much others have printed since.
func TestWhyCrashed(t *testing.T) {
	s, _ := speaking(t)
	say := func(index int, source, text string) {
		s.Cache.Append(logcache.Envelope{Timestamp: time.Now(), SourceID: "app-1", InstanceID: strconv.Itoa(index), Tags: map[string]string{"source_type": source}, Payload: []byte(text)})
	}
	say(0, "APP/PROC/WEB", "cannot reach the database")
	say(0, "APP/PROC/WEBBER", "another process")
	say(0, "RTR/0", "GET /")
	say(1, "APP/PROC/WEB/SIDECAR/CONFIG", "bash: line 1: conf: command not found")
	for range 3 * lastLines {
		say(2, "APP/PROC/WEB", "GET /"+strings.Repeat("x", 2*longestLine))
	}
	why := s.WhyCrashed(&cf.Process{AppGUID: "app-1", Type: "web", Instances: 4})
	for index, want := range []string{
		"Exited with status 1. Its last output: cannot reach the database",
		"Exited with status 1. The command conf is missing",
		"Exited with status 1. Its last output: GET /xxx",
		"Exited with status 1",
	} {
		got := why(&lrp.Actual{Key: lrp.Key{Index: index}, CrashReason: "APP/PROC/WEB: Exited with status 1"})
		if !strings.HasPrefix(got, want) || len(got) > 2*longestLine {
			t.Errorf("instance %d: got %q; want %q", index, got, want)
		}
	}
}
