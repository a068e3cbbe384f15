package main

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cupola/server/admin/steps"
)

func TestLayerProgress(t *testing.T) {
	var out bytes.Buffer
	now := time.Unix(0, 0)
	p := &stackProgress{out: &out, started: now, last: map[string]steps.Step{}, began: map[string]time.Time{}, now: func() time.Time { return now }}
	for _, s := range []struct {
		at          int // ms
		detail      string
		done, total int64
	}{
		{0, "1 of 2 fetch", 0, 40e6}, {10, "2 of 2 fetch", 1e6, 5e6}, {200, "2 of 2 fetch", 5e6, 5e6}, {6000, "1 of 2 fetch", 20e6, 40e6},
		{9000, "1 of 2 fetch", 40e6, 40e6}, {12000, "1 of 2 unpack", 10e6, 40e6}, {13000, "1 of 2 here", 40e6, 40e6}, {13500, "2 of 2 here", 5e6, 5e6},
	} {
		now = time.Unix(0, 0).Add(time.Duration(s.at) * time.Millisecond)
		p.step(steps.Step{Step: "layer", Detail: s.detail, Done: s.done, Total: s.total})
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
