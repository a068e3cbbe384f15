package databroker

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cupola/store"
	"cupola/store/cf"
)

const wal = "00000001000000000000000"

// archived has an archive of an instance: base backups at 10:00 and at 12:00, the second of which begins with the segment 3.
func (w *world) archived(guid string) {
	w.t.Helper()
	for name, content := range map[string]string{
		archiveOn: "", "archive/base-000000001-20261101T100000Z/start": wal + "1\n", "archive/base-000000001-20261101T100000Z/base.tar.gz": "first",
		"archive/base-000000002-20261101T120000Z/start": wal + "3\n", "archive/base-000000002-20261101T120000Z/base.tar.gz": "second", "archive/new/base.tar.gz": "half",
		"archive/wal/" + wal + "1.gz": "one", "archive/wal/" + wal + "3.gz": "three", "archive/wal/" + wal + "3.00000028.backup.gz": "label",
		"pg/pg_wal/" + wal + "2": "two", "pg/pg_wal/" + wal + "4": "four", "pg/pg_wal/archive_status/" + wal + "3.done": "",
	} {
		file := filepath.Join(w.files, guid, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			w.t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			w.t.Fatal(err)
		}
	}
}

// TestRestoreToAPointIsChecked holds what is refused before anything is made.
func TestRestoreToAPointIsChecked(t *testing.T) {
	w := newWorld(t)
	w.ready("source")
	w.write(func(tx *store.Tx) error {
		org := &cf.Org{Name: "o"}
		if err := store.Orgs.Insert(tx, org); err != nil {
			return err
		}
		if err := store.Spaces.Insert(tx, &cf.Space{Resource: cf.Resource{GUID: "s"}, Name: "s", OrgGUID: org.GUID}); err != nil {
			return err
		}
		// Only its space is looked at: one of a broker would need a plan.
		return store.ServiceInstances.Insert(tx, &cf.ServiceInstance{Resource: cf.Resource{GUID: "source"}, Name: "notes", Type: cf.UserProvided, SpaceGUID: "s"})
	})
	ask := func(parameters, space string, want int) string {
		t.Helper()
		body := strings.Replace(strings.Replace(provisionBody, "{", `{"parameters": `+parameters+`, `, 1), `"space_guid": "s"`, `"space_guid": "`+space+`"`, 1)
		said, _ := w.ask("PUT", "/v2/service_instances/copy?"+async, body, want)["description"].(string)
		return said
	}
	restore := func(of, before string) string {
		return `{"restore_from_point_in_time_of": "` + of + `", "restore_from_point_in_time_before": "` + before + `"}`
	}
	late := "2026-11-01T13:00:00Z"
	if got := ask(restore("source", late), "s", 400); !strings.Contains(got, "is not enabled") {
		t.Errorf("got %q", got)
	}
	w.archived("source")
	for _, c := range []struct{ parameters, space, want string }{
		{`{"a": 1}`, "s", `unknown field "a"; postgres takes point_in_time_recovery`},
		{`{"restore_from_point_in_time_of": "source"}`, "s", "give both parameters"},
		{restore("source", "noon"), "s", "a time like"},
		{restore("other", late), "s", `no service instance of postgres with the plan small and the GUID "other"`},
		{restore("source", late), "elsewhere", "no service instance of postgres"},
		{restore("source", "2999-01-01T00:00:00Z"), "s", "is in the future"},
		{restore("source", "2026-11-01T09:59:59Z"), "s", "the first one is 2026-11-01T10:00:00Z"},
	} {
		if got := ask(c.parameters, c.space, 400); !strings.Contains(got, c.want) {
			t.Errorf("%s in %s: got %q; want %q", c.parameters, c.space, got, c.want)
		}
	}
	source := w.row("source")
	source.TLSRequired = true
	w.write(func(tx *store.Tx) error { return store.DataInstances.Update(tx, source) })
	ask(restore("source", late), "s", 202)
	ask(restore("source", late), "s", 202)
	if !w.row("copy").TLSRequired {
		t.Error("got a copy that does not require TLS, as its source does")
	}
	if got := startTime(w.row("copy"), time.Second); got != recoverTimeout {
		t.Errorf("got %s to start in; want %s", got, recoverTimeout)
	}
	if said, _ := w.ask("PATCH", "/v2/service_instances/source?"+async, `{"service_id": "cupola-postgres", "parameters": `+restore("source", late)+`}`, 400)["description"].(string); !strings.Contains(said, "only a new instance") {
		t.Errorf("got %q", said)
	}
}

// TestSeed holds what a restore copies: the newest base backup of before the time, and the log since its beginning.
func TestSeed(t *testing.T) {
	w := newWorld(t)
	w.archived("source")
	p, err := w.points(&cf.DataInstance{Resource: cf.Resource{GUID: "source"}})
	if err != nil || len(p.bases) != 2 {
		t.Fatalf("got %v, %v; want two base backups", p.bases, err)
	}
	before := time.Date(2026, 11, 1, 12, 0, 0, 5000, time.FixedZone("", 3600))
	for n, c := range []struct {
		before time.Time
		want   map[string]string
	}{
		{before, map[string]string{"to": "2026-11-01 11:00:00.000005+00\n", "base.tar.gz": "first", "wal/" + wal + "1.gz": "one", "wal/" + wal + "3.gz": "three", "pg_wal/" + wal + "2": "two", "pg_wal/" + wal + "4": "four"}},
		{before.Add(time.Hour), map[string]string{"to": "2026-11-01 12:00:00.000005+00\n", "base.tar.gz": "second", "wal/" + wal + "3.gz": "three", "pg_wal/" + wal + "4": "four"}},
	} {
		base, err := p.base(c.before)
		if err != nil {
			t.Fatal(err)
		}
		f, err := w.Temp()
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		err = w.Read("source", func(root *os.Root) error {
			return writeSeed(t.Context(), root, postgres{}, archiveDir+"/"+base, c.before, f)
		})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, filesOf(t, f)); diff != "" {
			t.Errorf("%d: %s", n, diff)
		}
	}
}

// TestPipesHoldUpNoRestore has pipes where the server's processes had files and directories.
func TestPipesHoldUpNoRestore(t *testing.T) {
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for _, name := range []string{"start", archiveDir} {
		if err := syscall.Mkfifo(filepath.Join(dir, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := writeSeed(t.Context(), root, postgres{}, ".", time.Now(), io.Discard); err == nil || err.Error() != "./start is not a file" {
		t.Errorf("got %v", err)
	}
	if _, err := namesIn(root, archiveDir); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("got %v", err)
	}
}

// filesOf are the files of a seed's tar.
func filesOf(t *testing.T, f *os.File) map[string]string {
	t.Helper()
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for r := tar.NewReader(f); ; {
		h, err := r.Next()
		if err == io.EOF {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			files[strings.TrimPrefix(h.Name, seedDir+"/")] = string(text)
		}
	}
}
