package main

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
)

// restoreLine is the command that a daemon names when its database is damaged.
var restoreLine = regexp.MustCompile(`sudo \S*cupola (restore --data-dir \S+ --database [^\s']+)`)

// TestADamagedDatabaseComesBack damages the database of a daemon that was
// killed: the next one refuses to serve it and names a command. With that, all
// comes back that the last automatic backup holds, and what runs goes on.
func TestADamagedDatabaseComesBack(t *testing.T) {
	t.Parallel()
	d := startDaemon(t, needBinary(t))
	if out, err := d.run("push", example(t, "node")); err != nil {
		t.Fatalf("push: %v\n%s", err, out)
	}
	d.api("PATCH", "/v3/apps/"+d.app("hello-node")+"/environment_variables", doc{"var": doc{"SECRET": "sealed"}}, nil)
	d.api("POST", "/v3/apps/"+d.app("hello-node")+"/processes/web/actions/scale", doc{"instances": 2}, nil)
	before := d.running("hello-node", "web", 2)
	pids := d.processes(t)
	d.kill()
	if err := os.RemoveAll(filepath.Join(d.dir, "db", "backups")); err != nil { // so that a copy is due
		t.Fatal(err)
	}
	d.start()
	file := d.databaseCopy()
	d.api("POST", "/v3/organizations", doc{"name": "lost"}, nil)
	if out, err := d.run("verify", "--database", "--data-dir", d.dir); err != nil || !strings.Contains(out, "is sound") {
		t.Errorf("verify: %v\n%s", err, out)
	}
	if out, err := d.run("restore", "--data-dir", d.dir, "--database", file); err == nil || !strings.Contains(out, "in use") {
		t.Errorf("restore beside the daemon: %v\n%s; want it refused", err, out)
	}
	d.cmd.Process.Signal(syscall.SIGTERM)
	d.cmd.Wait()
	d.damage()
	out, err := exec.Command(d.binary, "serve", "--data-dir", d.dir, "--http", d.addr, "--https", "off", "--ssh", "off").CombinedOutput()
	line := restoreLine.FindSubmatch(out)
	if err == nil || line == nil || !strings.Contains(string(out), "damaged") {
		t.Fatalf("got %v\n%s\nwant that the database is damaged, and the way back", err, out)
	}
	if out, err := d.run("verify", "--database", "--data-dir", d.dir); err == nil || !strings.Contains(out, "damaged") {
		t.Errorf("verify: %v\n%s; want it damaged", err, out)
	}
	if out, err := d.run(strings.Fields(string(line[1]))...); err != nil || !strings.Contains(out, "is lost") {
		t.Fatalf("%s: %v\n%s", line[1], err, out)
	}
	if aside, err := filepath.Glob(filepath.Join(d.dir, "db", "cupola.db.replaced-*")); err != nil || len(aside) == 0 {
		t.Errorf("got %v, %v; want the damaged database kept", aside, err)
	}
	d.start()
	d.answers("hello-node", "hello from")
	after := d.running("hello-node", "web", 2)
	if now := d.processes(t); !slices.Equal(pids, now) || !slices.Equal(guids(before), guids(after)) {
		t.Errorf("got processes %v; want %v", now, pids)
	}
	var env struct{ Var map[string]string }
	d.api("GET", "/v3/apps/"+d.app("hello-node")+"/environment_variables", nil, &env)
	if env.Var["SECRET"] != "sealed" {
		t.Errorf("got %v; want what was sealed", env.Var)
	}
}

// databaseCopy waits for an automatic backup.
func (d *daemon) databaseCopy() (file string) {
	d.t.Helper()
	eventually(d.t, 20*time.Second, func() string {
		all, _ := filepath.Glob(filepath.Join(d.dir, "db", "backups", "cupola-*.db.zst"))
		if len(all) == 0 {
			return "no copy of the database was made"
		}
		file = all[0]
		return ""
	})
	return file
}

// damage spoils pages of the database.
func (d *daemon) damage() {
	d.t.Helper()
	f, err := os.OpenFile(filepath.Join(d.dir, "db", "cupola.db"), os.O_RDWR, 0)
	if err != nil {
		d.t.Fatal(err)
	}
	info, err := f.Stat()
	if err != nil {
		d.t.Fatal(err)
	}
	const page = 4096
	for at := int64(10 * page); at < info.Size(); at += 7 * page {
		if _, werr := f.WriteAt([]byte("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"), at); werr != nil {
			err = errors.Join(err, werr)
		}
	}
	if err := errors.Join(err, f.Close()); err != nil {
		d.t.Fatal(err)
	}
}
