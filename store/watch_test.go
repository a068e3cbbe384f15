package store

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cupola/store/cf"
)

// TestWatch wants the rows of watched tables alone, also those that go with
// others, in order, and none of a write that failed.
func TestWatch(t *testing.T) {
	s := openTest(t)
	ctx := context.Background()
	var got []Touched
	stop := s.Watch(map[string][]string{"users": {"guid"}, "console_sessions": {"key", "user_guid"}}, func(rows []Touched) { got = append(got, rows...) })
	user := &cf.User{Resource: cf.Resource{GUID: "u"}, Username: "somebody", Origin: "uaa"}
	write := func(f func(*Tx) error) {
		t.Helper()
		if err := s.Write(ctx, f); err != nil {
			t.Fatal(err)
		}
	}
	write(func(tx *Tx) error { return Users.Insert(tx, user) })
	write(func(tx *Tx) error {
		return errors.Join(Settings.Set(tx, "x", 1), ConsoleSessions.Add(tx, ConsoleSession{Key: "k", UserGUID: "u", SeenAt: tx.Now, CreatedAt: tx.Now}, time.Time{}))
	})
	undone := errors.New("undone")
	if err := s.Write(ctx, func(tx *Tx) error { return errors.Join(ConsoleSessions.Remove(tx, "k"), undone) }); !errors.Is(err, undone) {
		t.Fatal(err)
	}
	write(func(tx *Tx) error { return Users.Delete(tx, "u") })
	stop()
	write(func(tx *Tx) error { return Users.Insert(tx, user) })
	want := []Touched{{Table: "users", Values: []string{"u"}}, {Table: "console_sessions", Values: []string{"k", "u"}},
		{Table: "users", Values: []string{"u"}, Gone: true}, {Table: "console_sessions", Values: []string{"k", "u"}, Gone: true}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// TestWatchWithoutColumns wants rows of tables told of which no column is watched.
func TestWatchWithoutColumns(t *testing.T) {
	s := openTest(t)
	var got []Touched
	defer s.Watch(map[string][]string{"feature_flags": nil}, func(rows []Touched) { got = append(got, rows...) })()
	for _, enabled := range []bool{true, false} {
		err := s.Write(context.Background(), func(tx *Tx) error {
			return FeatureFlags.Put(tx, &cf.FeatureFlag{Name: "diego_docker", Enabled: enabled, UpdatedAt: tx.Now})
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if d := cmp.Diff([]Touched{{Table: "feature_flags"}, {Table: "feature_flags"}}, got); d != "" {
		t.Error(d)
	}
}

// TestConsoleSessions wants a session found until it is removed, forgotten after a
// time, and the least used one ended for one too many.
func TestConsoleSessions(t *testing.T) {
	s := openTest(t)
	now := time.Now().Truncate(time.Second)
	has := func(tx *Tx, key string) bool {
		_, ok, err := ConsoleSessions.Get(tx, key)
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	err := s.Write(context.Background(), func(tx *Tx) error {
		if err := Users.Insert(tx, &cf.User{Resource: cf.Resource{GUID: "u"}, Username: "somebody", Origin: "uaa"}); err != nil {
			return err
		}
		add := func(key string, seen time.Time) {
			if err := ConsoleSessions.Add(tx, ConsoleSession{Key: key, UserGUID: "u", SeenAt: seen, CreatedAt: now}, now.Add(-time.Hour)); err != nil {
				t.Fatal(err)
			}
		}
		add("old", now.Add(-2*time.Hour))
		add("first", now.Add(-time.Minute))
		if has(tx, "old") || !has(tx, "first") {
			t.Error("got a session that was forgotten, or not one that was added")
		}
		for i := range maxConsoleSessions - 1 {
			add(string(rune('A'+i)), now)
		}
		if !has(tx, "first") {
			t.Error("got no session within the limit")
		}
		if add("more", now); has(tx, "first") || !has(tx, "more") {
			t.Error("got the least used session beyond the limit")
		}
		err := ConsoleSessions.Remove(tx, "more")
		if has(tx, "more") {
			t.Error("got a removed session")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
