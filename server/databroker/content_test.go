package databroker

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cupola/store"
	"cupola/store/cf"
)

// contents are what is in the directory of contents.
func (w *world) contents() (names []string) {
	w.t.Helper()
	entries, err := os.ReadDir(w.Content)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		w.t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// delivered is a content that was brought.
func (w *world) delivered(text string) Content {
	w.t.Helper()
	c, err := NewContent(w.Content)
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := c.WriteString(text); err != nil {
		w.t.Fatal(err)
	}
	return c
}

// TestRestoreFromContent makes an instance of a content, which only that one can have.
func TestRestoreFromContent(t *testing.T) {
	w := newWorld(t)
	w.Content = filepath.Join(t.TempDir(), "contents")
	c := w.delivered("the files")
	with := func(parameters string) string {
		return strings.Replace(provisionBody, "{", `{"parameters": `+parameters+`, `, 1)
	}
	body := with(`{"restore_from_content": "` + c.ID + `"}`)
	for _, wrong := range []string{`{"restore_from_content": "../x"}`, `{"restore_from_content": "OTHER"}`, `{"restore_from_content": "` + c.ID + `", "point_in_time_recovery": true}`} {
		w.ask("PUT", "/v2/service_instances/i?"+async, with(wrong), 400)
	}
	redis := strings.ReplaceAll(with(`{"restore_from_content": "NONE"}`), "postgres", "redis")
	if said, _ := w.ask("PUT", "/v2/service_instances/i?"+async, redis, 400)["description"].(string); !strings.Contains(said, "no such content") {
		t.Errorf("got %q", said)
	}
	w.ask("PUT", "/v2/service_instances/i?"+async, body, 202)
	if err := c.Drop(); err != nil {
		t.Fatal(err)
	}
	w.ask("PUT", "/v2/service_instances/i?"+async, body, 202) // the platform may repeat it
	w.ask("PUT", "/v2/service_instances/j?"+async, body, 400)
	if said, _ := w.ask("PUT", "/v2/service_instances/j?"+async, with(`{"restore_from_content": "of-i"}`), 400)["description"].(string); !strings.Contains(said, "no such content") {
		t.Errorf("got %q; want the content of another instance refused", said)
	}
	if got := w.contents(); !slices.Equal(got, []string{"of-i"}) {
		t.Errorf("got contents %q", got)
	}
	k := &keeper{broker: w.broker, busy: map[string]bool{}}
	if err := k.move(t.Context(), w.row("i")); err != nil {
		t.Fatal(err)
	}
	if i := w.row("i"); i.State != cf.DataMaking || !slices.Equal(w.said, []string{"i is now the files"}) || len(w.contents()) > 0 {
		t.Errorf("got %s, %q, contents %q", i.State, w.said, w.contents())
	}
	script := func() string {
		d, _ := desired(w.row("i"))
		return strings.Join(d.Action.Run.Args, " ")
	}
	if !strings.Contains(script(), "rm -rf archive\nset -eu") {
		t.Errorf("got the script %.80q; want the other one's points deleted", script())
	}
	w.runs("i")
	if err := k.move(t.Context(), w.row("i")); err != nil {
		t.Fatal(err)
	}
	if i := w.row("i"); i.State != cf.DataReady || !strings.Contains(strings.Join(w.said, ""), "DROP ROLE") || strings.Contains(script(), "rm -rf archive\nset") {
		t.Errorf("got %s, %q", i.State, w.said)
	}
	w.ask("PATCH", "/v2/service_instances/i?"+async, with(`{"restore_from_content": "X"}`), 400)
}

// TestContentThatIsGone fails the instance in words that help.
func TestContentThatIsGone(t *testing.T) {
	w := newWorld(t)
	w.Content = t.TempDir()
	c := w.delivered("the files")
	w.ask("PUT", "/v2/service_instances/i?"+async, strings.Replace(provisionBody, "{", `{"parameters": {"restore_from_content": "`+c.ID+`"}, `, 1), 202)
	if err := os.Remove(w.contentOf("i")); err != nil {
		t.Fatal(err)
	}
	k := &keeper{broker: w.broker, busy: map[string]bool{}}
	if err := k.move(t.Context(), w.row("i")); err == nil {
		t.Error("it was filled")
	}
	if i := w.row("i"); i.State != cf.DataFailed || !strings.Contains(i.Fault, "restore again") {
		t.Errorf("got %s, %q", i.State, i.Fault)
	}
}

// TestContentsAreSwept keeps what an instance may still be made of.
func TestContentsAreSwept(t *testing.T) {
	w := newWorld(t)
	w.Content = t.TempDir()
	old := time.Now().Add(-2 * contentAge)
	for name, at := range map[string]time.Time{"NEW": time.Now(), "OLD": old, "of-new": old, "of-ready": time.Now(), "of-none": time.Now(), "of-gone": old} {
		file := filepath.Join(w.Content, name)
		if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Chtimes(file, at, at)); err != nil {
			t.Fatal(err)
		}
	}
	w.write(func(tx *store.Tx) (err error) {
		for guid, state := range map[string]cf.DataState{"new": cf.DataNew, "ready": cf.DataReady} {
			err = errors.Join(err, store.DataInstances.Insert(tx, &cf.DataInstance{Resource: cf.Resource{GUID: guid}, Service: "redis", Plan: "small", State: state}))
		}
		return err
	})
	if err := w.sweepContent(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, want := w.contents(), []string{"NEW", "of-new", "of-none"}; !slices.Equal(got, want) {
		t.Errorf("got %q; want %q", got, want)
	}
}
