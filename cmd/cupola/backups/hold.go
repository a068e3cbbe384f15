package backups

import (
	"os"
	"time"

	"cupola/cmd/cupola/command"
	"cupola/rootfs/volume"
)

// HoldVolumeCmd is the internal command that a backup runs for each volume.
type HoldVolumeCmd struct {
	Dir    string        `arg:""`
	Within time.Duration `arg:""`
}

// Run holds a volume still until its standard input says or ends.
func (c *HoldVolumeCmd) Run(e *command.Env) error {
	return volume.Hold(c.Dir, c.Within, os.Stdin, e.Out)
}
