package data

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cupola/server/admin/repository/storagetest"
	"cupola/test/e2e"
)

// wholes are the places that have a backup of everything.
type wholes struct {
	file string
	key  string
	at   []string // addresses
}

// TestOneServiceOfABackup restores single service instances out of backups of everything, from a file, a directory, an SFTP server and
// an object store, beside the running ones, which go on. The daemon is killed in the middle of one.
func TestOneServiceOfABackup(t *testing.T) {
	t.Parallel()
	w := &wholes{file: filepath.Join(t.TempDir(), "all.backup"), key: filepath.Join(t.TempDir(), "key")}
	w.at = []string{t.TempDir(), storagetest.SFTP(t, t.TempDir()).Address, storagetest.S3(t).Address}
	d := e2e.StartDaemon(t, e2e.NeedBinary(t), append(w.flags(t), "--data-services", "postgres,mysql,redis,nats,rabbitmq,smtp,files")...)
	d.Prepared(prepared...)
	d.PushNotes()
	guids := map[string]string{}
	for name, service := range map[string]string{"notes": "postgres", "shop": "mysql", "cache": "redis", "bus": "nats", "queues": "rabbitmq", "outbox": "smtp", "shelf": "files"} {
		guids[name] = d.DataInstance(service, name)
	}
	bindings := []string{d.DataBinding("hello-postgres", guids["notes"]), d.DataBinding("hello-postgres", guids["shelf"])}
	d.RestartApp("hello-postgres")
	pushClient(d, guids["shop"], guids["bus"], guids["queues"], guids["outbox"])
	cache, queues := keyOf(d, guids["cache"], "cache"), keyOf(d, guids["queues"], "queues")
	auth := fmt.Sprintf("AUTH %s %s", cache.Username, cache.Password)
	row := "/var/vcap/data/" + guids["shelf"] + "/row"

	keepNote(d, "before the backup")
	d.Tasks("echo before > "+row+" && head -c 200000000 /dev/urandom > "+row+".noise", "SUCCEEDED")
	answers(d, "mysql", "CREATE TABLE t (n INT)\nCREATE VIEW v AS SELECT n FROM t\nINSERT INTO t VALUES (1)\nSELECT COUNT(*) FROM v", "1")
	answers(d, "nats", "create", "done")
	answers(d, "nats", "one", "done")
	answers(d, "rabbitmq", "before\n", "done")
	answers(d, "smtp", "before", "sent")
	redis(d, guids["cache"], auth, "SET row before")
	w.make(d)
	keepNote(d, "after the backup")
	d.Tasks("echo after > "+row, "SUCCEEDED")
	answers(d, "mysql", "INSERT INTO t VALUES (2)\nSELECT COUNT(*) FROM v", "2")
	answers(d, "nats", "two", "done")
	answers(d, "rabbitmq", "after\n", "done")
	answers(d, "smtp", "after", "sent")
	redis(d, guids["cache"], auth, "SET row after")

	w.refuses(d)
	for name, args := range map[string][]string{
		"notes": {"--from", w.file}, "shop": {"latest", "--from", w.at[0], "--identity", w.key}, "cache": {"--from", w.at[1], "--identity", w.key},
		"queues": {"--from", w.at[2], "--identity", w.key}, "bus": {"--from", w.file, "--org", "cupola", "--space", "dev"}, "outbox": {"--from", w.at[0], "--identity", w.key},
	} {
		began := time.Now()
		services(d, append([]string{"restore", name, "--new", name + "-copy", "--data-dir", d.Dir}, args...)...)
		t.Logf("%s was restored in %.1f s", name, time.Since(began).Seconds())
	}
	w.killed(d)

	// The running ones go on.
	keepNote(d, "after the restore")
	hasNotes(d, "after the backup", "not there")
	answers(d, "mysql", "SELECT COUNT(*) FROM v", "2")
	answers(d, "nats", "count", "2")
	d.Tasks(`test "$(cat `+row+`)" = after`, "SUCCEEDED")
	hasMails(d, "outbox", "before", "after")
	if got := redis(d, guids["cache"], auth, "GET row"); got != "+OK $5 after" {
		t.Errorf("got %q; want the row of the running Redis", got)
	}

	// The users of their bindings are not in the others.
	copies := func(name string) string { return d.First("/v3/service_instances?names=" + name + "-copy") }
	if got := redis(d, copies("cache"), auth); !strings.HasPrefix(got, "-WRONGPASS ") {
		t.Errorf("got %q; want the key of another instance refused", got)
	}
	if c, err := amqp(d, copies("queues"), queues); err == nil {
		c.Close()
		t.Error("the key of another RabbitMQ connects")
	}
	other := keyOf(d, copies("cache"), "other")
	if got := redis(d, copies("cache"), fmt.Sprintf("AUTH %s %s", other.Username, other.Password), "GET row"); got != "+OK $6 before" {
		t.Errorf("got %q; want the row as it was", got)
	}
	hasMails(d, "outbox-copy", "before", "")
	for _, b := range bindings {
		if err := d.Change("DELETE", "/v3/service_credential_bindings/"+b, nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"shop", "bus", "queues", "outbox"} {
		if err := d.Change("DELETE", "/v3/service_credential_bindings/"+d.First("/v3/service_credential_bindings?type=app&service_instance_guids="+guids[name]), nil); err != nil {
			t.Fatal(err)
		}
		d.DataBinding("client", copies(name))
	}
	d.DataBinding("hello-postgres", copies("notes"))
	shelf := copies("shelf")
	d.DataBinding("hello-postgres", shelf)
	d.RestartApp("client")
	d.RestartApp("hello-postgres")
	hasNotes(d, "before the backup", "after the backup")
	keepNote(d, "in the copy")
	d.Tasks(`cd /var/vcap/data/`+shelf+` && test "$(cat row)" = before && test "$(wc -c < row.noise)" = 200000000`, "SUCCEEDED")
	answers(d, "mysql", "SELECT CONCAT(COUNT(*), ' of ', (SELECT COUNT(*) FROM t)) FROM v", "1 of 1")
	answers(d, "nats", "count", "1")
	answers(d, "rabbitmq", "all", "before\n")
}

// flags makes the key of backups away from the machine, and returns the flags of a daemon that makes them.
func (w *wholes) flags(t *testing.T) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), e2e.NeedBinary(t), "backups", "key", w.key).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	_, recipient, _ := strings.Cut(string(out), "--backup-recipient ")
	flags := []string{"--backup-recipient", strings.TrimSpace(recipient), "--backup-every", "1000h"}
	for _, address := range w.at {
		flags = append(flags, "--backup-to", address)
	}
	return flags
}

// make backs up everything.
func (w *wholes) make(d *e2e.Daemon) {
	d.T.Helper()
	for _, args := range [][]string{{"backup", w.file}, {"backups", "run"}} {
		if out, err := d.Run(append(args, "--data-dir", d.Dir)...); err != nil {
			d.T.Fatalf("%q: %v\n%s", args, err, out)
		}
	}
}

// refuses wants to hear what is wrong with a restore, and that none of it is left.
func (w *wholes) refuses(d *e2e.Daemon) {
	d.T.Helper()
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"notes", "--from", w.file}, "give --new"},
		{[]string{"notes", "x", "--from", w.file, "--new", "n"}, "give neither"},
		{[]string{"notes", "--from", w.at[0], "--new", "n"}, "give --identity"},
		{[]string{"nothing", "--from", w.file, "--new", "n"}, "no service instance nothing of the built-in broker; it has: bus in the space dev of the org cupola"},
		{[]string{"notes", "--from", w.at[0], "--identity", w.key, "--space", "elsewhere", "--new", "n"}, "no service instance notes"},
		{[]string{"notes", "--from", w.file, "--new", "shop"}, "name is taken"},
	} {
		out, err := d.Run(append([]string{"services", "restore", "--data-dir", d.Dir}, c.args...)...)
		if err == nil || !strings.Contains(out, c.want) {
			d.T.Errorf("%q: got %v\n%s\nwant %s", c.args, err, out, c.want)
		}
	}
	w.leavesNothing(d)
}

func (w *wholes) leavesNothing(d *e2e.Daemon) {
	d.T.Helper()
	if left, err := filepath.Glob(filepath.Join(d.Dir, "service-contents", "*")); err != nil || len(left) > 0 {
		d.T.Errorf("left %v, %v", left, err)
	}
}

// killed kills the daemon once a new service instance is there, and another time twice while it fills the volume of one: the next
// one goes on.
func (w *wholes) killed(d *e2e.Daemon) {
	d.T.Helper()
	w.killedWhen(d, "bus", "bus-late", 1, func() bool {
		var list struct{ Resources []e2e.Doc }
		d.API("GET", "/v3/service_instances?names=bus-late", nil, &list)
		return len(list.Resources) > 0
	})
	w.killedWhen(d, "shelf", "shelf-copy", 2, func() bool {
		found, err := filepath.Glob(filepath.Join(d.Dir, "volumes", "*_staged"))
		return err == nil && len(found) > 0
	})
	w.leavesNothing(d)
}

// killedWhen kills the daemon some times while it restores a service instance, each time when a condition holds.
func (w *wholes) killedWhen(d *e2e.Daemon, from, to string, times int, condition func() bool) {
	d.T.Helper()
	cmd := exec.CommandContext(d.T.Context(), d.Binary, "services", "restore", from, "--from", w.file, "--new", to, "--data-dir", d.Dir)
	cmd.Env = append(os.Environ(), "CUPOLA_API=http://"+d.Addr, "CUPOLA_PASSWORD="+e2e.AdminPassword)
	if err := cmd.Start(); err != nil {
		d.T.Fatal(err)
	}
	for range times {
		for deadline := time.Now().Add(time.Minute); !condition(); {
			if time.Now().After(deadline) {
				d.T.Fatalf("there was no moment to kill the daemon while it restores %s", to)
			}
		}
		d.Kill()
		_ = cmd.Wait() // it sees the first end
		d.Start()
	}
	e2e.Eventually(d.T, 2*time.Minute, func() string {
		var list struct {
			Resources []struct {
				LastOperation struct{ State, Description string } `json:"last_operation"`
			}
		}
		d.API("GET", "/v3/service_instances?names="+to, nil, &list)
		if len(list.Resources) != 1 || list.Resources[0].LastOperation.State != "succeeded" {
			return fmt.Sprintf("got %+v; want the service instance made", list)
		}
		return ""
	})
}

// hasMails wants an instance to have mails with some subjects; with "" for the second, only with the first.
func hasMails(d *e2e.Daemon, name, first, second string) {
	d.T.Helper()
	list := services(d, "mails", name)
	if !strings.Contains(list, first) || second != "" && !strings.Contains(list, second) || second == "" && strings.Contains(list, "after") {
		d.T.Errorf("%s: got mails\n%s", name, list)
	}
}
