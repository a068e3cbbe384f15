//go:build !linux

package disk

import (
	"errors"
	"io/fs"
)

// LoopDevice is a loop device in use.
type LoopDevice struct{ Device, File string }

// Loops lists the loop devices whose image lies below dir: none here.
func Loops(string) ([]LoopDevice, error) { return nil, nil }

func (d *Disks) makeLoop(string, Size) error { _, _ = d.template, grain; return errors.ErrUnsupported }
func mountLoop(string, string) error         { return errors.ErrUnsupported }
func (d *Disks) growLoop(string, Size) error { return errors.ErrUnsupported }
func growProject(string, Size) error         { return nil }
func isMount(string) (bool, error)           { return false, errors.ErrUnsupported }
func limitProject(string, Size) error        { return errors.ErrUnsupported }
func freeProject(string) error               { return nil }
func usedProject(string) (int64, bool)       { return 0, false }
func overfill(string) error                  { return errors.ErrUnsupported }
func freeze(string) error                    { return errors.ErrUnsupported }
func thaw(string) error                      { return errors.ErrUnsupported }
func writable(string) error                  { return errors.ErrUnsupported }
func unmount(string) error                   { return nil }
func detach(string) error                    { return nil }
func usedMount(string) (int64, error)        { return 0, errors.ErrUnsupported }

// CheckRoom looks at nothing here.
func CheckRoom(string, string, int64) error { return nil }

func blocks(info fs.FileInfo) int64 { return info.Size() }
