package contract

import "fmt"

// ByteSize is a size as Diego's logs have it: 1.5M. What downloads and uploads for
// an app writes it, on both sides.
func ByteSize(n int64) string {
	const units = "BKMGTPE"
	value, unit := float64(n), 0
	for value >= 1024 && unit < len(units)-1 {
		value, unit = value/1024, unit+1
	}
	if unit == 0 || value == float64(int64(value)) {
		return fmt.Sprintf("%.0f%c", value, units[unit])
	}
	return fmt.Sprintf("%.1f%c", value, units[unit])
}
