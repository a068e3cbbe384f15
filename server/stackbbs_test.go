package server

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"cupola/runtime/lrp"
	"cupola/server/bbs/bbspb"
	"cupola/store"
)

// TestTheBBSNeedsImages holds that images and stacks that LRPs and tasks of the
// BBS name are neither removed nor collected.
func TestTheBBSNeedsImages(t *testing.T) {
	if os.Getenv("CUPOLA_TEST_ROOT") != "1" {
		t.Skip("needs CUPOLA_TEST_ROOT=1 and root")
	}
	d, c := stackDaemon(t)
	ref, digest := loopbackImage(t)
	quiet := func(StackStep) {}
	for _, name := range []string{"", "mine"} {
		if _, err := c.Pull(t.Context(), StackPull{Reference: ref, Name: name}, quiet); err != nil {
			t.Fatal(err)
		}
	}
	desireRow(t, d, "by-tag", "docker://"+strings.Replace(ref, ":v1", "#v1", 1))
	desireRow(t, d, "by-stack", "preloaded:mine")
	if d, err := c.Inspect(t.Context(), "mine"); err != nil || !slices.Equal(d.Users, []string{"LRP by-stack"}) {
		t.Errorf("got %v, %v", d.Users, err)
	}
	ofAPI := apiStacks{d}
	err := d.store.Read(t.Context(), func(tx *store.Tx) error {
		users, err := ofAPI.Users(tx, "mine")
		if !slices.Equal(users, []string{"LRP by-stack"}) {
			t.Errorf("got %v", users)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	if err := ofAPI.Remove("minifs"); err == nil || !strings.Contains(err.Error(), "part of cupola") {
		t.Errorf("got %v", err)
	}
	if err := ofAPI.Remove("of a row alone"); err != nil {
		t.Error(err)
	}
	if _, err := c.Remove(t.Context(), "mine"); err == nil || !strings.Contains(err.Error(), "stack mine is used through the BBS API: LRP by-stack;") {
		t.Errorf("got %v", err)
	}
	undesire(t, d, "by-stack")
	if err := ofAPI.Remove("mine"); err != nil {
		t.Fatal(err)
	}
	ofAPI.Offer()
	if _, ok := d.roots.Stacks.Get("mine"); ok {
		t.Error("the stack is still there")
	}
	long := time.Now().Add(-time.Hour)
	if err := os.Chtimes(d.path("rootfs", "images", strings.TrimPrefix(digest, "sha256:")+".json"), long, long); err != nil {
		t.Fatal(err)
	}
	stays := func(user string) {
		t.Helper()
		if r, err := c.GC(t.Context(), StackGC{All: true}); err != nil || len(r.Images) > 0 {
			t.Errorf("got %v, %v; want it to stay", r, err)
		}
		if _, err := c.Remove(t.Context(), digest); err == nil || !strings.Contains(err.Error(), "is used through the BBS API: "+user+";") {
			t.Errorf("got %v; want %s", err, user)
		}
		if d, err := c.Inspect(t.Context(), digest); err != nil || !slices.Equal(d.Users, []string{user}) || !d.Image.Pinned {
			t.Errorf("got %+v, %v", d, err)
		}
	}
	stays("LRP by-tag")
	undesire(t, d, "by-tag")
	end := runTask(t, d, "by-digest", "docker://"+strings.TrimSuffix(ref, ":v1")+"@"+digest)
	stays("task by-digest")
	end()
	if r, err := c.GC(t.Context(), StackGC{All: true}); err != nil || len(r.Images) != 1 {
		t.Errorf("got %v, %v; want the image gone", r, err)
	}
}

func desireRow(t *testing.T, d *daemon, guid, rootFS string) {
	t.Helper()
	err := d.store.Write(t.Context(), func(tx *store.Tx) error {
		return tx.InsertBBSDesired(&store.BBSDesired{ProcessGUID: guid, Domain: "tests"}, func(lrp.Tag) ([]byte, error) {
			return proto.Marshal(&bbspb.DesiredLRP{ProcessGuid: guid, RootFs: rootFS})
		})
	})
	if err != nil {
		t.Fatal(err)
	}
}

func undesire(t *testing.T, d *daemon, guid string) {
	t.Helper()
	err := d.store.Write(t.Context(), func(tx *store.Tx) error {
		_, err := tx.DeleteBBSDesired(guid)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// runTask has the rows tell of a task that runs, until end.
func runTask(t *testing.T, d *daemon, guid, rootFS string) (end func()) {
	t.Helper()
	row := &store.BBSTask{GUID: guid, RunGUID: "run-" + guid, Domain: "tests", State: lrp.TaskRunning}
	write := func(do func(tx *store.Tx) error) {
		t.Helper()
		if err := d.store.Write(t.Context(), do); err != nil {
			t.Fatal(err)
		}
	}
	write(func(tx *store.Tx) (err error) {
		if row.Definition, err = proto.Marshal(&bbspb.TaskDefinition{RootFs: rootFS}); err != nil {
			return err
		}
		return tx.InsertBBSTask(row)
	})
	return func() {
		t.Helper()
		write(func(tx *store.Tx) error {
			return tx.ChangeBBSTask(row, func(t *store.BBSTask) { t.State = lrp.TaskCompleted })
		})
	}
}
