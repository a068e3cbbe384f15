package bosh

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cupola/test/e2e"
)

const (
	gateBPM = `processes:
- {name: gate, executable: /var/vcap/jobs/gate/bin/gate, hooks: {pre_start: /bin/true}}
- {name: side, executable: /var/vcap/jobs/gate/bin/side}
`
	// gate takes two seconds to drain, and ends then.
	gateProcess = `#!/bin/bash
log=/var/vcap/sys/log/gate/gate.log
trap 'echo "gate drains" >> $log; draining=$SECONDS' USR1
trap 'echo "gate stops" >> $log; exit 0' TERM
echo "gate starts <%= p('note') %>" >> $log
until [ -n "$draining" ] && (( SECONDS > draining + 2 )); do sleep 0.2; done
echo "gate drained" >> $log
`
	sideProcess = `#!/bin/bash
echo "side starts" >> /var/vcap/sys/log/gate/side.log
trap 'echo "side hears HUP" >> /var/vcap/sys/log/gate/side.log' HUP
trap 'echo "side stops" >> /var/vcap/sys/log/gate/side.log; exit 0' TERM
while :; do
  sleep 0.2
  rm /var/vcap/sys/log/gate/grow 2> /dev/null && big=$(head -c 60000000 /dev/zero | tr '\0' a)
done
`
	gateMonit = `check process gate
  with pidfile /var/vcap/sys/run/bpm/gate/gate.pid
  start program "/var/vcap/jobs/bpm/bin/bpm start gate"
check process side
  with pidfile /var/vcap/sys/run/bpm/gate/side.pid
  start program "/var/vcap/jobs/bpm/bin/bpm start gate -p side"
  if totalmem > <%= p('most') %> Mb then restart
  if 1 restarts within 1 cycles then exec "/bin/restart-monit-job gate"
`
	// gateDrain is like those of routing-release.
	gateDrain = `#!/bin/bash
set -e
pidfile=/var/vcap/sys/run/bpm/gate/gate.pid
log=/var/vcap/sys/log/gate/gate.log
[ -d /var/vcap/sys/run/bpm/other ] && echo "another job's pidfiles" >> $log
if [[ ! -f ${pidfile} ]]; then
  echo "no pidfile, $1" >> $log
  echo 0
  exit 0
fi
pid=$(cat ${pidfile})
if [ "$1" = job_check_status ]; then
  kill -0 "${pid}" && echo "drain checks $(cat /proc/${pid}/comm)" >> $log
  echo -1
  exit 0
fi
kill -HUP "$(cat /var/vcap/sys/run/bpm/gate/side.pid)"
kill -USR1 "${pid}"
echo -1
`
	// gatePostStart sees the processes, too, and kills one.
	gatePostStart = `#!/bin/bash
exec > >(sleep 1; tee -a /var/vcap/sys/log/gate/post-start.log) 2>&1
pid=$(cat /var/vcap/sys/run/bpm/gate/side.pid)
echo "post-start sees $(tr -d '\0' < /proc/$pid/cmdline)"
kill -9 $pid
while kill -0 $pid 2> /dev/null; do sleep 0.1; done
echo "side is gone"
`
)

func (d *releaseDaemon) uploadGate() {
	d.T.Helper()
	dir := d.T.TempDir()
	for name, text := range map[string]string{
		"config/final.yml":               "name: gate\n",
		"jobs/gate/monit":                gateMonit,
		"jobs/gate/spec":                 "name: gate\ntemplates: {bpm.yml: config/bpm.yml, gate.erb: bin/gate, side: bin/side, drain: bin/drain, post-start: bin/post-start}\nproperties: {note: {default: first}, most: {default: 50}}\n",
		"jobs/gate/templates/bpm.yml":    gateBPM,
		"jobs/gate/templates/gate.erb":   gateProcess,
		"jobs/gate/templates/side":       sideProcess,
		"jobs/gate/templates/drain":      gateDrain,
		"jobs/gate/templates/post-start": gatePostStart,
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			d.T.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			d.T.Fatal(err)
		}
	}
	d.must(d.Run("deployment", "upload-release", dir, "--version", "1"))
}

func (d *releaseDaemon) wantFile(path, want string) {
	d.T.Helper()
	e2e.Eventually(d.T, time.Minute, func() string {
		if got := d.in("cat " + path); got != want {
			return "got " + path + "\n" + got + "\nwant\n" + want
		}
		return ""
	})
}

// TestDrainOfBPM checks that scripts of a job for BPM find its processes by pidfiles, and send them signals. A process that ends
// while its job drains is not started again, and is asked for until then.
func TestDrainOfBPM(t *testing.T) {
	t.Parallel()
	d := startReleases(t)
	d.uploadGate()
	ops := func(note string) []e2e.Doc {
		return []e2e.Doc{
			replace("/releases", []e2e.Doc{{"name": "gate", "version": "1"}}),
			replace("/instance_groups/0/jobs", []e2e.Doc{{"name": "gate", "release": "gate", "properties": e2e.Doc{"note": note}}}),
		}
	}
	out := d.must(d.deployWith(ops("one")...))
	if want := `Ignoring monit file: web/gate, line 8: if 1 restarts within 1 cycles then exec "/bin/restart-monit-job gate"`; !strings.Contains(out, want) {
		t.Errorf("got %s; want %s", out, want)
	}
	d.wantFile("/var/vcap/sys/log/gate/post-start.log", "post-start sees /var/vcap/jobs/gate/bin/side\nside is gone")
	const side = "side starts\nside starts" // since post-start killed it
	d.wantFile("/var/vcap/sys/log/gate/side.log", side)
	d.in("touch /var/vcap/sys/log/gate/grow")
	d.wantFile("/var/vcap/sys/log/gate/side.log", side+"\nside stops\nside starts") // by the monit file
	d.must(d.deployWith(ops("two")...))
	got := d.in("cat /var/vcap/sys/log/gate/gate.log")
	if !strings.HasPrefix(got, "gate starts one\ngate drains\ndrain checks gate\n") || !strings.Contains(got, "drain checks gate\ngate drained\nno pidfile, job_check_status\ngate starts two") {
		t.Errorf("got\n%s\nwant the process drained, and ended once", got)
	}
	if got, want := d.in("cat /var/vcap/sys/log/gate/side.log"), side+"\nside stops\nside starts\nside hears HUP\nside stops\nside starts"; !strings.HasPrefix(got, want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	d.killedWhileDraining(ops("three"))
	d.must(d.Run("deployment", "delete", "demo"))
}

// killedWhileDraining kills the daemon while an instance drains: the next one goes on.
func (d *releaseDaemon) killedWhileDraining(ops []e2e.Doc) {
	d.T.Helper()
	text, err := json.Marshal(ops)
	file := filepath.Join(d.T.TempDir(), "ops.yml")
	if err := errors.Join(err, os.WriteFile(file, text, 0o600)); err != nil {
		d.T.Fatal(err)
	}
	cmd := exec.CommandContext(d.T.Context(), d.Binary, "deployment", "deploy", "-f", "testdata/demo.yml", "-o", file)
	cmd.Env = append(os.Environ(), "CUPOLA_API=http://"+d.Addr, "CUPOLA_PASSWORD="+e2e.AdminPassword)
	if err := cmd.Start(); err != nil {
		d.T.Fatal(err)
	}
	e2e.Eventually(d.T, time.Minute, func() string {
		if log := d.in("cat /var/vcap/sys/log/gate/gate.log"); strings.Count(log, "gate drains") < 2 {
			return "got\n" + log + "\nwant it to drain"
		}
		return ""
	})
	d.Kill()
	_ = cmd.Wait() // its daemon is gone
	d.Start()
	d.must(d.Run("deployment", "task"))
	if log := d.in("cat /var/vcap/sys/log/gate/gate.log"); strings.Count(log, "gate drained\n") != 2 || !strings.HasSuffix(log, "gate starts three") {
		d.T.Errorf("got\n%s\nwant it to drain to its end", log)
	}
}
