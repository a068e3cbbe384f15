package bbs

import (
	"errors"
	"strings"
	"syscall"
	"time"

	"cupola/server/bbs/bbspb"
)

// certificatesRotate desires an LRP and a task that look at their certificates,
// which live as long as the daemon's flag says. It returns what to look at when
// they have been replaced: before they ended, and with their keys, though the
// daemon was killed meanwhile.
func (b *bbsClient) certificatesRotate(archive string) (later func(*bbsClient)) {
	units := &bbspb.CertificateProperties{OrganizationalUnit: []string{"app:a"}}
	task := taskCase{action: probeRun("rotated"), with: func(d *bbspb.TaskDefinition) { d.CertificateProperties = units }}
	b.must("/v1/tasks/desire.r2", &bbspb.DesireTaskRequest{TaskGuid: "rotated", Domain: "identity", Definition: task.definition("rotated", archive)})
	d := probeLRP("rotated", archive)
	d.CertificateProperties, d.TrustedSystemCertificatesPath = units, "/etc/cf-system-certificates"
	b.must("/v1/desired_lrp/desire.r2", &bbspb.DesireLRPRequest{DesiredLrp: d})
	a := b.runningLRPs("rotated", 1)[0]
	said := make(chan string, 1)
	go func() {
		body, err := lookInside(a, 8080, "/rotated")
		for n := 0; n < 100 && errors.Is(err, syscall.ECONNREFUSED); n++ { // the test did not wait until it listens
			<-time.After(50 * time.Millisecond)
			body, err = lookInside(a, 8080, "/rotated")
		}
		if err != nil {
			body = err.Error()
		}
		said <- body
	}()
	return func(b *bbsClient) {
		if got := <-said; strings.TrimSpace(got) != "replaced" {
			b.T.Errorf("the LRP: %s", got)
		}
		if now := b.runningLRPs("rotated", 1)[0]; now.InstanceKey.InstanceGuid != a.InstanceKey.InstanceGuid {
			b.T.Errorf("got %v; want %v", now, a)
		}
		if got := b.tasksEnded("identity", 1)["rotated"]; got.Failed {
			b.T.Errorf("the task: %s\n%s", got.FailureReason, b.logOf("rotated"))
		}
		b.removeLRP("rotated")
	}
}
