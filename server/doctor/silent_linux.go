package doctor

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"cupola/rootfs/overlay"
)

// AvoidSilent makes this process look for no programs and certificates in file systems below /usr that do not answer: it
// would wait for ever. The error names them.
func AvoidSilent() error {
	silent, err := silentSoftware()
	if err != nil || len(silent) == 0 {
		return err
	}
	keep := func(name, list string, bad func(dir string) bool) error {
		dirs := slices.DeleteFunc(filepath.SplitList(cmp.Or(os.Getenv(name), list)), bad)
		return os.Setenv(name, cmp.Or(strings.Join(dirs, string(filepath.ListSeparator)), noDir))
	}
	err = errors.Join(
		keep("PATH", "", func(dir string) bool { return isBelow(dir, silent) }),
		keep("SSL_CERT_DIR", certificateDirs, func(dir string) bool { return leadsBelow(dir, silent) }))
	list := strings.Join(silent, " ")
	return errors.Join(err, fmt.Errorf("the file system mounted at %s does not answer: repair it, or unmount it with 'sudo umount -l %s'", list, list))
}

// silentSoftware looks once for a process.
var silentSoftware = sync.OnceValues(overlay.SilentSoftware)

// noDir stands for an empty list of directories, which would mean the default ones.
const noDir = "/proc/none"

// certificateDirs are where Go looks for certificates, besides the bundle, which has the same ones.
const certificateDirs = "/etc/ssl/certs:/etc/pki/tls/certs"

// isBelow reports whether a path is one of the mount points, or below one.
func isBelow(path string, points []string) bool {
	return slices.ContainsFunc(points, func(point string) bool { return strings.HasPrefix(filepath.Clean(path)+"/", point+"/") })
}

// leadsBelow reports whether a directory is below one of the mount points, or has a link that leads there, as
// update-ca-certificates makes them for the certificates in /usr/local. It follows no link.
func leadsBelow(dir string, points []string) bool {
	if isBelow(dir, points) {
		return true
	}
	entries, _ := os.ReadDir(dir) // without it there is no link
	return slices.ContainsFunc(entries, func(e os.DirEntry) bool {
		to, err := os.Readlink(filepath.Join(dir, e.Name()))
		if err == nil && !filepath.IsAbs(to) {
			to = filepath.Join(dir, to)
		}
		return err == nil && isBelow(to, points)
	})
}
