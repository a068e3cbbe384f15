package main

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// What `cf logs --recent` showed before a kill -9 it shows after it: nothing is
// missing, nothing comes twice, all is in order.
func TestLogsOutliveAKill(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, needBinary(t))
	const lines = 500
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "hello"), helloProgram(t), 0o755); err != nil {
		t.Fatal(err)
	}
	writeManifest(t, dir, doc{"name": "teller", "memory": "64M", "disk_quota": "128M", "stack": "host", "buildpacks": []string{"binary_buildpack"},
		"command": fmt.Sprintf("i=0; while [ $i -lt %d ]; do echo line $i; i=$((i+1)); done; exec ./hello", lines)})
	if out, err := d.run("push", dir); err != nil {
		t.Fatalf("push: %v\n%s", err, out)
	}
	d.logged("teller", fmt.Sprint("line ", lines-1))
	d.answers("teller", "hello from teller")
	var want []string
	for n := range lines {
		want = append(want, fmt.Sprint("line ", n))
	}
	before := d.recent("teller")
	for range 3 {
		d.kill()
		d.start()
		after := d.recent("teller")
		told := slices.DeleteFunc(slices.Clone(after), func(l string) bool { return !strings.HasPrefix(l, "line ") })
		if !slices.Equal(told, want) {
			t.Fatalf("got %d of %d lines of the app: %q", len(told), lines, told)
		}
		if len(after) < len(before) || !slices.Equal(after[:len(before)], before) {
			t.Fatalf("got\n%s\nwant first\n%s", strings.Join(after, "\n"), strings.Join(before, "\n"))
		}
		before = after
	}
}

// recent is all log lines of an app, the oldest first.
func (d *daemon) recent(app string) (all []string) {
	d.t.Helper()
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
		d.api("GET", fmt.Sprintf("/api/v1/read/%s?envelope_types=LOG&limit=1000&start_time=%d&end_time=%d", d.app(app), from, time.Now().UnixNano()), nil, &read)
		batch := read.Envelopes.Batch
		for _, e := range batch {
			text, err := base64.StdEncoding.DecodeString(e.Log.Payload)
			if err != nil {
				d.t.Fatal(err)
			}
			all = append(all, string(text))
			if _, err := fmt.Sscan(e.Timestamp, &from); err != nil {
				d.t.Fatal(err)
			}
			from++
		}
		if len(batch) < 1000 {
			return all
		}
	}
}
