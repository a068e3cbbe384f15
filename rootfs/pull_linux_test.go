package rootfs

import (
	"testing"

	"golang.org/x/sys/unix"
)

func blocks(t *testing.T, name string) int64 {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Stat(name, &st); err != nil {
		t.Fatal(err)
	}
	return st.Blocks * 512
}

func xattr(t *testing.T, name, key string) string {
	t.Helper()
	var b [256]byte
	n, err := unix.Lgetxattr(name, key, b[:])
	if err != nil {
		return ""
	}
	return string(b[:n])
}
