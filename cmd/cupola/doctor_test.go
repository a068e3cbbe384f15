package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cupola/server/admin/steps"
	"cupola/server/doctor"
)

var someResults = []doctor.Result{
	{Name: "kernel", Level: doctor.OK, Detail: "Linux 6.1.0"},
	{Name: "names", Level: doctor.Warn, Detail: "*.localhost resolves in curl and browsers, and not in the cf CLI", Fix: "echo '127.0.0.1 api.localhost' | sudo tee -a /etc/hosts"},
	{Name: "overlayfs", Level: doctor.Fail, Detail: "mount an overlay: no such device", Fix: "sudo modprobe overlay"},
}

const plainResults = `OK    kernel     Linux 6.1.0
warn  names      *.localhost resolves in curl and browsers, and not in the cf CLI
                 echo '127.0.0.1 api.localhost' | sudo tee -a /etc/hosts
fail  overlayfs  mount an overlay: no such device
                 sudo modprobe overlay

1 OK, 1 warning, 1 failure
`

const narrowResults = `OK    kernel     Linux 6.1.0
warn  names      *.localhost resolves in curl
                 and browsers, and not in the
                 cf CLI
                 echo '127.0.0.1 api.localhost' | sudo tee -a /etc/hosts
fail  overlayfs  mount an overlay: no such
                 device
                 sudo modprobe overlay

1 OK, 1 warning, 1 failure
`

func TestDoctorOutput(t *testing.T) {
	for _, c := range []struct {
		name string
		look look
		want string
	}{
		{"plain", look{}, plainResults},
		{"narrow", look{width: 46}, narrowResults},
		{"too narrow to wrap", look{width: 30}, plainResults},
	} {
		var out bytes.Buffer
		writeResults(&out, someResults, c.look)
		if diff := cmp.Diff(c.want, out.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
	var out bytes.Buffer
	writeResults(&out, someResults, look{color: true})
	for _, want := range []string{"\x1b[32mOK  \x1b[0m", "\x1b[33mwarn\x1b[0m", "\x1b[31mfail\x1b[0m", "\x1b[1msudo modprobe overlay\x1b[0m"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("got %q; want %q in it", out.String(), want)
		}
	}
}

func TestDoctorJSON(t *testing.T) {
	var out bytes.Buffer
	if err := writeJSON(&out, someResults[2:]); err != nil {
		t.Fatal(err)
	}
	const want = `[
  {
    "name": "overlayfs",
    "level": "fail",
    "detail": "mount an overlay: no such device",
    "fix": "sudo modprobe overlay"
  }
]
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("JSON (-want +got):\n%s", diff)
	}
}

func TestColored(t *testing.T) {
	for _, c := range []struct {
		terminal      bool
		noColor, term string
		want          bool
	}{{true, "", "xterm", true}, {false, "", "xterm", false}, {true, "1", "xterm", false}, {true, "", "dumb", false}} {
		t.Setenv("NO_COLOR", c.noColor)
		t.Setenv("TERM", c.term)
		if got := colored(&env{terminal: c.terminal}); got != c.want {
			t.Errorf("%+v: got %v", c, got)
		}
	}
}

func TestLeaksOutput(t *testing.T) {
	var out bytes.Buffer
	writeLeaks(&out, nil)
	writeLeaks(&out, []doctor.Leak{{Kind: "link", Name: "cup3", Fix: "sudo ip link delete cup3"}})
	const want = `nothing leaked
link cup3
    sudo ip link delete cup3

1 leaked; the command below each removes it
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("leaks (-want +got):\n%s", diff)
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
	p := &stackProgress{out: &out, terminal: terminal, width: width, started: now, last: map[string]steps.Step{}, began: map[string]time.Time{}, now: func() time.Time { return now }}
	for _, s := range buildSteps {
		now = time.Unix(0, 0).Add(time.Duration(s.at) * time.Millisecond)
		p.step(s.step)
	}
	p.clear()
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
