package data

import (
	"fmt"
	"path/filepath"
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
	d.Prepared(prepared...)
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
	job := restoreKilledTo(d, "postgres", "late", notes, late)
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

// restoreKilledTo restores a service instance to a time by the API, and kills the daemon meanwhile.
func restoreKilledTo(d *e2e.Daemon, service, name, of string, to time.Time) (job string) {
	d.T.Helper()
	plan := d.First("/v3/service_plans?names=small&service_offering_names=" + service)
	body := e2e.Doc{"type": "managed", "name": name, "parameters": e2e.Doc{"restore_from_point_in_time_of": of, "restore_from_point_in_time_before": to.UTC().Format(time.RFC3339Nano)},
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

// TestRedisPointInTime restores a Redis to a second, beside the running one: the rows as they were then, over rewrites of its log, the
// end of its container, a restore of a backup and the end of the daemon.
func TestRedisPointInTime(t *testing.T) {
	t.Parallel()
	d := e2e.StartDaemon(t, e2e.NeedBinary(t), "--data-services", "redis")
	d.Prepared(prepared...)
	cache := d.DataInstance("redis", "cache")
	key := keyOf(d, cache, "k")
	row := func(instance string, key serviceKey, commands ...string) string {
		t.Helper()
		got := ""
		e2e.Eventually(t, time.Minute, func() string {
			if got = redis(d, instance, append([]string{fmt.Sprintf("AUTH %s %s", key.Username, key.Password)}, commands...)...); strings.HasPrefix(got, "+OK ") {
				return ""
			}
			return fmt.Sprintf("%q: got %q", commands, got)
		})
		return got
	}
	row(cache, key, "SET first kept")
	if out := services(d, "points", "cache"); !strings.Contains(out, "is not enabled") {
		t.Errorf("got %q", out)
	}
	if err := d.Change("PATCH", "/v3/service_instances/"+cache, e2e.Doc{"parameters": e2e.Doc{"point_in_time_recovery": true}}); err != nil {
		t.Fatal(err)
	}
	if out := services(d, "points", "cache"); !strings.Contains(out, "can be restored to each second from") {
		t.Errorf("got %q", out)
	}
	backup := backUp(d, "cache")
	var at []time.Time // after each value of the row
	for n := range 5 {
		<-time.After(1200 * time.Millisecond)
		row(cache, key, fmt.Sprintf("SET row %d", n))
		<-time.After(1200 * time.Millisecond)
		at = append(at, time.Now())
		switch n {
		case 0: // 72 MB, for which the log is rewritten
			big := strings.Repeat("SET big "+strings.Repeat("x", 60_000)+"\r\n", 100)
			for range 12 {
				row(cache, key, big+"DEL big")
			}
			rewritten(d, cache, 2)
		case 1:
			killDatabase(d, "users.acl")
		case 2:
			services(d, "restore", "cache", backup, "--force") // the row is gone
			rewritten(d, cache, 3)
		}
	}
	row(cache, key, "SET row mistake", "DEL first")
	began := time.Now()
	job := restoreKilledTo(d, "redis", "late", cache, at[4])
	ends(d, job, "COMPLETE")
	t.Logf("restored in %.1f s, with two ends of the daemon", time.Since(began).Seconds())
	for n, want := range []string{"+OK $1 0 $4 kept", "+OK $1 1 $4 kept", "+OK $1 2 $4 kept", "+OK $1 3 $4 kept"} {
		name := fmt.Sprintf("copy-%d", n)
		services(d, "restore", "cache", "--to", at[n].UTC().Format(time.RFC3339Nano), "--new", name)
		instance := d.First("/v3/service_instances?names=" + name)
		if got := row(instance, keyOf(d, instance, name), "GET row", "GET first"); got != want {
			t.Errorf("%s: got %q; want %q", name, got, want)
		}
		if err := d.Change("DELETE", "/v3/service_credential_bindings/"+d.First("/v3/service_credential_bindings?names="+name), nil); err != nil {
			t.Fatal(err)
		}
		if err := d.Change("DELETE", "/v3/service_instances/"+instance, nil); err != nil {
			t.Fatal(err)
		}
	}
	late := d.First("/v3/service_instances?names=late")
	if got := row(late, keyOf(d, late, "late"), "GET row", "GET first", "SET row written"); got != "+OK $1 4 $4 kept +OK" {
		t.Errorf("got %q", got)
	}
	if got := redis(d, late, fmt.Sprintf("AUTH %s %s", key.Username, key.Password)); !strings.HasPrefix(got, "-WRONGPASS ") {
		t.Errorf("got %q; want the key of another instance refused", got)
	}
	if got := row(cache, key, "GET row"); got != "+OK $7 mistake" {
		t.Errorf("got %q; want the running one as it was", got)
	}
	if err := d.Change("PATCH", "/v3/service_instances/"+cache, e2e.Doc{"parameters": e2e.Doc{"point_in_time_recovery": false}}); err != nil {
		t.Fatal(err)
	}
	if out := services(d, "points", "cache"); !strings.Contains(out, "is not enabled") {
		t.Errorf("got %q", out)
	}
}

// rewritten waits until so many base backups of a Redis were made.
func rewritten(d *e2e.Daemon, instance string, number int) {
	d.T.Helper()
	e2e.Eventually(d.T, time.Minute, func() string {
		if found, _ := filepath.Glob(filepath.Join(d.Dir, "volumes", instance, "disk", "archive", fmt.Sprintf("base-%09d-*", number))); len(found) == 0 {
			return fmt.Sprintf("base backup %d was not made", number)
		}
		return ""
	})
}
