package repository

import (
	"bytes"
	"errors"
	"io"
	"os"
	"testing"

	"filippo.io/age"
)

// TestStreamFetchesWhatIsRead reads parts of a backup whose other chunks are gone.
func TestStreamFetchesWhatIsRead(t *testing.T) {
	w := newWorld(t)
	content := random(9 << 20)
	w.save(content)
	s, err := w.Find(t.Context(), "latest")
	if err != nil || len(s.Chunks) < 4 {
		t.Fatalf("got %d chunks, %v; want some", len(s.Chunks), err)
	}
	stream, err := w.Stream(t.Context(), s, []age.Identity{w.key})
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	if got, err := io.ReadAll(stream); err != nil || !bytes.Equal(got, content) {
		t.Fatalf("got %d bytes, %v; want all", len(got), err)
	}
	for _, name := range w.chunkFiles() {
		if id := idOf(name); id != s.Chunks[0].ID && id != s.Chunks[len(s.Chunks)-1].ID {
			if err := os.Remove(name); err != nil {
				t.Fatal(err)
			}
		}
	}
	part := func(offset int64, whence int, want []byte) {
		t.Helper()
		got := make([]byte, len(want))
		if _, err := stream.Seek(offset, whence); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(stream, got); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d from %d: got other bytes, %v", offset, whence, err)
		}
	}
	part(5, io.SeekStart, content[5:105])
	part(100, io.SeekCurrent, content[205:305])
	part(-100, io.SeekEnd, content[len(content)-100:])
	if _, err := stream.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("got %v after the last byte", err)
	}
	if _, err := stream.Seek(-1, io.SeekStart); err == nil {
		t.Error("it was sought to before its beginning")
	}
	if _, err := stream.Seek(s.Chunks[0].Size, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Read(make([]byte, 1)); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("got %v; want a chunk missed", err)
	}
}
