package store

import (
	"errors"
	"slices"
	"syscall"

	"cupola/runtime/durable"
	"cupola/store/cf"
)

// Explain turns an error of the machine into one that a client may see: what
// the machine lacks, and who can mend it. It returns nil for any other error.
// Its texts name no path: clients are not to learn the machine's.
func Explain(err error) *cf.Error {
	switch {
	case errors.Is(err, ErrFull), isAny(err, syscall.ENOSPC, syscall.EDQUOT):
		return cf.Errorf(cf.DiskFull, "The data directory's disk is full: the request was not kept. Ask the operator to free space on it, then repeat the request.")
	case errors.Is(err, durable.ErrDamaged):
		return cf.Errorf(cf.BlobDamaged, "The stored file is damaged: upload it again, or stage the app again if it is a droplet.")
	case errors.Is(err, ErrCorrupt):
		return cf.Errorf(cf.DatabaseError, "The database is damaged: the request was not completed. Ask the operator to restore the last backup of the database.")
	case isAny(err, syscall.EMFILE, syscall.ENFILE):
		return cf.Errorf(cf.ServiceUnavailable, "The daemon has no file descriptor left: repeat the request later.")
	case isAny(err, syscall.EROFS):
		return cf.Errorf(cf.ServiceUnavailable, "The data directory's disk is read-only: the request was not kept. Ask the operator to make it writable, then repeat the request.")
	case errors.Is(err, ErrIO), isAny(err, syscall.EIO):
		return cf.Errorf(cf.ServiceUnavailable, "The data directory's disk cannot be read or written: the request was not completed. Ask the operator to check the disk.")
	}
	return nil
}

func isAny(err error, numbers ...error) bool {
	return slices.ContainsFunc(numbers, func(n error) bool { return errors.Is(err, n) })
}
