package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cupola/cmd/cupola/command"
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
	if err := command.WriteJSON(&out, someResults[2:]); err != nil {
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
		if got := colored(&command.Env{Terminal: c.terminal}); got != c.want {
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
