package repository

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"filippo.io/age"
)

// TestOtherRecipientsReadAll makes backups for one key, for another one, and for the first again: each opens its own, and what is there for
// it is not sent again.
func TestOtherRecipientsReadAll(t *testing.T) {
	for name, earlier := range map[string]bool{"new": false, "of an earlier cupola": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			content := random(3 << 20)
			first := w.key
			other, err := age.GenerateX25519Identity()
			if err != nil {
				t.Fatal(err)
			}
			if earlier {
				w.saveAsEarlier(content)
			}
			made := []Saved{w.save(content)}
			if again := w.save(content); again.Added > chunkMin || earlier && made[0].Added > chunkMin {
				t.Errorf("sent %d and %d bytes that are there", made[0].Added, again.Added)
			}
			w.key = other
			made = append(made, w.save(content))
			if again := w.save(content); again.Added > chunkMin {
				t.Errorf("sent %d bytes that are there for the other key", again.Added)
			}
			for n, key := range []*age.X25519Identity{first, other} {
				w.key = key
				if got, err := w.load(made[n].Name); err != nil || !bytes.Equal(got, content) {
					t.Errorf("backup %d: got %d bytes, %v", n, len(got), err)
				}
			}
			w.key = first
			if got, err := w.load(w.save(content).Name); err != nil || !bytes.Equal(got, content) {
				t.Errorf("for the first key again: got %d bytes, %v", len(got), err)
			}
		})
	}
}

// saveAsEarlier makes backups as a cupola did whose chunks had the same IDs for all recipients, the last one of a content.
func (w *world) saveAsEarlier(content []byte) {
	w.t.Helper()
	for _, one := range [][]byte{[]byte("what makes the next one share chunks as before"), content} {
		saved := w.save(one)
		saved.Readers, saved.Apart = "", false
		text, err := json.Marshal(saved.Snapshot)
		if err == nil {
			err = os.WriteFile(filepath.Join(w.dir, snapshots, saved.Name+snapSuffix), text, 0o600)
		}
		if err != nil {
			w.t.Fatal(err)
		}
	}
}
