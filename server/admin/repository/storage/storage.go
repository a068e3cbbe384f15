// Package storage puts small objects where backups are kept: in a directory, on an SFTP
// server, or in a bucket of an S3-compatible object store.
package storage

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Storage holds objects by name. Names have slashes, and no part that begins with a dot.
type Storage interface {
	// Put writes an object, whole or not at all, and replaces one of that name. It is on
	// the disk, or acknowledged by the server, when Put returns.
	Put(ctx context.Context, name string, content []byte) error
	// Get reads an object of at most limit bytes. The error wraps ErrNotFound where there
	// is none.
	Get(ctx context.Context, name string, limit int64) ([]byte, error)
	// List calls f with each object below a folder, and with what is half of one; with none where there is no folder.
	List(ctx context.Context, folder string, f func(Object) error) error
	// Remove deletes an object, and folders that become empty. One that is not there is none to delete.
	Remove(ctx context.Context, name string) error
	Close() error
}

// Object is what a list tells of an object.
type Object struct {
	Name     string
	Size     int64     // bytes
	Modified time.Time // by the clock of the storage
}

// ErrNotFound says that there is no object of that name.
var ErrNotFound = errors.New("it is not there")

// Open connects to the storage that an address names:
//
//	/mnt/disk/cupola                                  a directory
//	sftp://user@host:22/path?key=FILE&known-hosts=FILE
//	s3://host/bucket/prefix?credentials=FILE&region=NAME&insecure=true
//
// The files have the secrets, so that an address has none.
func Open(ctx context.Context, address string) (Storage, error) {
	u, err := parse(address)
	if err != nil {
		return nil, err
	}
	switch u.Scheme {
	case "sftp":
		return openSFTP(ctx, u)
	case "s3":
		return openS3(u)
	}
	return openDirectory(u.Path)
}

// Check refuses an address that is none, without connecting.
func Check(address string) error {
	_, err := parse(address)
	return err
}

// options are what addresses may say, by their scheme.
var options = map[string][]string{"": {}, "sftp": {"key", "known-hosts"}, "s3": {"credentials", "region", "insecure"}}

func parse(address string) (*url.URL, error) {
	if strings.HasPrefix(address, "/") {
		return &url.URL{Path: address}, nil // whatever characters it has
	}
	u, err := url.Parse(address)
	if err != nil {
		return nil, errors.New("invalid address") // the error would quote a password
	}
	known, ok := options[u.Scheme]
	switch _, password := u.User.Password(); {
	case !ok:
		return nil, fmt.Errorf("unknown scheme %q: give a directory, sftp://… or s3://…", u.Scheme)
	case u.Scheme == "":
		return nil, errors.New("give the directory's absolute path")
	case password:
		return nil, errors.New("it has a password, which lists of processes show: name a file with key= or credentials=")
	case u.Scheme == "sftp" && (u.Hostname() == "" || u.User.Username() == "" || u.Path == ""):
		return nil, errors.New("give sftp://USER@HOST/PATH?key=FILE")
	case u.Scheme == "s3" && (u.Host == "" || strings.Trim(u.Path, "/") == ""):
		return nil, errors.New("give s3://HOST/BUCKET/PREFIX?credentials=FILE")
	}
	for name := range u.Query() {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("unknown option %q: give some of %s", name, strings.Join(known, ", "))
		}
	}
	return u, nil
}

// halfSuffix is that of files which are not whole.
const halfSuffix = ".half"

// Half reports whether a Put that is under way, or was killed, left no more than half of the object. Its name is that of no object, and
// Remove removes it.
func (o Object) Half() bool { return strings.HasSuffix(o.Name, halfSuffix) }
