package contract

import (
	"fmt"
	"testing"
)

// TestXXH64 holds the hash to values of the reference implementation, of texts below
// and above the length of a stripe.
func TestXXH64(t *testing.T) {
	const letters = "abcdefghijklmnopqrstuvwxyz"
	long := letters + letters + letters + letters
	for length, want := range map[int]string{0: "ef46db3751d8e999", 3: "44bc2cf5ad770999", 7: "1860940e2902822d", 14: "d66d2a9c05576b14", 32: "4da6cbe536cf55c7", 100: "79c9fa152bb53c71"} {
		if got := BuildpackDir(long[:length]); got != want {
			t.Errorf("%d bytes: got %s; want %s", length, got, want)
		}
	}
	if got := fmt.Sprintf("%016x", xxh64("a")); got != "d24ec4f1a98c6e5b" {
		t.Errorf("got %s", got)
	}
}
