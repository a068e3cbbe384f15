package monit

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cupola/runtime/contract"
)

const full = `# a comment
check process janitor
  with pidfile "/var/vcap/sys/run/db/janitor.pid"
  start program = "/var/vcap/jobs/db/bin/janitor_ctl start"
    as uid vcap and gid vcap with timeout 90 seconds
  stop program "/bin/sh -c 'kill \"$0\"; exit 0' 5" timeout 2 minutes
  depends on db, cache
  if totalmem > 500 Mb for 5 cycles then restart
  if failed host 127.0.0.1 port 8080 protocol http
    and request "/health" with timeout 5 seconds for 3 cycles
  then restart
  if 3 restarts within 10 cycles then exec "/bin/start it" else if passed then alert
  group vcap
check process cache with pidfile /run/cache.pid
  mode manual
CHECK PROCESS db WITH PIDFILE /run/../run/db.pid
  START = "/db" STOP = "/db -x"
`

func TestParse(t *testing.T) {
	got, err := Parse([]byte(full))
	if err != nil {
		t.Fatal(err)
	}
	want := []contract.MonitCheck{
		{Name: "db", Pidfile: "/run/db.pid", Start: contract.MonitProgram{Args: []string{"/db"}, Timeout: 30 * time.Second}, Stop: contract.MonitProgram{Args: []string{"/db", "-x"}, Timeout: 30 * time.Second}},
		{Name: "cache", Pidfile: "/run/cache.pid"},
		{Name: "janitor", Pidfile: "/var/vcap/sys/run/db/janitor.pid", Depends: []string{"db", "cache"},
			Start: contract.MonitProgram{Args: []string{"/var/vcap/jobs/db/bin/janitor_ctl", "start"}, User: "vcap", Group: "vcap", Timeout: 90 * time.Second},
			Stop:  contract.MonitProgram{Args: []string{"/bin/sh", "-c", `kill "$0"; exit 0`, "5"}, Timeout: 2 * time.Minute}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got, err := Parse([]byte("# no processes\n")); err != nil || len(got) > 0 {
		t.Errorf("got %v, %v; want none", got, err)
	}
}

func TestParseRefuses(t *testing.T) {
	const one = "check process a with pidfile /a\n"
	for text, want := range map[string]string{
		"start program \"/a\"":             `line 1: cannot read "start" here: a file begins with 'check process'`,
		one + "\nreload now":               `line 3: cannot read "reload" here: known are check,`,
		one + "set daemon 5":               `line 2: cannot read "set" here`,
		one + "check file f with path /f":  `line 2: 'check file' has no equivalent: only processes are run; give the job's processes in quarks.bpm.processes`,
		"check process a matching \"x\"":   `line 1: process "a": got "matching"; want 'with pidfile PATH'`,
		"check process a pidfile a.pid":    `line 1: process "a": pidfile "a.pid" is not an absolute path`,
		"check process":                    `line 1: "" is not the name of a process`,
		one + one:                          `line 2: process "a" is there twice, first in line 1`,
		one + "start program \"run\"":      `line 2: the start program "run" does not begin with an absolute path`,
		one + "stop":                       `line 2: "stop" has no value`,
		one + "start \"/a\" timeout never": `line 2: timeout "never" is not a number of seconds`,
		one + "start \"/a":                 `line 2: the text that begins with " has no end`,
		one + "depends on b":               `line 1: process "a" depends on "b", which is not in this file`,
		one + "depends on a":               `line 1: process "a" depends on itself`,
		strings.Repeat(" ", maxBytes+1):    `at most 1048576 are read`,
	} {
		if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: got %v; want %s", text, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(full))
	f.Add([]byte("check process a with pidfile /a depends on a"))
	f.Fuzz(func(t *testing.T, text []byte) {
		checks, err := Parse(text)
		if err != nil {
			return
		}
		seen := map[string]bool{}
		for _, c := range checks {
			for _, on := range c.Depends {
				if !seen[on] {
					t.Errorf("%s comes before %s, on which it depends", c.Name, on)
				}
			}
			seen[c.Name] = true
		}
	})
}
