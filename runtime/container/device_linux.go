package container

import (
	"os"

	devices "github.com/opencontainers/cgroups/devices/config"
)

// device is a character device a container may use. One without a name has no
// node of its own in /dev.
type device struct {
	name         string
	major, minor int64 // minor -1 is every minor
}

func allowedDevices() []device {
	return []device{
		{"null", 1, 3}, {"zero", 1, 5}, {"full", 1, 7}, {"random", 1, 8}, {"urandom", 1, 9}, {"tty", 5, 0},
		{"", 5, 2}, {"", 136, -1}, // /dev/ptmx and the terminals of /dev/pts
	}
}

func deviceNodes() []*devices.Device {
	var nodes []*devices.Device
	for _, d := range allowedDevices() {
		if d.name == "" {
			continue
		}
		nodes = append(nodes, &devices.Device{
			Path:     "/dev/" + d.name,
			FileMode: os.FileMode(0o666),
			Rule:     devices.Rule{Type: devices.CharDevice, Major: d.major, Minor: d.minor, Permissions: "rwm", Allow: true},
		})
	}
	return nodes
}
