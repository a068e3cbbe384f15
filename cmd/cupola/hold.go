package main

import (
	"os"
	"time"

	"cupola/cmd/cupola/command"
	"cupola/rootfs/volume"
)

// holdVolumeCmd is the internal command that a backup runs for each volume.
type holdVolumeCmd struct {
	Dir    string        `arg:""`
	Within time.Duration `arg:""`
}

// Run holds a volume still until its standard input says or ends.
func (c *holdVolumeCmd) Run(e *command.Env) error {
	return volume.Hold(c.Dir, c.Within, os.Stdin, e.Out)
}
