package logs

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cupola/test/e2e"
)

// What `cf logs --recent` showed before a kill -9 it shows after it: nothing is
// missing, nothing comes twice, all is in order.
func TestLogsOutliveAKill(t *testing.T) {
	t.Parallel()
	d := e2e.StartDaemon(t, e2e.NeedBinary(t))
	const lines = 500
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "hello"), e2e.HelloProgram(t), 0o755); err != nil {
		t.Fatal(err)
	}
	e2e.WriteManifest(t, dir, e2e.Doc{"name": "teller", "memory": "64M", "disk_quota": "128M", "stack": "host", "buildpacks": []string{"binary_buildpack"},
		"command": fmt.Sprintf("i=0; while [ $i -lt %d ]; do echo line $i; i=$((i+1)); done; exec ./hello", lines)})
	if out, err := d.Run("push", dir); err != nil {
		t.Fatalf("push: %v\n%s", err, out)
	}
	d.Logged("teller", fmt.Sprint("line ", lines-1))
	d.Answers("teller", "hello from teller")
	var want []string
	for n := range lines {
		want = append(want, fmt.Sprint("line ", n))
	}
	before := recent(d, "teller")
	for range 3 {
		d.Kill()
		d.Start()
		after := recent(d, "teller")
		reported := slices.DeleteFunc(slices.Clone(after), func(l string) bool { return !strings.HasPrefix(l, "line ") })
		if !slices.Equal(reported, want) {
			t.Fatalf("got %d of %d lines of the app: %q", len(reported), lines, reported)
		}
		if len(after) < len(before) || !slices.Equal(after[:len(before)], before) {
			t.Fatalf("got\n%s\nwant first\n%s", strings.Join(after, "\n"), strings.Join(before, "\n"))
		}
		before = after
	}
}

// recent is all log lines of an app, the oldest first.
func recent(d *e2e.Daemon, app string) (all []string) {
	d.T.Helper()
	var read struct {
		Envelopes struct {
			Batch []struct {
				Timestamp string
				Log       struct{ Payload string }
			}
		}
	}
	from := int64(0)
	for {
		read.Envelopes.Batch = nil
		d.API("GET", fmt.Sprintf("/api/v1/read/%s?envelope_types=LOG&limit=1000&start_time=%d&end_time=%d", d.App(app), from, time.Now().UnixNano()), nil, &read)
		batch := read.Envelopes.Batch
		for _, e := range batch {
			text, err := base64.StdEncoding.DecodeString(e.Log.Payload)
			if err != nil {
				d.T.Fatal(err)
			}
			all = append(all, string(text))
			if _, err := fmt.Sscan(e.Timestamp, &from); err != nil {
				d.T.Fatal(err)
			}
			from++
		}
		if len(batch) < 1000 {
			return all
		}
	}
}
