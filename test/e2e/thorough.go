package e2e

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
)

// Thorough reports whether `make test-all` runs: then tests leave nothing out.
func Thorough() bool { return os.Getenv("CUPOLA_TEST_ALL") != "" }

// Seed is CUPOLA_SEED, or a new one.
func Seed() uint64 {
	if given, err := strconv.ParseUint(os.Getenv("CUPOLA_SEED"), 10, 64); err == nil {
		return given
	}
	return rand.Uint64()
}

// Sample picks n of all by a seed, which the test's log names. `make test-all` takes all.
func Sample[T any](t testing.TB, all []T, n int) []T {
	t.Helper()
	if Thorough() {
		return all
	}
	seed := Seed()
	rng := rand.New(rand.NewPCG(seed, 0))
	rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	t.Logf("%d of %d; CUPOLA_SEED=%d", n, len(all), seed)
	return all[:min(n, len(all))]
}
