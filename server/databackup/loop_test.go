package databackup

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"cupola/runtime/durable"
	"cupola/store"
	"cupola/store/blob"
	"cupola/store/cf"
)

// world is a loop with real rows and blobs, on instances that are texts.
type world struct {
	*Loop
	t     *testing.T
	blobs string // directory

	mu      sync.Mutex
	content map[string]string // by instance
	full    bool              // there is no room for content
	fault   error             // of Dump and Load; nil: there is none
	dumping func()            // is called in Dump
}

func newWorld(t *testing.T) *world {
	t.Helper()
	s, err := store.Open(store.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	w := &world{t: t, blobs: t.TempDir(), content: map[string]string{}, dumping: func() {}}
	blobs, err := blob.Open(w.blobs)
	if err != nil {
		t.Fatal(err)
	}
	w.Loop = New(Config{Store: s, Blobs: blobs, Data: w, Dir: w.blobs, Keep: func() int { return 3 }, Patience: time.Nanosecond})
	return w
}

func (w *world) Used(string) (int64, error) {
	if w.full {
		return 1 << 60, nil
	}
	return 0, nil
}

func (w *world) Dump(_ context.Context, instance string, to io.Writer) (string, error) {
	w.dumping()
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, err := io.WriteString(to, w.content[instance]); err != nil {
		return "", err
	}
	return "Text 1", w.fault
}

func (w *world) Load(_ context.Context, instance, version string, content *os.File) error {
	if _, err := content.Seek(0, io.SeekStart); err != nil {
		return err
	}
	text, err := io.ReadAll(content)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.fault != nil {
		return w.fault
	}
	w.content[instance] = version + ": " + string(text)
	return err
}

func (w *world) write(do func(tx *store.Tx) error) {
	w.t.Helper()
	if err := w.Store.Write(w.t.Context(), do); err != nil {
		w.t.Fatal(err)
	}
}

// instance makes one with a content.
func (w *world) instance(guid, content string) {
	w.content[guid] = content
	w.write(func(tx *store.Tx) error {
		return store.DataInstances.Insert(tx, &cf.DataInstance{Resource: cf.Resource{GUID: guid}, Service: "text", State: cf.DataReady})
	})
}

// ask adds a job with the rows of the backups that it makes.
func (w *world) ask(operation, instance string, work cf.DataWork, made ...string) *cf.Job {
	w.t.Helper()
	text, err := json.Marshal(work)
	if err != nil {
		w.t.Fatal(err)
	}
	j := &cf.Job{Operation: operation, ResourceGUID: instance, ResourceType: "service_instances", State: cf.JobProcessing, Input: string(text)}
	w.write(func(tx *store.Tx) error {
		for _, guid := range made {
			if err := store.DataBackups.Insert(tx, &cf.DataBackup{Resource: cf.Resource{GUID: guid}, InstanceGUID: instance, Service: "text", Reason: cf.BackupRequested, State: cf.BackupProcessing}); err != nil {
				return err
			}
		}
		return store.Jobs.Insert(tx, j)
	})
	return j
}

// backUp asks for a backup and does the job, which must end so; "" for well.
func (w *world) backUp(instance, guid, fault string) {
	w.t.Helper()
	w.done(w.ask(cf.JobBackupInstance, instance, cf.DataWork{Backup: guid}, guid), fault)
}

// done does a job, which must end so.
func (w *world) done(j *cf.Job, fault string) {
	w.t.Helper()
	w.work(w.t.Context(), j)
	w.write(func(tx *store.Tx) (err error) {
		j, err = store.Jobs.Get(tx, j.GUID)
		return err
	})
	switch {
	case fault == "" && j.State != cf.JobComplete:
		w.t.Errorf("got %s %v; want it done", j.State, j.Errors)
	case fault != "" && (j.State != cf.JobFailed || len(j.Errors) != 1 || j.Errors[0].Detail != fault):
		w.t.Errorf("got %s %v; want it failed by %q", j.State, j.Errors, fault)
	}
}

// backups are the GUIDs of those of an instance.
func (w *world) backups(instance string) (guids string) {
	w.write(func(tx *store.Tx) error {
		all, _, err := store.DataBackups.List(tx, store.Query{Where: map[string][]string{"service_instance_guids": {instance}}, Order: "created_at"})
		for _, b := range all {
			guids += b.GUID + " "
		}
		return err
	})
	return strings.TrimSpace(guids)
}

// TestBackupAndRestore restores a backup into its instance and into another one; the
// newest backups are kept, and the one that is restored.
func TestBackupAndRestore(t *testing.T) {
	w := newWorld(t)
	w.instance("i", "first")
	w.instance("o", "other")
	w.backUp("i", "b1", "")
	for _, text := range []string{"secret", "third"} {
		w.content["i"] = text
		w.backUp("i", "b-"+text, "")
	}
	w.done(w.ask(cf.JobRestoreInstance, "i", cf.DataWork{Backup: "b1", Safety: "s1"}, "s1"), "")
	if w.content["i"] != "Text 1: first" || w.backups("i") != "b1 b-secret b-third s1" {
		t.Errorf("got %q with backups %q", w.content["i"], w.backups("i"))
	}
	w.done(w.ask(cf.JobRestoreInstance, "o", cf.DataWork{Backup: "s1", Safety: "s2"}, "s2"), "")
	if w.content["o"] != "Text 1: third" || w.backups("o") != "s2" {
		t.Errorf("got %q with backups %q", w.content["o"], w.backups("o"))
	}
	w.backUp("i", "b5", "")
	if got := w.backups("i"); got != "b-third s1 b5" {
		t.Errorf("got %q; want the newest three", got)
	}
	err := filepath.WalkDir(w.blobs, func(name string, _ os.DirEntry, err error) error {
		text, _ := os.ReadFile(name)
		if bytes.Contains(text, []byte("secret")) {
			t.Errorf("%s is not sealed", name)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestFailures makes backups and restores fail: what was there stays, and nothing is left
// of what was not made.
func TestFailures(t *testing.T) {
	w := newWorld(t)
	w.instance("i", "first")
	w.backUp("i", "b1", "")
	w.write(func(tx *store.Tx) error {
		if err := store.Orgs.Insert(tx, &cf.Org{Resource: cf.Resource{GUID: "org"}, Name: "o"}); err != nil {
			return err
		}
		if err := store.Spaces.Insert(tx, &cf.Space{Resource: cf.Resource{GUID: "space"}, Name: "s", OrgGUID: "org"}); err != nil {
			return err
		}
		return store.ServiceInstances.Insert(tx, &cf.ServiceInstance{Resource: cf.Resource{GUID: "i"}, Name: "i", Type: cf.UserProvided, SpaceGUID: "space", LastOperation: cf.Begin(cf.OpUpdate, cf.OpInProgress, tx.Now)})
	})
	restore := func(backup, fault string) {
		t.Helper()
		w.done(w.ask(cf.JobRestoreInstance, "i", cf.DataWork{Backup: backup, Safety: "s"}, "s"), fault)
		w.write(func(tx *store.Tx) error {
			i, err := store.ServiceInstances.Get(tx, "i")
			if err == nil && (i.LastOperation.State != cf.OpFailed || i.LastOperation.Description != fault) {
				t.Errorf("got %+v; want %q", i.LastOperation, fault)
			}
			return err
		})
	}
	w.fault = errors.New("the database refused")
	w.backUp("i", "b2", "backup could not be completed: the database refused")
	restore("b1", "restore could not be completed: the database refused")
	w.fault = &os.PathError{Op: "write", Path: "/data", Err: syscall.ENOSPC}
	w.backUp("i", "b2", "backup could not be completed: there is no room for it on this machine's disk")
	w.fault, w.full = nil, true
	w.backUp("i", "b2", "backup could not be completed: there is no room for it on this machine's disk")
	w.full = false
	w.dumping = func() { panic("broken") }
	w.backUp("i", "b2", "backup could not be completed: panic: broken")
	w.dumping = func() {
		w.write(func(tx *store.Tx) error { return store.DataBackups.Delete(tx, "b2") })
	}
	w.backUp("i", "b2", "backup could not be completed: the backup or its service instance was deleted meanwhile")
	w.dumping = func() {}
	if w.content["i"] != "first" || w.backups("i") != "b1" {
		t.Errorf("got %q with backups %q; want them as before", w.content["i"], w.backups("i"))
	}
	if left, err := os.ReadDir(filepath.Join(w.blobs, "tmp")); err != nil || len(left) > 0 {
		t.Errorf("got %v, %v; want no files left", left, err)
	}
}

// TestInterrupted ends a run in the middle of a backup, as a stop of the daemon does: the
// next one makes it.
func TestInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.instance("i", "first")
		ctx, cancel := context.WithCancel(t.Context())
		w.dumping = cancel
		j := w.ask(cf.JobBackupInstance, "i", cf.DataWork{Backup: "b"}, "b")
		if err := w.Run(ctx); err != nil {
			t.Fatal(err)
		}
		ctx, cancel = context.WithCancel(t.Context())
		defer cancel()
		w.dumping = func() {}
		ended := make(chan error, 1)
		go func() { ended <- w.Run(ctx) }()
		synctest.Wait()
		w.write(func(tx *store.Tx) error {
			now, err := store.Jobs.Get(tx, j.GUID)
			if err == nil && now.State != cf.JobComplete {
				t.Errorf("got %s %v; want it done", now.State, now.Errors)
			}
			return err
		})
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestSealed reads what was sealed, and refuses each file that was changed, cut or
// put together from others.
func TestSealed(t *testing.T) {
	key := strings.Repeat("1f", 32)
	for _, size := range []int{0, 1, chunk - 1, chunk, chunk + 1, 3*chunk + 5} {
		plain := make([]byte, size)
		for i := range plain {
			plain[i] = byte(rand.Uint32())
		}
		var sealed bytes.Buffer
		s, err := newSealer(&sealed, key)
		if err != nil {
			t.Fatal(err)
		}
		for rest := plain; len(rest) > 0; {
			n := min(len(rest), 1000)
			if _, err := s.Write(rest[:n]); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		if err := unseal(&got, bytes.NewReader(sealed.Bytes()), key); err != nil || !bytes.Equal(got.Bytes(), plain) || s.size != int64(size) {
			t.Errorf("%d bytes: got %d and %d, %v", size, got.Len(), s.size, err)
		}
		changed := bytes.Clone(sealed.Bytes())
		changed[len(changed)/2] ^= 1
		full := chunk + overhead
		for what, file := range map[string][]byte{
			"changed": changed, "empty": nil, "cut": sealed.Bytes()[:sealed.Len()-1], "longer": append(bytes.Clone(sealed.Bytes()), 0),
			"without its end": sealed.Bytes()[:min(full, sealed.Len()-1)], "twice": bytes.Repeat(sealed.Bytes(), 2),
		} {
			if err := unseal(io.Discard, bytes.NewReader(file), key); !errors.Is(err, durable.ErrDamaged) {
				t.Errorf("%d bytes, %s: got %v; want it damaged", size, what, err)
			}
		}
		if err := unseal(io.Discard, bytes.NewReader(sealed.Bytes()), strings.Repeat("00", 32)); !errors.Is(err, durable.ErrDamaged) {
			t.Errorf("%d bytes, another key: got %v", size, err)
		}
	}
}
