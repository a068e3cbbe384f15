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
	file, err := Parse([]byte(full))
	if err != nil {
		t.Fatal(err)
	}
	got := file.Checks
	want := []contract.MonitCheck{
		{Name: "db", Pidfile: "/run/db.pid", Start: contract.MonitProgram{Args: []string{"/db"}, Timeout: 30 * time.Second}, Stop: contract.MonitProgram{Args: []string{"/db", "-x"}, Timeout: 30 * time.Second}},
		{Name: "cache", Pidfile: "/run/cache.pid"},
		{Name: "janitor", Pidfile: "/var/vcap/sys/run/db/janitor.pid", Depends: []string{"db", "cache"},
			Start: contract.MonitProgram{Args: []string{"/var/vcap/jobs/db/bin/janitor_ctl", "start"}, User: "vcap", Group: "vcap", Timeout: 90 * time.Second},
			Stop:  contract.MonitProgram{Args: []string{"/bin/sh", "-c", `kill "$0"; exit 0`, "5"}, Timeout: 2 * time.Minute},
			Conditions: []contract.MonitCondition{
				{Text: "if totalmem > 500 Mb for 5 cycles then restart", Memory: 500 << 20, Looks: 5},
				{Text: `if failed host 127.0.0.1 port 8080 protocol http and request "/health" with timeout 5 seconds for 3 cycles then restart`, Host: "127.0.0.1", Port: 8080, Path: "/health", Wait: 5 * time.Second, Looks: 3},
			}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{`line 12: if 3 restarts within 10 cycles then exec "/bin/start it" else if passed then alert`}, file.Ignored); diff != "" {
		t.Error(diff)
	}
	if got, err := Parse([]byte("# no processes\n")); err != nil || len(got.Checks) > 0 {
		t.Errorf("got %v, %v; want none", got, err)
	}
}

// TestConditions reads the conditions that public releases have.
func TestConditions(t *testing.T) {
	port := contract.MonitCondition{Port: 8081, Wait: 5 * time.Second, Looks: 1}
	host, web := port, port
	host.Host = "10.0.0.1"
	web.Host, web.Path, web.Wait, web.Looks = "127.0.0.1", "/", 10*time.Second, 6
	exec := contract.MonitCondition{Memory: 3500 << 20, Looks: 15, Exec: contract.MonitProgram{Args: []string{"/var/vcap/jobs/api/bin/restart_drain", "now"}, Timeout: 30 * time.Second}}
	for text, want := range map[string]contract.MonitCondition{
		"totalmem > 3000 Mb then restart":                                                                     {Memory: 3000 << 20, Looks: 1},
		"memory is greater than 1.5 GB for 2 cycles then restart":                                             {Memory: 3 << 29, Looks: 2},
		"totalmem > 3500 Mb for 15 cycles then exec \"/var/vcap/jobs/api/bin/restart_drain now\"":             exec,
		"failed port 8081 then restart":                                                                       port,
		"failed host 10.0.0.1 port 8081 type tcp then restart":                                                host,
		"failed\nhost 127.0.0.1\nport 8081 protocol HTTP\nwith timeout 10 seconds for 6 cycles\nthen restart": web,
	} {
		f, err := Parse([]byte("check process a with pidfile /a if " + text))
		if err != nil || len(f.Checks[0].Conditions) != 1 || len(f.Ignored) > 0 {
			t.Errorf("%s: got %+v, %v", text, f, err)
			continue
		}
		got := f.Checks[0].Conditions[0]
		if got.Text = ""; cmp.Diff(want, got) != "" {
			t.Errorf("%s: %s", text, cmp.Diff(want, got))
		}
	}
	for _, text := range []string{
		"totalmem > 500 Mb for 2 cycles then alert", "cpu > 60% for 2 cycles then restart", "totalmem > 80% then restart", "failed port 80 protocol smtp then restart",
		"failed unixsocket /a then restart", "2 restarts within 5 cycles then timeout", "totalmem > 1 Mb then exec \"run\"", "failed port 99999 then restart", "totalmem > 1 Mb",
		"changed pid then alert", "totalmem > 1 Mb for 3 times within 5 cycles then restart",
	} {
		f, err := Parse([]byte("check process a with pidfile /a\nif " + text))
		if err != nil || len(f.Checks[0].Conditions) > 0 || len(f.Ignored) != 1 || !strings.HasPrefix(f.Ignored[0], "line 2: if ") {
			t.Errorf("%s: got %+v, %v", text, f, err)
		}
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
		file, err := Parse(text)
		if err != nil {
			return
		}
		seen := map[string]bool{}
		for _, c := range file.Checks {
			for _, on := range c.Depends {
				if !seen[on] {
					t.Errorf("%s comes before %s, on which it depends", c.Name, on)
				}
			}
			seen[c.Name] = true
		}
	})
}
