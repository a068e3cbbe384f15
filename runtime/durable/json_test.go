package durable

import (
	"os"
	"path/filepath"
	"testing"
)

func TestReadJSON(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state.json")
	got := []string{"before"}
	if err := ReadJSON(file, &got); err != nil || len(got) != 1 {
		t.Errorf("without a file: %v (%v)", got, err)
	}
	if err := os.WriteFile(file, []byte(`["a","b"]`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := ReadJSON(file, &got); err != nil || len(got) != 2 {
		t.Errorf("got %v (%v); want two", got, err)
	}
	if err := os.WriteFile(file, []byte(`["a",`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := ReadJSON(file, &got); err == nil {
		t.Error("a file that was cut is read")
	}
}
