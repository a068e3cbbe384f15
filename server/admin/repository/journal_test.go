package repository

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"filippo.io/age"

	"cupola/server/admin/repository/storage"
)

// part adds a part that follows one to the journal of a backup.
func (w *world) part(base, after, content string) Saved {
	w.t.Helper()
	saved, err := w.Journal(base).Save(w.t.Context(), SaveOptions{Version: "1", Recipients: []age.Recipient{w.key.Recipient()}, After: after}, writing([]byte(content)))
	if err != nil {
		w.t.Fatal(err)
	}
	return saved
}

// reached are the contents of a backup and the parts up to a time.
func (w *world) reached(name string, to time.Time) (contents []string, r Reach) {
	w.t.Helper()
	r, err := w.Reach(w.t.Context(), name, to)
	if err != nil {
		w.t.Fatal(err)
	}
	load := func(of *Repository, s Snapshot) {
		var out bytes.Buffer
		if err := of.Load(w.t.Context(), s, []age.Identity{w.key}, &out); err != nil {
			w.t.Fatal(err)
		}
		contents = append(contents, out.String())
	}
	load(w.Repository, r.Base)
	for _, p := range r.Parts {
		load(w.Journal(r.Base.Name), p)
	}
	return contents, r
}

// TestPartsFollowABackup finds the newest state, and earlier ones, and leaves out what is damaged.
func TestPartsFollowABackup(t *testing.T) {
	w := newWorld(t)
	base := w.save([]byte("base")).Name
	one := w.part(base, "", "one")
	two := w.part(base, one.Name, "two")
	three := w.part(base, one.Name, "three") // of a higher level
	if one.Name >= two.Name || two.Name >= three.Name {
		t.Fatalf("the parts %s, %s and %s are not in order", one.Name, two.Name, three.Name)
	}
	for _, c := range []struct {
		to   time.Time
		want []string
	}{
		{time.Time{}, []string{"base", "one", "three"}},
		{three.Created, []string{"base", "one", "three"}},
		{two.Created, []string{"base", "one", "two"}},
		{one.Created, []string{"base", "one"}},
	} {
		if got, r := w.reached("latest", c.to); !slices.Equal(got, c.want) || r.Left != nil {
			t.Errorf("to %v: got %q (%v); want %q", c.to, got, r.Left, c.want)
		}
	}
	if damaged, err := w.Verify(t.Context(), func(int64, int64) {}); err != nil || len(damaged) > 0 {
		t.Errorf("verify: %v (%v)", damaged, err)
	}
	w.cut(base, three)
	if got, r := w.reached("latest", time.Time{}); !slices.Equal(got, []string{"base", "one", "two"}) || r.Left == nil || !strings.Contains(r.Left.Error(), "damaged") {
		t.Errorf("with the last one damaged: got %q (%v)", got, r.Left)
	}
	if damaged, err := w.Verify(t.Context(), func(int64, int64) {}); err != nil || len(damaged) != 1 || damaged[base+"/"+three.Name] == nil {
		t.Errorf("verify: %v (%v)", damaged, err)
	}
	w.cut(base, one)
	if got, r := w.reached(base, time.Time{}); !slices.Equal(got, []string{"base"}) || r.Left == nil {
		t.Errorf("with the first one damaged: got %q (%v)", got, r.Left)
	}
}

// TestAPartIsAsOfItsTime names a part by when its state was taken, and not by when it got here: a
// restore to a time has nothing that came later, and no part claims what came before it.
func TestAPartIsAsOfItsTime(t *testing.T) {
	w := newWorld(t)
	base := w.save([]byte("base"))
	at := base.Created.Add(time.Hour + 300*time.Millisecond)
	saved, err := w.Journal(base.Name).Save(t.Context(), SaveOptions{Version: "1", Recipients: []age.Recipient{w.key.Recipient()}, At: at}, writing([]byte("one")))
	if want := base.Created.Add(time.Hour + time.Second); err != nil || !saved.Created.Equal(want) || saved.Name != want.Format(stamp) {
		t.Errorf("got %s of %v (%v); want %v", saved.Name, saved.Created, err, want)
	}
	if got, _ := w.reached(base.Name, base.Created.Add(time.Hour)); !slices.Equal(got, []string{"base"}) {
		t.Errorf("restored %q; want nothing that is later", got)
	}
}

// TestManyPartsFollowADamagedOne reads each part once, and says what is damaged once.
func TestManyPartsFollowADamagedOne(t *testing.T) {
	w := newWorld(t)
	base := w.save([]byte("base")).Name
	first := w.part(base, "", "first")
	after := first.Name
	for n := range 8 {
		after = w.part(base, after, fmt.Sprint("part", n)).Name
	}
	w.cut(base, first)
	counted := &counting{Storage: w.Repository.storage}
	w.Repository.storage = counted
	got, r := w.reached(base, time.Time{})
	if !slices.Equal(got, []string{"base"}) || r.Left == nil || strings.Count(r.Left.Error(), "damaged") != 1 {
		t.Errorf("got %q (%v)", got, r.Left)
	}
	if want := 2*9 + 2; counted.gets > want { // the snapshot and the chunk of each
		t.Errorf("%d objects were read; want %d", counted.gets, want)
	}
}

// counting counts the objects that are read.
type counting struct {
	storage.Storage
	gets int
}

func (c *counting) Get(ctx context.Context, name string, limit int64) ([]byte, error) {
	c.gets++
	return c.Storage.Get(ctx, name, limit)
}

// cut damages the chunk of a part.
func (w *world) cut(base string, s Saved) {
	w.t.Helper()
	found, _ := filepath.Glob(filepath.Join(w.dir, journals, base, chunks, "*", s.Chunks[0].ID+".*"))
	if len(found) != 1 {
		w.t.Fatalf("got %v", found)
	}
	if err := os.Truncate(found[0], 10); err != nil {
		w.t.Fatal(err)
	}
}

// TestJournalsGoWithTheirBackups keeps the journals of the last backups, and no folder of another.
func TestJournalsGoWithTheirBackups(t *testing.T) {
	w := newWorld(t)
	var bases []string
	for range 3 {
		base := w.save([]byte("base")).Name
		w.part(base, "", "part of "+base)
		bases = append(bases, base)
	}
	if _, err := w.Prune(t.Context(), Keep{Last: 2, Daily: 9}); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(filepath.Join(w.dir, journals))
	if err != nil || len(left) != 2 || left[0].Name() != bases[1] || left[1].Name() != bases[2] {
		t.Errorf("left %v of %v (%v)", left, bases, err)
	}
}

// TestABackupThatIsMadeHidesNoPart restores the newest state, and to a time, while no part follows the newest backup yet: parts
// follow the one before until one does.
func TestABackupThatIsMadeHidesNoPart(t *testing.T) {
	w := newWorld(t)
	base := w.save([]byte("base")).Name
	next := w.save([]byte("next"))
	w.part(base, "", "one")
	later := w.part(base, "", "two")
	if !later.Created.After(next.Created) {
		later = w.part(base, "", "three")
	}
	for _, to := range []time.Time{later.Created, {}} {
		if got, _ := w.reached("latest", to); got[0] != "base" || len(got) != 2 {
			t.Errorf("to %v: got %q", to, got)
		}
	}
	if _, err := w.Reach(t.Context(), "latest", next.Created.Add(-time.Hour)); err == nil || !strings.Contains(err.Error(), "there is no backup from") {
		t.Errorf("before all: %v", err)
	}
	if _, err := w.Reach(t.Context(), next.Name, next.Created.Add(-time.Second)); err == nil || !strings.Contains(err.Error(), "give an earlier one") {
		t.Errorf("before the backup: %v", err)
	}
}

// TestHalvesGo removes what a part left that was killed when the next one is sent, and what a backup left a day later. Who only
// reads removes nothing.
func TestHalvesGo(t *testing.T) {
	w := newWorld(t)
	base := w.save([]byte("base")).Name
	half := func(age time.Duration, parts ...string) string {
		t.Helper()
		file := filepath.Join(append([]string{w.dir}, parts...)...) + ".half"
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte("ha"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(file, time.Now(), time.Now().Add(-age)); err != nil {
			t.Fatal(err)
		}
		return file
	}
	young, old := half(0, chunks, "ab", "young"), half(2*orphanAge, chunks, "ab", "old")
	snapshot := half(2*orphanAge, snapshots, "20260101T000000Z.json")
	inJournal := []string{half(0, journals, base, chunks, "ab", "x"), half(0, journals, base, snapshots, "20260101T000000Z.json")}
	reader, err := Open(t.Context(), w.storage())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := reader.Reach(t.Context(), "latest", time.Time{}); err != nil {
		t.Fatal(err)
	}
	if damaged, err := reader.Verify(t.Context(), func(int64, int64) {}); err != nil || len(damaged) > 0 {
		t.Errorf("verify: %v (%v)", damaged, err)
	}
	there := func(want bool, files ...string) {
		t.Helper()
		for _, file := range files {
			if _, err := os.Stat(file); (err == nil) != want {
				t.Errorf("%s: got %v; want that it is there: %v", file, err, want)
			}
		}
	}
	there(true, append(inJournal, young, old, snapshot)...)
	w.part(base, "", "one")
	there(false, inJournal...)
	there(true, young, old, snapshot)
	if _, err := w.Prune(t.Context(), Keep{}); err != nil {
		t.Fatal(err)
	}
	there(true, young)
	there(false, old, snapshot)
}

// listing calls then once, after it listed something of a journal.
type listing struct {
	storage.Storage
	then func()
}

func (l *listing) List(ctx context.Context, folder string, f func(storage.Object) error) error {
	err := l.Storage.List(ctx, folder, f)
	if then := l.then; then != nil && strings.HasPrefix(folder, journals) {
		l.then = nil
		then()
	}
	return err
}

// TestVerifyBesideADaemon verifies while a part is sent, and while a backup is removed with its journal: none is damaged.
func TestVerifyBesideADaemon(t *testing.T) {
	w := newWorld(t)
	base := w.save([]byte("base")).Name
	w.part(base, "", "one")
	for what, then := range map[string]func(){
		"sent":    func() { w.part(base, "", "two") },
		"removed": func() { _ = os.RemoveAll(filepath.Join(w.dir, journals)) },
	} {
		reader, err := Open(t.Context(), &listing{w.storage(), then})
		if err != nil {
			t.Fatal(err)
		}
		if damaged, err := reader.Verify(t.Context(), func(int64, int64) {}); err != nil || len(damaged) > 0 {
			t.Errorf("%s: %v (%v)", what, damaged, err)
		}
	}
}
