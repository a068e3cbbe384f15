package command

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cupola/server/admin/steps"
)

func TestLayerProgress(t *testing.T) {
	var out bytes.Buffer
	now := time.Unix(0, 0)
	p := &Progress{Out: &out, Started: now, last: map[string]steps.Step{}, began: map[string]time.Time{}, now: func() time.Time { return now }}
	for _, s := range []struct {
		at          int // ms
		detail      string
		done, total int64
	}{
		{0, "1 of 2 fetch", 0, 40e6}, {10, "2 of 2 fetch", 1e6, 5e6}, {200, "2 of 2 fetch", 5e6, 5e6}, {6000, "1 of 2 fetch", 20e6, 40e6},
		{9000, "1 of 2 fetch", 40e6, 40e6}, {12000, "1 of 2 unpack", 10e6, 40e6}, {13000, "1 of 2 here", 40e6, 40e6}, {13500, "2 of 2 here", 5e6, 5e6},
	} {
		now = time.Unix(0, 0).Add(time.Duration(s.at) * time.Millisecond)
		p.Step(steps.Step{Step: "layer", Detail: s.detail, Done: s.done, Total: s.total})
	}
	const want = `  layer      1 of 2 fetch    [                    ]   0 %  0 B
  layer      1 of 2 fetch    [==========          ]  50 %  20 MB, 3.3 MB/s, 6 s left
  layer      1 of 2 unpack   [=====               ]  25 %  10 MB
  layer      1 of 2  40 MB
  layer      2 of 2  5.0 MB
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// buildSteps are those of a build, and what the clock says at each, in
// milliseconds.
var buildSteps = []struct {
	at   int
	step steps.Step
}{
	{0, steps.Step{Step: "index", Detail: "bookworm"}},
	{500, steps.Step{Step: "resolve"}},
	{1000, steps.Step{Step: "download", Done: 1e6, Total: 10e6, Detail: "bash"}},
	{1010, steps.Step{Step: "unpack", Done: 1, Total: 4, Detail: "base-files"}},
	{6200, steps.Step{Step: "download", Done: 5e6, Total: 10e6, Detail: "perl"}},
	{6300, steps.Step{Step: "download", Done: 10e6, Total: 10e6, Detail: "zlib1g"}},
	{11900, steps.Step{Step: "unpack", Done: 4, Total: 4, Detail: "zlib1g"}},
	{12000, steps.Step{Step: "warning", Detail: "no bookworm-updates"}},
	{12020, steps.Step{Step: "finish"}},
	{12030, steps.Step{Step: "save"}},
}

func drawBuild(terminal bool, width int) string {
	var out bytes.Buffer
	now := time.Unix(0, 0)
	p := &Progress{Out: &out, terminal: terminal, width: width, Started: now, last: map[string]steps.Step{}, began: map[string]time.Time{}, now: func() time.Time { return now }}
	for _, s := range buildSteps {
		now = time.Unix(0, 0).Add(time.Duration(s.at) * time.Millisecond)
		p.Step(s.step)
	}
	p.Clear()
	return out.String()
}

func TestStackProgress(t *testing.T) {
	const want = `  index      bookworm
  resolve    which packages belong together
  packages   [=                   ]   5 %  1.0 MB
  packages   [=======             ]  38 %  5.0 MB, 962 kB/s, 9 s left  package 1 of 4: base-files
  packages   [====================] 100 %  10 MB  package 4 of 4: zlib1g
  warning    no bookworm-updates
  finish     accounts, certificates, alternatives, dpkg's database
  save       to the disk
`
	if diff := cmp.Diff(want, drawBuild(false, 0)); diff != "" {
		t.Errorf("plain lines (-want +got):\n%s", diff)
	}
	drawn := drawBuild(true, 60)
	for line := range strings.SplitSeq(drawn, "\r\x1b[K") {
		if text, _, _ := strings.Cut(line, "\n"); len(text) >= 60 {
			t.Errorf("line %q does not fit", text)
		}
	}
	if strings.Count(drawn, "\n") != 1 || !strings.HasSuffix(drawn, "\r\x1b[K") {
		t.Errorf("got %q; want one line but for the warning, and nothing at the end", drawn)
	}
}
