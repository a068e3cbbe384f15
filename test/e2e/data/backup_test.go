package data

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"cupola/test/e2e"
)

// services runs cupola services with arguments, which must succeed.
func services(d *e2e.Daemon, args ...string) string {
	d.T.Helper()
	out, err := d.Run(append([]string{"services"}, args...)...)
	if err != nil {
		d.T.Fatalf("services %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

var madeBackup = regexp.MustCompile(`The backup ([0-9a-f-]{36}) has `)

// backUp backs up a service instance, and returns the backup's GUID.
func backUp(d *e2e.Daemon, name string) string {
	d.T.Helper()
	out := services(d, "backup", name)
	found := madeBackup.FindStringSubmatch(out)
	if found == nil {
		d.T.Fatalf("got %q; want a backup", out)
	}
	return found[1]
}

// notesAreRestored backs up the notes of hello-postgres, and restores them: into the same
// instance, whose app keeps its binding, and into a new one. A daemon that is killed
// meanwhile does both when it starts again.
func notesAreRestored(d *e2e.Daemon, instance string) {
	d.T.Helper()
	keepNote(d, "before the backup")
	backup := backUp(d, "notes")
	keepNote(d, "after the backup")
	began := time.Now()
	services(d, "restore", "notes", backup, "--force")
	d.T.Logf("restored in %.1f s", time.Since(began).Seconds())
	hasNotes(d, "before the backup", "after the backup")
	keepNote(d, "after the restore")
	others := databasePIDs(d, "PG_VERSION")
	services(d, "restore", "notes", backup, "--new", "copied")
	hasNotes(d, "after the restore", "after the backup")
	losesDatabase(d, "copied", slices.DeleteFunc(databasePIDs(d, "PG_VERSION"), func(pid int) bool { return slices.Contains(others, pid) }))

	ends(d, begin(d, instance, "actions/restore", e2e.Doc{"backup": e2e.Doc{"guid": backup}}, killed), "COMPLETE")
	hasNotes(d, "before the backup", "after the restore")
	ends(d, begin(d, instance, "backups", nil, killed), "COMPLETE")
	if left, err := os.ReadDir(filepath.Join(d.Dir, "blobs", "tmp")); err != nil || len(left) > 0 {
		d.T.Errorf("got %v, %v; want no files left", left, err)
	}
	file := filepath.Join(d.T.TempDir(), "notes.dump")
	services(d, "download", backup, file)
	if content, err := os.ReadFile(file); err != nil || !strings.HasPrefix(string(content), "PGDMP") {
		d.T.Errorf("got %.10q, %v; want a dump of PostgreSQL", content, err)
	}
	services(d, "delete-backup", backup)
	if out := services(d, "backups", "notes"); strings.Contains(out, backup) || strings.Count(out, "before_restore") != 2 || strings.Count(out, "requested") != 1 {
		d.T.Errorf("got backups\n%s", out)
	}
}

// begin asks for work on a service instance, and returns the address of its job; meanwhile
// is called while it is under way.
func begin(d *e2e.Daemon, instance, what string, body any, meanwhile func(*e2e.Daemon)) (job string) {
	d.T.Helper()
	job, err := d.Begin("POST", "/v1/service_instances/"+instance+"/"+what, body)
	if err != nil || job == "" {
		d.T.Fatalf("got %q, %v; want a job", job, err)
	}
	meanwhile(d)
	return job
}

// killed kills the daemon, and starts it again.
func killed(d *e2e.Daemon) {
	d.Kill()
	d.Start()
}

// ends waits for a job, which must end so.
func ends(d *e2e.Daemon, job, want string) {
	d.T.Helper()
	e2e.Eventually(d.T, 2*time.Minute, func() string {
		var j struct {
			State  string
			Errors []e2e.Doc
		}
		d.API("GET", job, nil, &j)
		if j.State != want {
			return fmt.Sprintf("the job is %s: %v; want %s", j.State, j.Errors, want)
		}
		return ""
	})
}

// losesDatabase kills the database of a service instance, whose first processes are given,
// in the middle of a backup: the job fails, and leaves no backup. Then it deletes the
// service instance.
func losesDatabase(d *e2e.Daemon, name string, pids []int) {
	d.T.Helper()
	signal := func(s syscall.Signal) {
		for _, pid := range pids {
			if err := syscall.Kill(-pid, s); err != nil {
				d.T.Fatal(err)
			}
		}
	}
	if len(pids) == 0 {
		d.T.Fatalf("found no process of the database %s", name)
	}
	instance, before := d.First("/v3/service_instances?names="+name), services(d, "backups", name)
	signal(syscall.SIGSTOP) // so that the dump waits
	job := begin(d, instance, "backups", nil, func(d *e2e.Daemon) {
		e2e.Eventually(d.T, time.Minute, func() string {
			if len(databasePIDs(d, "pg_dump")) == 0 {
				return "the dump has not begun"
			}
			return ""
		})
		signal(syscall.SIGKILL)
	})
	ends(d, job, "FAILED")
	if after := services(d, "backups", name); after != before {
		d.T.Errorf("got backups\n%s\nwant\n%s", after, before)
	}
	if err := d.Change("DELETE", "/v3/service_instances/"+instance, nil); err != nil {
		d.T.Fatal(err)
	}
}

// keepNote keeps a note, once the database takes it.
func keepNote(d *e2e.Daemon, note string) {
	d.T.Helper()
	e2e.Eventually(d.T, time.Minute, func() string {
		if d.Keep(note) {
			return ""
		}
		return "the note was not kept: " + note
	})
}

// hasNotes wants hello-postgres to have one note and not another one.
func hasNotes(d *e2e.Daemon, has, lacks string) {
	d.T.Helper()
	e2e.Eventually(d.T, time.Minute, func() string {
		status, text, err := d.Get("hello-postgres.localhost", "/")
		if err != nil || status != http.StatusOK || !strings.Contains(text, has+"\n") || strings.Contains(text, lacks+"\n") {
			return fmt.Sprintf("got %d, %v: %q; want %q without %q", status, err, text, has, lacks)
		}
		return ""
	})
}

// TestFilesAreRestored backs up a directory, and restores it once nothing has it mounted.
func TestFilesAreRestored(t *testing.T) {
	t.Parallel()
	d := e2e.StartDaemon(t, e2e.NeedBinary(t), "--data-services", "files")
	d.PushNotes()
	instance := d.DataInstance("files", "shelf")
	d.DataBinding("hello-postgres", instance)
	row := "/var/vcap/data/" + instance + "/row"
	d.Tasks("echo kept > "+row, "SUCCEEDED")
	backup := backUp(d, "shelf")
	d.Tasks("echo changed > "+row, "SUCCEEDED")
	d.RestartApp("hello-postgres")
	if out, err := d.Run("services", "restore", "shelf", backup, "--force"); err == nil || !strings.Contains(out, "apps or tasks have the directory mounted: stop them first") {
		t.Errorf("got %v\n%s\nwant to hear what to stop", err, out)
	}
	d.API("POST", "/v3/apps/"+d.App("hello-postgres")+"/actions/stop", nil, nil)
	e2e.Eventually(t, time.Minute, func() string {
		if out, err := d.Run("services", "restore", "shelf", backup, "--force"); err != nil {
			return fmt.Sprintf("%v\n%s", err, out)
		}
		return ""
	})
	d.Tasks(`test "$(cat `+row+`)" = kept`, "SUCCEEDED")
}
