// Package lowwater reads the free space below which a daemon deletes caches.
package lowwater

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"cupola/server/manifest"
)

// Mark is the least free space of a disk: a part of it, or so many bytes. The zero
// value is the default.
type Mark struct {
	part     float64 // 0 to 1
	bytes    uint64
	explicit bool
}

// The default: a twentieth of the disk, and no more than maxDefault.
const (
	defaultPart = 0.05
	maxDefault  = 10 << 30
)

// maxPart is the largest part that can be asked for: with more, caches are of no use.
const maxPart = 50

// Off is a mark that no disk is below.
const Off = "off"

// Parse reads "5%", "10G" or "off"; "" is the default.
func Parse(text string) (Mark, error) {
	if text == "" {
		return Mark{}, nil
	}
	if text == Off {
		return Mark{explicit: true}, nil
	}
	if number, isPart := strings.CutSuffix(text, "%"); isPart {
		n, err := strconv.ParseFloat(number, 64)
		if err == nil && n > 0 && n <= maxPart {
			return Mark{part: n / 100, explicit: true}, nil
		}
	} else if n, ok := manifest.ParseSize(text); ok && n > 0 {
		return Mark{bytes: uint64(n), explicit: true}, nil
	}
	return Mark{}, fmt.Errorf("invalid mark %q: give a part of the disk up to %d%%, like 5%%, a size, like 10G, or %s", text, maxPart, Off)
}

// Of is the mark of a disk of a size in bytes. It is at most half of that.
func (m Mark) Of(total uint64) uint64 {
	if !m.explicit {
		return min(partOf(total, defaultPart), maxDefault)
	}
	return min(max(partOf(total, m.part), m.bytes), total/2)
}

func partOf(total uint64, part float64) uint64 { return uint64(math.Floor(float64(total) * part)) }
