package stack

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"cupola/rootfs/overlay"
)

// changing are the directories and files of this machine that change with its software:
// what is installed or removed changes the time of the directory that it is in.
var changing = []string{"", "bin", "sbin", "lib", "lib64", "share", "local/bin", "local/sbin", "local/lib", "local"}

// Version names the stack's files. It changes when the stack is made again and, for
// this machine's own files, when software is installed, upgraded or removed. It is ""
// where other file systems are mounted below those: they may change unseen, or not answer.
func (st Stack) Version() string {
	if st.Kind == KindHost {
		if below, err := overlay.MountsBelow("/usr"); err != nil || len(below) > 0 {
			return ""
		}
	}
	h := sha256.New()
	fmt.Fprintln(h, st.Name, st.Kind, st.Compat, st.id, st.Digest, st.Created.UnixNano())
	for _, b := range st.Binds() {
		fmt.Fprintln(h, b.Source, b.Destination)
		for _, name := range changing {
			if b.Source != "" {
				noteTime(h, filepath.Join(b.Source, name))
			}
		}
	}
	if st.Kind == KindHost {
		for _, packages := range []string{"/var/lib/dpkg/status", "/var/lib/rpm", "/usr/lib/sysimage/rpm", "/lib/apk/db/installed"} {
			noteTime(h, packages)
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// noteTime writes when a file or directory changed, if it is there.
func noteTime(h io.Writer, path string) {
	if info, err := os.Stat(path); err == nil {
		fmt.Fprintln(h, path, info.ModTime().UnixNano())
	}
}
