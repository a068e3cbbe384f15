package data

import (
	"fmt"
	"strings"
	"time"

	"cupola/test/e2e"
)

// mailsAreShown sends mails by the app client, and reads them: those that were acknowledged
// outlive the daemon and the server, and a restore brings back those of a backup.
func mailsAreShown(d *e2e.Daemon, instance string) {
	d.T.Helper()
	answers(d, "smtp", "the first", "sent")
	killed(d)
	diesAndStarts(d, "/data 0.0.0.0:2525")
	answers(d, "smtp", "the second", "sent")
	list := services(d, "mails", "outbox")
	if !strings.Contains(list, "the first") || !strings.Contains(list, "the second") || !strings.Contains(list, "user@example.com") {
		d.T.Errorf("got mails\n%s\nwant both", list)
	}
	if got := services(d, "mails", "outbox", "last"); !strings.Contains(got, "Subject: the second\n") || !strings.Contains(got, "hello") {
		d.T.Errorf("got %q; want the second mail", got)
	}
	if out, err := d.Run("services", "mails", "shop"); err == nil || !strings.Contains(out, "service smtp") {
		d.T.Errorf("got %s, %v; want a database to have no mails", out, err)
	}
	backup := backUp(d, "outbox")
	answers(d, "smtp", "the third", "sent")
	services(d, "restore", "outbox", backup, "--force")
	e2e.Eventually(d.T, time.Minute, func() string {
		if list := services(d, "mails", "outbox"); !strings.Contains(list, "the second") || strings.Contains(list, "the third") {
			return fmt.Sprintf("got mails\n%s\nwant those of the backup", list)
		}
		return ""
	})
	answers(d, "smtp", "the fourth", "sent")
	if err := d.Change("DELETE", "/v3/service_instances/"+instance, nil); err != nil {
		d.T.Fatal(err)
	}
}
