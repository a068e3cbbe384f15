package admin

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"cupola/runtime/lrp"
	"cupola/server/admin/stack"
	"cupola/server/admin/steps"
	"cupola/server/bbs/bbspb"
	"cupola/store"
)

// TestTheBBSNeedsImages holds that images and stacks that LRPs and tasks of the
// BBS name are neither removed nor collected.
func TestTheBBSNeedsImages(t *testing.T) {
	if os.Getenv("CUPOLA_TEST_ROOT") != "1" {
		t.Skip("needs CUPOLA_TEST_ROOT=1 and root")
	}
	d := startDaemon(t)
	ref, digest := loopbackImage(t)
	var quiet steps.Func
	for _, name := range []string{"", "mine"} {
		if _, err := d.pulled(t, stack.PullRequest{Reference: ref, Name: name}, quiet); err != nil {
			t.Fatal(err)
		}
	}
	desireRow(t, d, "by-tag", "docker://"+strings.Replace(ref, ":v1", "#v1", 1))
	desireRow(t, d, "by-stack", "preloaded:mine")
	if i, err := d.inspected(t, "mine"); err != nil || !slices.Equal(i.Users, []string{"LRP by-stack"}) {
		t.Errorf("got %v, %v", i.Users, err)
	}
	ofAPI := stack.ForAPI{Library: d.Library}
	err := d.Store.Read(t.Context(), func(tx *store.Tx) error {
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
	if _, err := d.removed(t, "mine"); err == nil || !strings.Contains(err.Error(), "stack mine is used through the BBS API: LRP by-stack;") {
		t.Errorf("got %v", err)
	}
	undesire(t, d, "by-stack")
	if err := ofAPI.Remove("mine"); err != nil {
		t.Fatal(err)
	}
	ofAPI.Offer()
	if _, ok := d.Roots.Stacks.Get("mine"); ok {
		t.Error("the stack is still there")
	}
	long := time.Now().Add(-time.Hour)
	if err := os.Chtimes(d.Dir.Path("rootfs", "images", strings.TrimPrefix(digest, "sha256:")+".json"), long, long); err != nil {
		t.Fatal(err)
	}
	stays := func(user string) {
		t.Helper()
		if r, err := d.collected(t, stack.GCRequest{All: true}); err != nil || len(r.Images) > 0 {
			t.Errorf("got %v, %v; want it to stay", r, err)
		}
		if _, err := d.removed(t, digest); err == nil || !strings.Contains(err.Error(), "is used through the BBS API: "+user+";") {
			t.Errorf("got %v; want %s", err, user)
		}
		if i, err := d.inspected(t, digest); err != nil || !slices.Equal(i.Users, []string{user}) || !i.Image.Pinned {
			t.Errorf("got %+v, %v", i, err)
		}
	}
	stays("LRP by-tag")
	undesire(t, d, "by-tag")
	end := runTask(t, d, "by-digest", "docker://"+strings.TrimSuffix(ref, ":v1")+"@"+digest)
	stays("task by-digest")
	end()
	if r, err := d.collected(t, stack.GCRequest{All: true}); err != nil || len(r.Images) != 1 {
		t.Errorf("got %v, %v; want the image gone", r, err)
	}
}

func desireRow(t *testing.T, d testDaemon, guid, rootFS string) {
	t.Helper()
	err := d.Store.Write(t.Context(), func(tx *store.Tx) error {
		return store.BBSDesireds.Insert(tx, &store.BBSDesired{ProcessGUID: guid, Domain: "tests"}, func(lrp.Tag) ([]byte, error) {
			return proto.Marshal(&bbspb.DesiredLRP{ProcessGuid: guid, RootFs: rootFS})
		})
	})
	if err != nil {
		t.Fatal(err)
	}
}

func undesire(t *testing.T, d testDaemon, guid string) {
	t.Helper()
	err := d.Store.Write(t.Context(), func(tx *store.Tx) error {
		_, err := store.BBSDesireds.Delete(tx, guid)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// runTask makes the rows tell of a task that runs, until end.
func runTask(t *testing.T, d testDaemon, guid, rootFS string) (end func()) {
	t.Helper()
	row := &store.BBSTask{GUID: guid, RunGUID: "run-" + guid, Domain: "tests", State: lrp.TaskRunning}
	write := func(do func(tx *store.Tx) error) {
		t.Helper()
		if err := d.Store.Write(t.Context(), do); err != nil {
			t.Fatal(err)
		}
	}
	write(func(tx *store.Tx) (err error) {
		if row.Definition, err = proto.Marshal(&bbspb.TaskDefinition{RootFs: rootFS}); err != nil {
			return err
		}
		return store.BBSTasks.Insert(tx, row)
	})
	return func() {
		t.Helper()
		write(func(tx *store.Tx) error {
			return store.BBSTasks.Change(tx, row, func(t *store.BBSTask) { t.State = lrp.TaskCompleted })
		})
	}
}
