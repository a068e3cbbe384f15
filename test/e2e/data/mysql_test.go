package data

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"cupola/test/e2e"
)

// pushClient pushes the app that uses services, bound to some of them.
func pushClient(d *e2e.Daemon, instances ...string) {
	d.T.Helper()
	dir := filepath.Join(d.T.TempDir(), "client")
	e2e.CopyProgram(d.T, e2e.Program(d.T, filepath.Join("testdata", "client"), "."), dir, "client")
	manifest := "applications:\n- name: client\n  buildpacks: [binary_buildpack]\n  command: ./client\n  memory: 64M\n  disk_quota: 64M\n"
	if err := os.WriteFile(filepath.Join(dir, "manifest.yml"), []byte(manifest), 0o600); err != nil {
		d.T.Fatal(err)
	}
	if out, err := d.Run("push", dir); err != nil {
		d.T.Fatalf("push: %v\n%s", err, out)
	}
	d.Running("client", "web", 1)
	for _, i := range instances {
		d.DataBinding("client", i)
	}
	d.RestartApp("client")
}

// try asks the app client to do something with a service, once.
func try(d *e2e.Daemon, service, request string) (string, error) {
	return post(d, "client", service, request)
}

// post sends a request to an app; an answer other than 200 is an error.
func post(d *e2e.Daemon, app, path, request string) (string, error) {
	req, err := http.NewRequestWithContext(d.T.Context(), "POST", "http://"+d.Addr+"/"+path, strings.NewReader(request))
	if err != nil {
		return "", err
	}
	req.Host = app + ".localhost"
	res, err := (&http.Client{Timeout: 20 * time.Second}).Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	said, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%d: %s", res.StatusCode, said)
	}
	return string(said), err
}

// answers wants the answer of the app client to a request, within a minute.
func answers(d *e2e.Daemon, service, request, want string) {
	d.T.Helper()
	e2e.Eventually(d.T, time.Minute, func() string {
		if got, err := try(d, service, request); err != nil || got != want {
			return fmt.Sprintf("%s %s: got %q, %v; want %q", service, request, got, err, want)
		}
		return ""
	})
}

// diesAndStarts kills a service's container, whose script has mark, and waits for the next.
func diesAndStarts(d *e2e.Daemon, mark string) {
	d.T.Helper()
	before := databasePIDs(d, mark)
	killDatabase(d, mark)
	e2e.Eventually(d.T, time.Minute, func() string {
		now := databasePIDs(d, mark)
		if len(now) == 0 || slices.ContainsFunc(now, func(pid int) bool { return slices.Contains(before, pid) }) {
			return fmt.Sprintf("processes %v became %v; want others", before, now)
		}
		return ""
	})
}

// mysqlOutlives inserts rows while the daemon and the server are killed, and wants every
// one that was acknowledged; it restores them with all that an app can define, into the
// same instance and another one, and unbinds.
func mysqlOutlives(d *e2e.Daemon, instance string) {
	d.T.Helper()
	const define = "CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, n INT, text TEXT, bytes BLOB)\n" +
		"CREATE VIEW v AS SELECT n FROM t\nCREATE FUNCTION f() RETURNS INT RETURN (SELECT COUNT(*) FROM t)\n" +
		"CREATE TRIGGER r BEFORE INSERT ON t FOR EACH ROW SET NEW.text = CONCAT(NEW.text, '!')\n" +
		"INSERT INTO t (n, text, bytes) VALUES (-1, 'a\\nCREATE DEFINER=`x`@`%` é', x'00ff')\n"
	answers(d, "mysql", define+"SELECT @@innodb_flush_log_at_trx_commit", "1")
	if got, err := try(d, "mysql", "SELECT authentication_string FROM mysql.user"); err == nil || !strings.Contains(err.Error(), "denied") {
		d.T.Errorf("got %q, %v; want other users hidden", got, err)
	}
	inserted := 0
	for n := range 60 {
		if _, err := try(d, "mysql", fmt.Sprintf("INSERT INTO t (n) VALUES (%d)\nSELECT 1", n)); err == nil {
			inserted++
		}
		if n == 20 {
			killed(d)
			answers(d, "mysql", "SELECT 1", "1")
		}
		if n == 40 {
			diesAndStarts(d, "mariadb-install-db")
			answers(d, "mysql", "SELECT 1", "1")
		}
	}
	answers(d, "mysql", "SELECT COUNT(DISTINCT n) FROM t WHERE n >= 0", fmt.Sprint(inserted))
	d.T.Logf("%d rows, none lost", inserted)
	const content = "SELECT CONCAT(COUNT(*), ' ', MAX(text), ' ', HEX(MAX(bytes)), ' ', f(), ' ', (SELECT COUNT(*) FROM v)) FROM t"
	want, err := try(d, "mysql", content)
	if err != nil || !strings.Contains(want, "CREATE DEFINER=`x`@`%` é! 00FF") {
		d.T.Fatalf("got %q, %v; want what was inserted", want, err)
	}
	backup := backUp(d, "shop")
	answers(d, "mysql", "DROP VIEW IF EXISTS v\nDELETE FROM t\nCREATE TABLE IF NOT EXISTS later (n INT)\nSELECT COUNT(*) FROM t", "0")
	began := time.Now()
	ends(d, begin(d, instance, "actions/restore", e2e.Doc{"backup": e2e.Doc{"guid": backup}}, killed), "COMPLETE")
	d.T.Logf("MariaDB was restored %.1f s after the daemon's end", time.Since(began).Seconds())
	answers(d, "mysql", content, want)
	answers(d, "mysql", "SHOW TABLES LIKE 'later'", "")
	answers(d, "mysql", "INSERT INTO t (n, text) VALUES (1000, 'new')\nSELECT text FROM t WHERE n = 1000", "new!")
}

// mysqlForgets restores the app's tables into another instance, to which it is bound
// instead.
func mysqlForgets(d *e2e.Daemon, instance, binding string) {
	d.T.Helper()
	backup := backUp(d, "shop")
	if err := d.Change("DELETE", "/v3/service_credential_bindings/"+binding, nil); err != nil {
		d.T.Fatal(err)
	}
	if got, err := try(d, "mysql", "SELECT 1"); err == nil {
		d.T.Errorf("got %q; want an unbound app refused", got)
	}
	services(d, "restore", "shop", backup, "--new", "copy")
	other := d.First("/v3/service_instances?names=copy")
	d.DataBinding("client", other)
	d.RestartApp("client")
	answers(d, "mysql", "SELECT COUNT(*) > 40 AND f() > 40 FROM v", "1")
	for _, i := range []string{instance, other} {
		if err := d.Change("DELETE", "/v3/service_instances/"+i, nil); err != nil {
			d.T.Fatal(err)
		}
	}
}
