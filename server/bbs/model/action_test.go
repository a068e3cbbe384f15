package model

import "testing"

// TestClientsNameNothingOfTheCell keeps clients from blobs and layers of images, which are Cloud Foundry's apps'.
func TestClientsNameNothingOfTheCell(t *testing.T) {
	for from, want := range map[string]string{"blob:ab": "no:blob:ab", "layer:ab": "no:layer:ab", "https://a.io/b": "https://a.io/b"} {
		if got := source(from, "", "", "").From; got != want {
			t.Errorf("%s: got %s; want %s", from, got, want)
		}
	}
}
