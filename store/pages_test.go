package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cupola/store/cf"
)

// replica is the file of a database that what a Pages takes is applied to.
type replica struct {
	t     *testing.T
	s     *Store
	pages *Pages
	file  string
	n     int
}

func replicate(t *testing.T, s *Store) *replica {
	t.Helper()
	pages, err := s.FollowPages(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pages.Close(context.Background()) })
	dir := t.TempDir()
	r := &replica{t: t, s: s, pages: pages, file: filepath.Join(dir, DatabaseFile)}
	if err := os.WriteFile(r.file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	key, err := os.ReadFile(filepath.Join(s.dir, KeyFile))
	if err := errors.Join(err, os.WriteFile(filepath.Join(dir, KeyFile), key, 0o600)); err != nil {
		t.Fatal(err)
	}
	return r
}

// next applies what changed.
func (r *replica) next(whole bool) Taken {
	r.t.Helper()
	r.n++
	part := filepath.Join(filepath.Dir(r.file), fmt.Sprint("part", r.n))
	taken, err := r.pages.Take(context.Background(), part, nil, whole)
	if err != nil {
		r.t.Fatal(err)
	}
	if taken.Count == 0 {
		if _, err := os.Stat(part); err == nil {
			r.t.Error("nothing changed, and there is a file")
		}
		return taken
	}
	text, err := os.ReadFile(part)
	if err == nil && int64(len(text)) != taken.Bytes() {
		err = fmt.Errorf("the file has %d bytes instead of %d", len(text), taken.Bytes())
	}
	if err := errors.Join(err, ApplyPages(r.file, taken.PageSet, bytes.NewReader(text))); err != nil {
		r.t.Fatal(err)
	}
	return taken
}

// same compares the replica with the database, which nobody may write to.
func (r *replica) same() {
	r.t.Helper()
	whole := filepath.Join(r.t.TempDir(), "whole")
	pages, err := r.s.FollowPages(context.Background())
	if err != nil {
		r.t.Fatal(err)
	}
	_, err = pages.Take(context.Background(), whole, nil, false)
	want, rerr := os.ReadFile(whole)
	got, gerr := os.ReadFile(r.file)
	if err := errors.Join(err, rerr, gerr, pages.Close(context.Background())); err != nil {
		r.t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		r.t.Fatalf("the replica of %d bytes differs from the database of %d", len(got), len(want))
	}
	if _, err := Inspect(context.Background(), filepath.Dir(r.file)); err != nil {
		r.t.Fatal(err)
	}
}

// TestPagesFollow has three write without a pause, far more than the write-ahead log may
// hold, and take back and delete, while another takes what changed: that must be sound at
// each moment, and the same in the end.
func TestPagesFollow(t *testing.T) {
	s := openTest(t)
	r := replicate(t, s)
	r.next(false)
	ctx, stop := context.WithCancel(t.Context())
	var writing sync.WaitGroup
	for _, name := range []string{"a", "b", "c"} {
		writing.Go(func() {
			for n := range 120 {
				value := strings.Repeat(name, rand.IntN(200<<10))
				err := s.Write(t.Context(), func(tx *Tx) error {
					if err := Settings.Set(tx, fmt.Sprint(name, n%5), value); err != nil || n%7 > 0 {
						return err
					}
					return errors.New("taken back")
				})
				if err != nil && n%7 > 0 {
					t.Error(err)
				}
			}
		})
	}
	go func() { writing.Wait(); stop() }()
	for ctx.Err() == nil {
		r.next(false)
		if err := checkReplica(r.file); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(rand.IntN(30)) * time.Millisecond)
	}
	r.next(false)
	r.same()
	if taken := r.next(false); taken.Count != 0 || taken.At.IsZero() {
		t.Errorf("nothing changed, and it took %+v", taken.PageSet)
	}
	write(t, s, insertOrg("last"))
	if taken := r.next(false); taken.Whole || len(taken.Numbers) == 0 || len(taken.Numbers) > 20 {
		t.Errorf("an org took %+v", taken.PageSet)
	}
	r.same()
}

// checkReplica checks a database's pages, as those of a copy.
func checkReplica(file string) error {
	_, err := checkFile(context.Background(), file)
	return err
}

// TestPagesSurviveFaults lets a Take fail, the log be damaged, and the daemon begin again:
// nothing is left out.
func TestPagesSurviveFaults(t *testing.T) {
	s := openTest(t)
	r := replicate(t, s)
	r.next(false)
	write(t, s, insertOrg("one"))
	there := filepath.Join(t.TempDir(), "there")
	if err := os.WriteFile(there, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := r.pages.Take(t.Context(), there, nil, false); err == nil {
		t.Fatal("it wrote over a file")
	}
	r.next(false)
	r.same()
	s.pages.salt = "damaged!"
	s.pages.file += "-gone"
	write(t, s, insertOrg("two"))
	if taken := r.next(false); !taken.Whole {
		t.Errorf("the log cannot be read, and it took %+v", taken.PageSet)
	}
	s.pages.file = strings.TrimSuffix(s.pages.file, "-gone")
	r.next(false)
	r.same()
	write(t, s, insertOrg("three"))
	if taken := r.next(false); taken.Whole {
		t.Error("the log can be read again, and it took all")
	}
	r.same()
}

// TestTakenNamesWhatPagesName lists the blobs and images as of the pages.
func TestTakenNamesWhatPagesName(t *testing.T) {
	s := openTest(t)
	r := replicate(t, s)
	const image = "docker://reg.io/a@sha256:1"
	_, _, app := seed(t, s)
	d := &cf.Droplet{AppGUID: app.GUID, State: cf.DropletStaged, Digest: "blob", Lifecycle: cf.Lifecycle{Image: &cf.StackImage{Reference: image}}}
	write(t, s, func(tx *Tx) error { return Droplets.Insert(tx, d) })
	taken := r.next(false)
	if !slices.Equal(taken.Images, []string{image}) || !slices.Equal(taken.Blobs, []string{"blob"}) {
		t.Errorf("got the images %v and the blobs %v", taken.Images, taken.Blobs)
	}
	write(t, s, func(tx *Tx) error { return Droplets.Delete(tx, d.GUID) })
	if taken := r.next(false); len(taken.Images)+len(taken.Blobs) > 0 {
		t.Errorf("got the images %v and the blobs %v of nothing", taken.Images, taken.Blobs)
	}
}

// TestPageSetsAreChecked refuses what no Take wrote.
func TestPageSetsAreChecked(t *testing.T) {
	file := filepath.Join(t.TempDir(), "db")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, set := range map[string]PageSet{
		"none":        {},
		"a size":      {PageSize: 1000, Count: 1},
		"beyond":      {PageSize: 4096, Count: 2, Numbers: []uint32{3}},
		"zero":        {PageSize: 4096, Count: 2, Numbers: []uint32{0}},
		"twice":       {PageSize: 4096, Count: 2, Numbers: []uint32{1, 1}},
		"too few":     {PageSize: 4096, Count: 2, Numbers: []uint32{1}},
		"whole and 1": {PageSize: 4096, Count: 2, Whole: true, Numbers: []uint32{1}},
	} {
		if err := ApplyPages(file, set, strings.NewReader("short")); err == nil {
			t.Errorf("%s was applied", name)
		}
	}
}
