package audit

import (
	"log/slog"
	"slices"
	"testing"

	"cupola/store"
	"cupola/store/cf"
)

// TestWriteTakesTypesOfTheList writes one event of each type, and none of another.
func TestWriteTakesTypesOfTheList(t *testing.T) {
	s, err := store.Open(store.Config{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if !slices.Contains(types(), OfRole(cf.SpaceSupporter, "remove")) || !slices.Contains(types(), Of("service_key", "start_delete")) {
		t.Error("got no types of roles or of bindings")
	}
	err = s.Write(t.Context(), func(tx *store.Tx) error {
		for _, what := range types() {
			if err := Write(tx, cf.Actor{GUID: "user-1"}, what, Target{Type: "app", GUID: "app-1"}, nil); err != nil {
				return err
			}
		}
		if n, err := store.Events.Count(tx, store.Query{}); err != nil || n != len(types()) {
			t.Errorf("got %d events, %v; want %d", n, err, len(types()))
		}
		if Write(tx, cf.Actor{}, "audit.app.invented", Target{}, nil) == nil {
			t.Error("wrote an event of a type that is not in the list")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
