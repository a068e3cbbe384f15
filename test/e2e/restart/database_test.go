package restart

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"cupola/test/e2e"
)

// restoreLine is the command that a daemon names when its database is damaged.
var restoreLine = regexp.MustCompile(`sudo \S*cupola (restore --data-dir \S+ --database [^\s']+)`)

// TestADamagedDatabaseComesBack damages the database of a daemon that was
// killed: the next one refuses to serve it and names a command. With that, all
// comes back that the last automatic backup holds, and what runs goes on.
func TestADamagedDatabaseComesBack(t *testing.T) {
	t.Parallel()
	d := e2e.StartDaemon(t, e2e.NeedBinary(t))
	if out, err := d.Run("push", e2e.Example(t, "node")); err != nil {
		t.Fatalf("push: %v\n%s", err, out)
	}
	d.API("PATCH", "/v3/apps/"+d.App("hello-node")+"/environment_variables", e2e.Doc{"var": e2e.Doc{"SECRET": "sealed"}}, nil)
	d.API("POST", "/v3/apps/"+d.App("hello-node")+"/processes/web/actions/scale", e2e.Doc{"instances": 2}, nil)
	before := d.Running("hello-node", "web", 2)
	pids := d.Processes(t)
	d.Kill()
	if err := os.RemoveAll(filepath.Join(d.Dir, "db", "backups")); err != nil { // so that a copy is due
		t.Fatal(err)
	}
	d.Start()
	file := databaseCopy(d)
	d.API("POST", "/v3/organizations", e2e.Doc{"name": "lost"}, nil)
	if out, err := d.Run("verify", "--database", "--data-dir", d.Dir); err != nil || !strings.Contains(out, "is valid") {
		t.Errorf("verify: %v\n%s", err, out)
	}
	if out, err := d.Run("restore", "--data-dir", d.Dir, "--database", file); err == nil || !strings.Contains(out, "in use") {
		t.Errorf("restore beside the daemon: %v\n%s; want it refused", err, out)
	}
	d.Cmd.Process.Signal(syscall.SIGTERM)
	d.Cmd.Wait()
	damage(d)
	out, err := exec.Command(d.Binary, "serve", "--data-dir", d.Dir, "--http", d.Addr, "--https", "off", "--ssh", "off").CombinedOutput()
	line := restoreLine.FindSubmatch(out)
	if err == nil || line == nil || !strings.Contains(string(out), "damaged") {
		t.Fatalf("got %v\n%s\nwant that the database is damaged, and the way back", err, out)
	}
	if out, err := d.Run("verify", "--database", "--data-dir", d.Dir); err == nil || !strings.Contains(out, "damaged") {
		t.Errorf("verify: %v\n%s; want it damaged", err, out)
	}
	if out, err := d.Run(strings.Fields(string(line[1]))...); err != nil || !strings.Contains(out, "Later changes are lost") {
		t.Fatalf("%s: %v\n%s", line[1], err, out)
	}
	if aside, err := filepath.Glob(filepath.Join(d.Dir, "db", "cupola.db.replaced-*")); err != nil || len(aside) == 0 {
		t.Errorf("got %v, %v; want the damaged database kept", aside, err)
	}
	d.Start()
	d.Answers("hello-node", "hello from")
	after := d.Running("hello-node", "web", 2)
	if now := d.Processes(t); !slices.Equal(pids, now) || !slices.Equal(e2e.GUIDs(before), e2e.GUIDs(after)) {
		t.Errorf("got processes %v; want %v", now, pids)
	}
	var env struct{ Var map[string]string }
	d.API("GET", "/v3/apps/"+d.App("hello-node")+"/environment_variables", nil, &env)
	if env.Var["SECRET"] != "sealed" {
		t.Errorf("got %v; want what was sealed", env.Var)
	}
}

// databaseCopy waits for an automatic backup.
func databaseCopy(d *e2e.Daemon) (file string) {
	d.T.Helper()
	e2e.Eventually(d.T, time.Minute, func() string {
		all, _ := filepath.Glob(filepath.Join(d.Dir, "db", "backups", "cupola-*.db.zst"))
		if len(all) == 0 {
			return "no copy of the database was made"
		}
		file = all[0]
		return ""
	})
	return file
}

// damage spoils pages of the database.
func damage(d *e2e.Daemon) {
	d.T.Helper()
	f, err := os.OpenFile(filepath.Join(d.Dir, "db", "cupola.db"), os.O_RDWR, 0)
	if err != nil {
		d.T.Fatal(err)
	}
	info, err := f.Stat()
	if err != nil {
		d.T.Fatal(err)
	}
	const page = 4096
	for at := int64(10 * page); at < info.Size(); at += 7 * page {
		if _, werr := f.WriteAt([]byte("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"), at); werr != nil {
			err = errors.Join(err, werr)
		}
	}
	if err := errors.Join(err, f.Close()); err != nil {
		d.T.Fatal(err)
	}
}
