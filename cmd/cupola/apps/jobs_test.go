package apps

import (
	"strings"
	"testing"

	"cupola/store/cf"
)

// TestJobOrCall holds which flags of 'cupola jobs create' go together.
func TestJobOrCall(t *testing.T) {
	for name, c := range map[string]struct {
		job  createJobCmd
		kind cf.AppJobKind
		err  string
	}{
		"a command":               {createJobCmd{Command: "true", Memory: "64M"}, cf.KindJob, ""},
		"a URL":                   {createJobCmd{URL: "https://example.com", Authorization: "Bearer abc"}, cf.KindCall, ""},
		"neither":                 {createJobCmd{}, "", "give a command, or a URL by --url"},
		"both":                    {createJobCmd{Command: "true", URL: "https://example.com"}, "", "give a command, or a URL by --url"},
		"authorized command":      {createJobCmd{Command: "true", Authorization: "Bearer abc"}, "", "a command makes none: leave it out, or give --url"},
		"a URL with memory":       {createJobCmd{URL: "https://example.com", Memory: "64M"}, "", "a call has none"},
		"a size without its unit": {createJobCmd{Command: "true", Disk: "lots"}, "", `invalid size "lots"`},
	} {
		if _, kind, err := c.job.request(); kind != c.kind || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: got %q, %v; want %q, %q", name, kind, err, c.kind, c.err)
		}
	}
}
