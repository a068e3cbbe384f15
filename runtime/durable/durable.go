// Package durable writes files atomically and durably: neither a killed daemon
// nor a power cut leaves half of a file, or loses it after Write returned. It
// is for keys and files that database rows refer to.
package durable

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// ErrDamaged says that the content of a file is no longer what was written.
var ErrDamaged = errors.New("stored file is damaged")

// Write replaces the file name by content, atomically. When it returns nil,
// the file is on disk. Until then the content is in name.new, which a later
// Write overwrites; callers must not call it concurrently for one name.
func Write(name string, content []byte, mode fs.FileMode) error {
	if err := Stage(name, content, mode); err != nil {
		return err
	}
	return Take(name)
}

// Stage is the first half of Write, which takes room on the disk: it brings the
// content to name.new.
func Stage(name string, content []byte, mode fs.FileMode) error {
	next := name + staged
	f, err := os.OpenFile(next, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err := errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return errors.Join(err, Discard(name))
	}
	return nil
}

// ReadJSON reads what was written as JSON. Without the file, v stays as it is.
func ReadJSON(name string, v any) error {
	text, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(text, v)
}

// Discard takes back what was staged.
func Discard(name string) error { return os.Remove(name + staged) }

// Take is the second half of Write: the file gets what was staged.
func Take(name string) error { return rename(name+staged, name) }

const staged = ".new"

// Ensure is Write unless the file has that content: a disk that is full, or can
// only be read, is in the way of no start that changes nothing.
func Ensure(name string, content []byte, mode fs.FileMode) error {
	info, err := os.Lstat(name)
	if err == nil && info.Mode() == mode && info.Size() == int64(len(content)) {
		if have, err := os.ReadFile(name); err == nil && bytes.Equal(have, content) {
			return nil
		}
	}
	return Write(name, content, mode)
}

// EmptyDir removes what is in a directory, and makes the directory, 0700, where
// there is none. One that is there stays: to make it again takes room.
func EmptyDir(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return MkdirAll(dir, 0o700)
	}
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
	}
	return err
}

// Rename gives the regular file from the name to. Its content is on the disk
// before it has the name, and the name when Rename returns nil.
func Rename(from, to string) error {
	if err := Sync(from); err != nil {
		return err
	}
	return rename(from, to)
}

func rename(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return Sync(filepath.Dir(to))
}

// MkdirAll makes a directory and the parents that are missing. Those that it
// made are on the disk when it returns nil.
func MkdirAll(dir string, mode fs.FileMode) error {
	var made []string
	for d := filepath.Clean(dir); ; d = filepath.Dir(d) {
		if _, err := os.Stat(d); !errors.Is(err, fs.ErrNotExist) {
			break // there is one, or MkdirAll says why it cannot be reached
		}
		made = append(made, d)
	}
	if err := os.MkdirAll(dir, mode); err != nil {
		return err
	}
	for _, d := range made {
		if err := Sync(filepath.Dir(d)); err != nil {
			return err
		}
	}
	return nil
}

// Sync brings a file's content to the disk, or the names in a directory.
func Sync(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
