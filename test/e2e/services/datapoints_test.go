package services

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"cupola/test/e2e"
)

// TestPointInTime restores a database to a second, beside the running one: the rows as they were then. The daemon
// is killed in the middle of a restore, and the database's container meanwhile.
func TestPointInTime(t *testing.T) {
	t.Parallel()
	d := e2e.StartDaemon(t, e2e.NeedBinary(t), "--data-services", "postgres")
	d.Prepared("postgres")
	d.PushNotes()
	notes := d.DataInstance("postgres", "notes")
	binding := d.DataBinding("hello-postgres", notes)
	d.RestartApp("hello-postgres")
	keepNote(d, "before recovery was enabled")
	if out := services(d, "points", "notes"); !strings.Contains(out, "is not enabled") {
		t.Errorf("got %q", out)
	}
	restoreRefused(d, time.Now(), "point-in-time recovery is not enabled")
	enabled := e2e.Doc{"parameters": e2e.Doc{"point_in_time_recovery": true}}
	if err := d.Change("PATCH", "/v3/service_instances/"+notes, enabled); err != nil {
		t.Fatal(err)
	}
	if out := services(d, "points", "notes"); !strings.Contains(out, "can be restored to each second from") {
		t.Errorf("got %q", out)
	}
	restoreRefused(d, time.Now().Add(-time.Hour), "the first one is")
	restoreRefused(d, time.Now().Add(time.Hour), "is in the future")

	var at [3]time.Time // after each note
	for n := range at {
		<-time.After(1200 * time.Millisecond)
		keepNote(d, fmt.Sprintf("note %d.", n))
		<-time.After(1200 * time.Millisecond)
		at[n] = time.Now()
		if n == 1 {
			killDatabase(d, "PG_VERSION") // its log is replayed, and goes on
		}
	}
	<-time.After(1200 * time.Millisecond)
	keepNote(d, "the mistake")
	began := time.Now()
	services(d, "restore", "notes", "--to", at[1].UTC().Format(time.RFC3339Nano), "--new", "copied")
	t.Logf("restored in %.1f s", time.Since(began).Seconds())
	hasNotes(d, "the mistake", "not there") // the running one goes on
	late := time.Now()
	<-time.After(1200 * time.Millisecond)
	job := restoreKilled(d, notes, late)
	ends(d, job, "COMPLETE")

	if err := d.Change("DELETE", "/v3/service_credential_bindings/"+binding, nil); err != nil {
		t.Fatal(err)
	}
	disabled := e2e.Doc{"parameters": e2e.Doc{"point_in_time_recovery": false}}
	if err := d.Change("PATCH", "/v3/service_instances/"+notes, disabled); err != nil {
		t.Fatal(err)
	}
	if out := services(d, "points", "notes"); !strings.Contains(out, "is not enabled") {
		t.Errorf("got %q", out)
	}
	seenBy(d, "copied", []string{"before recovery was enabled", "note 0.", "note 1."}, []string{"note 2.", "the mistake"})
	seenBy(d, "late", []string{"note 0.", "note 2.", "the mistake"}, []string{"not there"})
}

// restoreRefused wants a restore to a time refused for a reason.
func restoreRefused(d *e2e.Daemon, to time.Time, why string) {
	d.T.Helper()
	out, err := d.Run("services", "restore", "notes", "--to", to.UTC().Format(time.RFC3339), "--new", "refused")
	if err == nil || !strings.Contains(out, why) {
		d.T.Errorf("got %v\n%s\nwant %s", err, out, why)
	}
	var list struct{ Resources []struct{ GUID string } }
	d.API("GET", "/v3/service_instances?names=refused", nil, &list)
	for _, i := range list.Resources {
		if err := d.Change("DELETE", "/v3/service_instances/"+i.GUID, nil); err != nil {
			d.T.Fatal(err)
		}
	}
}

// restoreKilled restores to a time by the API, and kills the daemon meanwhile.
func restoreKilled(d *e2e.Daemon, of string, to time.Time) (job string) {
	d.T.Helper()
	plan := d.First("/v3/service_plans?names=small&service_offering_names=postgres")
	body := e2e.Doc{"type": "managed", "name": "late", "parameters": e2e.Doc{"restore_from_point_in_time_of": of, "restore_from_point_in_time_before": to.UTC().Format(time.RFC3339Nano)},
		"relationships": e2e.Doc{"space": e2e.ToOne(d.First("/v3/spaces?names=dev")), "service_plan": e2e.ToOne(plan)}}
	job, err := d.Begin("POST", "/v3/service_instances", body)
	if err != nil {
		d.T.Fatal(err)
	}
	for range 2 {
		<-time.After(500 * time.Millisecond)
		killed(d)
	}
	return job
}

// seenBy binds the app to a service instance, and wants these notes there and not those.
func seenBy(d *e2e.Daemon, name string, has, lacks []string) {
	d.T.Helper()
	binding := d.DataBinding("hello-postgres", d.First("/v3/service_instances?names="+name))
	d.RestartApp("hello-postgres")
	for _, one := range has {
		hasNotes(d, one, lacks[0])
	}
	for _, one := range lacks {
		hasNotes(d, has[0], one)
	}
	keepNote(d, "in "+name)
	if err := d.Change("DELETE", "/v3/service_credential_bindings/"+binding, nil); err != nil {
		d.T.Fatal(err)
	}
}
