package bbsrows

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"cupola/runtime/fault"
	"cupola/runtime/lrp"
	"cupola/server/bbs/bbspb"
	"cupola/store"
)

// One who looks at a few rows has the cache forget none that others look at.
func TestLooksDoNotDisturbEachOther(t *testing.T) {
	s, err := store.Open(store.Config{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	err = s.Write(t.Context(), func(tx *store.Tx) error {
		for i := range maxIdle + 1000 {
			d := &store.BBSDesired{ProcessGUID: fmt.Sprintf("p-%d", i), Domain: "tests", Instances: 1}
			text := func(lrp.Tag) ([]byte, error) { return proto.Marshal(&bbspb.DesiredLRP{ProcessGuid: d.ProcessGUID}) }
			if err := store.BBSDesireds.Insert(tx, d, text); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	c := New()
	look := func(where map[string][]string, want int) error {
		return s.Read(t.Context(), func(tx *store.Tx) error {
			list, err := c.List(tx, where)
			if err == nil && (len(list) != want || slices.Contains(list, nil)) {
				err = fmt.Errorf("got %d rows, some of them nil; want %d", len(list), want)
			}
			return err
		})
	}
	ctx, end := context.WithCancel(t.Context())
	var g fault.Group
	g.Go(func() (err error) {
		for err == nil && ctx.Err() == nil {
			err = look(map[string][]string{"guids": {"p-1"}}, 1)
		}
		return err
	})
	for range 5 {
		if err := look(nil, maxIdle+1000); err != nil {
			t.Error(err)
		}
	}
	end()
	if err := g.Wait(); err != nil {
		t.Error(err)
	}
	if c.Message("p-2") == nil {
		t.Error("a row that runs was forgotten")
	}
}
