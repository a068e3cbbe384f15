package web

import (
	"maps"
	"os"
	"path/filepath"
	"testing"

	"cupola/test/e2e"
)

// mails are what the app mailer sends, by their files' names: the last is the newest.
var mails = map[string]string{
	"1-plain.eml": "From: =?utf-8?q?J=C3=B6rg?= <joerg@example.com>\r\nTo: user@example.com\r\nSubject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\r\n" +
		"Content-Type: text/plain; charset=iso-8859-1\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\nviele Gr=FC=DFe,=\r\n J=F6rg\r\n",
	"2-html.eml": "From: shop@example.com\r\nTo: user@example.com\r\nSubject: <img src=x onerror=alert(1)>\r\nMIME-Version: 1.0\r\n" +
		"Content-Type: multipart/alternative; boundary=cut\r\n\r\n--cut\r\nContent-Type: text/plain\r\n\r\n\r\n--cut\r\nContent-Type: text/html; charset=utf-8\r\n\r\n" +
		"<p>Your <b>order</b> is on its way</p><script>alert(2)</script><img src=http://tracker.example/x>\r\n--cut--\r\n",
	"3-files.eml": "From: reports@example.com\r\nTo: user@example.com\r\nCc: boss@example.com\r\nSubject: The report\r\nMIME-Version: 1.0\r\n" +
		"Content-Type: multipart/mixed; boundary=cut\r\n\r\n--cut\r\nContent-Type: text/plain\r\n\r\nIt is attached.\r\n--cut\r\n" +
		"Content-Type: text/csv; name=report.csv\r\nContent-Disposition: attachment; filename=report.csv\r\nContent-Transfer-Encoding: base64\r\n\r\nYSxiCjEsMgo=\r\n--cut--\r\n",
}

// TestMails makes an app send mails to an instance of the service smtp, and reads them in a browser.
func TestMails(t *testing.T) {
	t.Parallel()
	modules := needBrowser(t)
	d := e2e.StartDaemon(t, e2e.NeedBinary(t), "--data-services", "smtp")
	d.Client()
	d.Prepared("smtp")
	instance := d.DataInstance("smtp", "outbox")
	user := addUser(d, "space_auditor")
	addRole(d, user, "organization_user", "organization", d.First("/v3/organizations?names=cupola"))
	addRole(d, user, "space_auditor", "space", d.First("/v3/spaces?names=dev"))
	config := e2e.Doc{"port": d.Addr[len("127.0.0.1:"):], "admin": e2e.AdminPassword, "password": password, "modules": modules,
		"areas": []string{"mails"}, "instance": instance}
	drive(t, config, func(t *testing.T, ask string) {
		if ask != "send" {
			t.Errorf("the browser's side asks for %q", ask)
			return
		}
		pushMailer(d)
	})
}

// pushMailer pushes the app, which sends the mails.
func pushMailer(d *e2e.Daemon) {
	d.T.Helper()
	dir := filepath.Join(d.T.TempDir(), "mailer")
	e2e.CopyProgram(d.T, e2e.Program(d.T, e2e.Repository(d.T), "./test/e2e/web/testdata/mailer"), dir, "mailer")
	files := map[string]string{"manifest.yml": `applications:
- {name: mailer, stack: minifs, buildpacks: [binary_buildpack], command: ./mailer, memory: 64M, disk_quota: 64M, health-check-type: process, no-route: true, services: [outbox]}
`}
	maps.Copy(files, mails)
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			d.T.Fatal(err)
		}
	}
	if out, err := d.Run("push", dir); err != nil {
		d.T.Fatalf("push: %v\n%s", err, out)
	}
}
