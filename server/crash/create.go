package crash

import (
	"fmt"
	"strconv"

	"cupola/runtime/pattern"
)

// tooLarge is what the cell says of an app that is larger than its disk.
var tooLarge = pattern.Lazy(`layers of (\d+) bytes do not fit a disk of (\d+)$`)

// fullDisk is what the kernel says of a disk that has no room left.
var fullDisk = pattern.Lazy(`^failed to create container: .*(no space left on device|disk quota exceeded|disk is full)`)

// freeSpace is how to mend it.
const freeSpace = "the data directory's disk is full: ask the operator to free space on it"

// createCause is why a container was not created, and how to mend it; "" where the description is of something else.
func createCause(description string) string {
	m := tooLarge().FindStringSubmatch(description)
	if m == nil && fullDisk().MatchString(description) {
		return freeSpace + ", then run cf restart"
	}
	if m == nil {
		return ""
	}
	return fmt.Sprintf("the app unpacked has %s, and its disk %s: give it more with cf scale -k, or disk_quota in the manifest, or push less (.cfignore)", megabytes(m[1]), megabytes(m[2]))
}

// megabytes rounds up.
func megabytes(bytes string) string {
	n, _ := strconv.ParseInt(bytes, 10, 64) // they are digits, of a size
	const mb = 1 << 20
	return strconv.FormatInt((n+mb-1)/mb, 10) + "M"
}
