package bosh

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cupola/test/e2e"
)

const (
	clockMonit = `# two processes
check process clock
  with pidfile /var/vcap/sys/run/clock/clock.pid
  start program "/var/vcap/jobs/clock/bin/ctl start clock" as uid vcap and gid vcap with timeout <%= p('timeout') %> seconds
  stop program "/var/vcap/jobs/clock/bin/ctl stop clock"
  if totalmem > 100 Mb for 3 cycles then restart
  group vcap
check process watcher
  with pidfile /var/vcap/sys/run/clock/watcher.pid
  start program "/var/vcap/jobs/clock/bin/ctl start watcher"
  stop program "/var/vcap/jobs/clock/bin/ctl stop watcher"
  depends on clock
  group vcap
`
	// clockPreStart changes what is in the job's own directory, as postgres-release does.
	clockPreStart = `#!/bin/bash
set -e
chown vcap:vcap /var/vcap/jobs/clock/config/*
chmod -R 600 /var/vcap/jobs/clock/config/*
sed -i s/rendered/$(cat /var/vcap/jobs/hints/config/hint)/ /var/vcap/jobs/clock/config/note # another job's file
grep -q compiled /var/vcap/packages/marks/mark # and package
`
	// clockDrain sees the processes, as on a virtual machine.
	clockDrain = `#!/bin/bash
set -e
echo "$(whoami) drains $(cat /proc/$(cat /var/vcap/sys/run/clock/clock.pid)/comm)" >> /var/vcap/sys/log/clock/log
echo 0
`
	clockCtl = `#!/bin/bash
set -e
pidfile=/var/vcap/sys/run/clock/$2.pid log=/var/vcap/sys/log/clock/log
case $1 in
start)
  grep -q compiled /var/vcap/packages/marks/mark # another job's package
  echo "$(whoami) starts $2: $(cat /var/vcap/jobs/clock/config/note)" >> $log
  nohup sleep 1000000 > /dev/null 2>&1 &
  echo $! > $pidfile ;;
stop)
  echo "$(whoami) stops $2" >> $log
  kill $(cat $pidfile)
  rm $pidfile ;;
esac
`
)

// uploadClock uploads a release whose job is one for monit.
func (d *releaseDaemon) uploadClock(version, monit string) {
	d.T.Helper()
	dir := d.T.TempDir()
	for name, text := range map[string]string{
		"config/final.yml":               "name: clock\n",
		"jobs/clock/monit":               monit,
		"jobs/clock/spec":                "name: clock\ntemplates: {pre-start: bin/pre-start, ctl: bin/ctl, drain: bin/drain, note.erb: config/note}\nproperties: {note: {default: first}, timeout: {default: 30}}\n",
		"jobs/clock/templates/pre-start": clockPreStart,
		"jobs/clock/templates/drain":     clockDrain,
		"jobs/clock/templates/ctl":       clockCtl,
		"jobs/clock/templates/note.erb":  "rendered <%= p('note') %>\n",
		"jobs/hints/monit":               "",
		"jobs/hints/spec":                "name: hints\ntemplates: {hint: config/hint}\npackages: [marks]\n",
		"jobs/hints/templates/hint":      "prepared\n",
		"packages/marks/spec":            "name: marks\nfiles: []\n",
		"packages/marks/packaging":       "echo compiled > $BOSH_INSTALL_TARGET/mark\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			d.T.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			d.T.Fatal(err)
		}
	}
	d.must(d.Run("deployment", "upload-release", dir, "--version", version))
}

// clockOps make a deployment of the release of what testdata/demo.yml deploys.
func clockOps(version, note string) []e2e.Doc {
	return []e2e.Doc{
		replace("/releases", []e2e.Doc{{"name": "clock", "version": version}}),
		replace("/instance_groups/0/jobs", []e2e.Doc{{"name": "clock", "release": "clock", "properties": e2e.Doc{"note": note}}, {"name": "hints", "release": "clock"}}),
	}
}

// in returns the output of a command in the instance.
func (d *releaseDaemon) in(command string) string {
	d.T.Helper()
	var results []struct{ Stdout string }
	out := d.must(d.Run("deployment", "ssh", "demo", "web/0", "-c", command, "--json"))
	if err := json.Unmarshal([]byte(out), &results); err != nil || len(results) != 1 {
		d.T.Fatalf("got %s, %v", out, err)
	}
	return strings.TrimSpace(results[0].Stdout)
}

// wantLog waits until the job's log ends with some lines.
func (d *releaseDaemon) wantLog(lines ...string) {
	d.T.Helper()
	want := strings.Join(lines, "\n")
	e2e.Eventually(d.T, time.Minute, func() string {
		if got := d.in("cat /var/vcap/sys/log/clock/log"); !strings.HasSuffix(got, want) {
			return "got\n" + got + "\nwant at its end\n" + want
		}
		return ""
	})
}

// TestMonit takes a job with a monit file, and without a bpm.yml, through its life.
func TestMonit(t *testing.T) {
	t.Parallel()
	d := startReleases(t)
	d.uploadClock("1", clockMonit)
	d.must(d.deployWith(clockOps("1", "one")...))
	d.wantLog("vcap starts clock: prepared one", "root starts watcher: prepared one")
	pids := d.in("cat /var/vcap/sys/run/clock/*.pid")

	d.Kill() // the processes belong to nobody's life
	d.Start()
	if now := d.in("cat /var/vcap/sys/run/clock/*.pid"); now != pids {
		t.Errorf("got %s after a restart of the daemon; want %s", now, pids)
	}
	d.in("kill -9 $(cat /var/vcap/sys/run/clock/clock.pid)") // its user's own
	d.wantLog("root stops watcher", "vcap starts clock: prepared one", "root starts watcher: prepared one")
	if now := d.in("cat /var/vcap/sys/run/clock/*.pid"); now == pids {
		t.Errorf("got %s; want other processes", now)
	}

	d.must(d.deployWith(clockOps("1", "two")...))
	d.wantLog("root drains sleep", "root stops watcher", "root stops clock", "vcap starts clock: prepared two", "root starts watcher: prepared two")

	d.uploadClock("2", clockMonit+"check system $HOST\n")
	out, err := d.deployWith(clockOps("2", "two")...)
	if err == nil || !strings.Contains(out, `instance group "web", job "clock": monit, line 14: 'check system' has no equivalent`) {
		t.Errorf("got %v\n%s\nwant the line of the monit file", err, out)
	}
	// A start program that starts nothing fails the canary, and is tried again until it succeeds.
	d.uploadClock("3", strings.Replace(clockMonit, "ctl start watcher", "ctl status watcher", 1))
	out, err = d.deployWith(append(clockOps("3", "three"), replace("/instance_groups/0/update/canary_watch_time", "1000-20000"))...)
	if err == nil || !strings.Contains(out, "is not running after update. Review logs for failed jobs: clock") {
		t.Errorf("got %v\n%s\nwant the canary to fail", err, out)
	}
	d.must(d.deployWith(clockOps("1", "two")...))
	d.wantLog("root stops clock", "vcap starts clock: prepared two", "root starts watcher: prepared two")
	d.must(d.Run("deployment", "delete", "demo"))
}
