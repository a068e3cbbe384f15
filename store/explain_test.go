package store

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"cupola/runtime/durable"
	"cupola/store/cf"
)

func TestExplain(t *testing.T) {
	for _, c := range []struct {
		err  error
		kind cf.Kind
		says string
	}{
		{&fs.PathError{Op: "write", Path: "/secret", Err: syscall.ENOSPC}, cf.DiskFull, "disk is full"},
		{fmt.Errorf("upload: %w", syscall.EDQUOT), cf.DiskFull, "disk is full"},
		{fmt.Errorf("%w: of SQLite", ErrFull), cf.DiskFull, "disk is full"},
		{&fs.PathError{Op: "open", Path: "/secret", Err: syscall.EMFILE}, cf.ServiceUnavailable, "no file descriptor"},
		{fmt.Errorf("%w: %w", ErrIO, syscall.EROFS), cf.ServiceUnavailable, "read-only"},
		{ErrIO, cf.ServiceUnavailable, "cannot be read or written"},
		{syscall.EIO, cf.ServiceUnavailable, "cannot be read or written"},
		{fmt.Errorf("open: %w", durable.ErrDamaged), cf.BlobDamaged, "damaged"},
		{ErrCorrupt, cf.DatabaseError, "damaged"},
	} {
		got := Explain(c.err)
		if got == nil || got.Kind != c.kind || !strings.Contains(got.Detail, c.says) || strings.Contains(got.Detail, "/secret") {
			t.Errorf("%v: got %+v; want %s, %q, no path", c.err, got, c.kind, c.says)
		}
	}
	if got := Explain(errors.New("anything else")); got != nil {
		t.Errorf("got %+v; want nil", got)
	}
}
