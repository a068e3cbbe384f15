package data

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"cupola/test/e2e"
)

// TestDataServices pushes an app that keeps notes in a database of the built-in broker,
// and removes one thing after the other: the daemon, the database's container, the
// binding, the instance.
func TestDataServices(t *testing.T) {
	t.Parallel()
	d := e2e.StartDaemon(t, e2e.NeedBinary(t), "--data-services", "postgres,mysql,redis,nats,rabbitmq,smtp,files")
	refusedWithoutStack(d)
	began := time.Now()
	d.Prepare("postgres", "mysql")
	d.Prepare("redis", "nats", "rabbitmq") // the others stay
	t.Logf("prepared in %.1f s", time.Since(began).Seconds())
	d.PushNotes()
	began = time.Now()
	notes := d.DataInstance("postgres", "notes")
	made := time.Since(began)
	binding := d.DataBinding("hello-postgres", notes)
	t.Logf("made after %.1f s, bound after %.1f s", made.Seconds(), time.Since(began).Seconds())
	d.RestartApp("hello-postgres")
	notesOutlive(d)
	notesAreRestored(d, notes)
	isCut(d, binding)
	redisOutlives(d)
	filesAreShared(d)
	shop, outbox, bus, queues := d.DataInstance("mysql", "shop"), d.DataInstance("smtp", "outbox"), d.DataInstance("nats", "bus"), d.DataInstance("rabbitmq", "queues")
	pushClient(d, shop, outbox, bus, queues)
	mailsAreShown(d, outbox)
	natsOutlives(d, bus)
	rabbitmqOutlives(d, queues)
	mysqlOutlives(d, shop)
	mysqlForgets(d, shop, d.First("/v3/service_credential_bindings?service_instance_guids="+shop))
	isGone(d, notes)
}

func refusedWithoutStack(d *e2e.Daemon) {
	d.T.Helper()
	_, err := d.MakeDataInstance("postgres", "early")
	if err == nil || !strings.Contains(err.Error(), "cupola broker prepare --services postgres") {
		d.T.Errorf("got %v; want to be told what is missing", err)
	}
	if out, err := d.Run("broker", "status", "--data-dir", d.Dir); err != nil || !strings.Contains(out, "prepare --services mysql --data-dir "+d.Dir+"\n") {
		d.T.Errorf("broker status: got %s, %v; want the command that prepares mysql", out, err)
	}
	if out, _ := d.Run("doctor", "--data-dir", d.Dir); !strings.Contains(out, "prepare --services postgres,mysql,redis,nats,rabbitmq,smtp --data-dir "+d.Dir+"\n") {
		d.T.Errorf("doctor: got %s; want the command that prepares what is missing", out)
	}
}

// notesOutlive keeps notes all the while the database's container and the
// daemon are killed, and wants every one that the app said it has.
func notesOutlive(d *e2e.Daemon) {
	d.T.Helper()
	e2e.Eventually(d.T, time.Minute, func() string {
		if d.Keep("the first") {
			return ""
		}
		return "no note was kept"
	})
	ctx, cancel := context.WithCancel(d.T.Context())
	kept, ended := 0, make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			if d.Keep(fmt.Sprintf("note %d.", kept)) {
				kept++
			} else {
				<-time.After(20 * time.Millisecond)
			}
		}
	}()
	for range 2 {
		<-time.After(200 * time.Millisecond)
		killDatabase(d, "PG_VERSION")
		d.Kill()
		d.Start()
	}
	e2e.Eventually(d.T, time.Minute, func() string {
		if d.Keep("the last") {
			return ""
		}
		return "no note was kept after the kills"
	})
	cancel()
	<-ended
	text := ""
	e2e.Eventually(d.T, time.Minute, func() string {
		status, body, err := d.Get("hello-postgres.localhost", "/")
		if err != nil || status != 200 {
			return fmt.Sprintf("got %d %q, %v; want the notes", status, body, err)
		}
		text = body
		return ""
	})
	for n := range kept {
		if !strings.Contains(text, fmt.Sprintf(" note %d.\n", n)) {
			d.T.Errorf("note %d of %d was lost", n, kept)
		}
	}
	d.T.Logf("%d notes, none lost", kept)
}

// killDatabase kills the group of processes that a database's container runs: what the
// shell alone leaves behind would answer until the next daemon removes it. The script has
// mark.
func killDatabase(d *e2e.Daemon, mark string) {
	d.T.Helper()
	e2e.Eventually(d.T, time.Minute, func() string {
		for _, pid := range databasePIDs(d, mark) {
			if syscall.Kill(-pid, syscall.SIGKILL) == nil {
				return ""
			}
		}
		return "found no process of the database"
	})
}

// databasePIDs are those of the shells that run such databases of this daemon.
func databasePIDs(d *e2e.Daemon, mark string) (pids []int) {
	d.T.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		d.T.Fatal(err)
	}
	for _, e := range entries {
		line, err := os.ReadFile("/proc/" + e.Name() + "/cmdline")
		if err != nil || !strings.Contains(string(line), mark) {
			continue
		}
		cgroup, err := os.ReadFile("/proc/" + e.Name() + "/cgroup")
		if pid, perr := strconv.Atoi(e.Name()); err == nil && perr == nil && e2e.ContainsInstance(string(cgroup), d) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// isCut unbinds, and wants the running app to have lost its database.
func isCut(d *e2e.Daemon, binding string) {
	d.T.Helper()
	if err := d.Change("DELETE", "/v3/service_credential_bindings/"+binding, nil); err != nil {
		d.T.Fatal(err)
	}
	e2e.Eventually(d.T, time.Minute, func() string {
		status, said, err := d.Get("hello-postgres.localhost", "/")
		if err == nil && status == 503 && strings.Contains(said, "connection refused") {
			return ""
		}
		return fmt.Sprintf("got %d %q, %v; want the connection refused", status, said, err)
	})
}

// isGone deletes an instance, and wants nothing left of it.
func isGone(d *e2e.Daemon, instance string) {
	d.T.Helper()
	if err := d.Change("DELETE", "/v3/service_instances/"+instance, nil); err != nil {
		d.T.Fatal(err)
	}
	// What begins with a dot is the store's, such as the place where volumes are shown.
	if left, err := filepath.Glob(filepath.Join(d.Dir, "volumes", "[^.]*")); err != nil || len(left) != 0 {
		d.T.Errorf("got volumes %v, %v; want none", left, err)
	}
	if out, err := d.Run("broker", "status", "--json", "--data-dir", d.Dir); err != nil || !strings.Contains(out, `"Instances": []`) {
		d.T.Errorf("broker status: got %q, %v; want no instance", out, err)
	}
}
