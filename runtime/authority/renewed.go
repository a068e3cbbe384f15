package authority

import (
	"log/slog"
	"sync"
	"time"
)

// Renewed is a value with certificates, renewed as long as the daemon runs.
type Renewed[T any] struct {
	every time.Duration
	make  func() (T, error)
	log   *slog.Logger

	mu    sync.Mutex
	value T
	until time.Time
}

// NewRenewed makes the first one.
func NewRenewed[T any](every time.Duration, make func() (T, error), log *slog.Logger) (*Renewed[T], error) {
	value, err := make()
	return &Renewed[T]{every: every, make: make, log: log, value: value, until: time.Now().Add(every)}, err
}

// retryRenewal is how long after a failed renewal the next attempt follows.
const retryRenewal = time.Hour

// Get gives the one that counts.
func (r *Renewed[T]) Get() T {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Now().Before(r.until) {
		return r.value
	}
	next, err := r.make()
	if err != nil {
		r.log.Error("certificates were not renewed", "err", err)
		r.until = time.Now().Add(retryRenewal)
		return r.value
	}
	r.value, r.until = next, time.Now().Add(r.every)
	return r.value
}
