package store

import (
	"context"
	"runtime"
)

// ReleaseMemory frees the pages that connections keep in case they are read again, for a daemon that has little to do. A
// connection takes about twice what its cache_size says, since SQLite's allocator rounds each page up.
func (s *Store) ReleaseMemory(ctx context.Context) error {
	s.reader.SetMaxIdleConns(1) // closes idle connections but one: the next read need not wait for a new one
	s.reader.SetMaxIdleConns(maxReaders())
	if _, err := s.reader.ExecContext(ctx, "PRAGMA shrink_memory"); err != nil {
		return nameFault(err)
	}
	slot, err := s.writers.Acquire(ctx, "memory")
	if err != nil {
		return err
	}
	defer slot.Release()
	s.endBatch()
	_, err = s.writer.ExecContext(ctx, "PRAGMA shrink_memory")
	return nameFault(err)
}

// maxReaders is how many connections read at most.
func maxReaders() int { return 2 + runtime.NumCPU() }
