package stack

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"cupola/rootfs/system"
	"cupola/rootfs/tree"
)

// Host is the stack that shows containers this machine's programs: an allow-list of directories that hold software, bound
// read-only into a skeleton. Never the machine's /, /home, /var or /etc.
const Host = "host"

// hostDirs are the directories of a usr-merged system; on other systems each may be a separate directory.
var hostDirs = []string{"bin", "sbin", "lib", "lib32", "lib64", "libx32"}

// hostEtc are the files below /etc that programs in /usr cannot do without. Not /etc/ssl as a whole: it holds private/.
var hostEtc = []string{"etc/alternatives", "etc/ld.so.cache", "etc/java-*-openjdk"}

// hostTrust is what programs read besides the places where Fedora, RHEL and Arch keep CA certificates: a JVM's
// configuration and which ciphers are allowed. Not /etc/pki as a whole: it holds private/, too.
var hostTrust = []string{"etc/pki/tls/certs", "etc/pki/ca-trust/extracted", "etc/pki/java", "etc/ca-certificates/extracted", "etc/crypto-policies", "etc/java"}

// bundles are where machines keep the CA certificates that they trust as one file, besides system.CABundle:
// Fedora and RHEL, and openSUSE.
var bundles = []string{"etc/pki/tls/certs/ca-bundle.crt", "var/lib/ca-certificates/ca-bundle.pem", system.CABundle}

// maxBundle bounds such a file, in bytes.
const maxBundle = 4 << 20

// hostHidden are places below /usr where machines keep their configuration and data instead of programs.
var hostHidden = []string{"usr/local/etc", "usr/local/var"}

// hostView is what the stack takes from the machine whose files are below root ("/" but in tests).
type hostView struct {
	nodes []tree.Node
	binds []Bind
}

// viewHost looks at a machine. empty is the path of a directory without files, to hide others behind.
func viewHost(root, empty string) hostView {
	v := hostView{nodes: system.Skeleton("/bin/bash")}
	v.bind(root, "usr", true)
	for _, name := range hostDirs {
		v.systemDir(root, name)
	}
	for _, pattern := range hostEtc {
		found, _ := filepath.Glob(filepath.Join(root, pattern)) // the patterns are well-formed
		for _, path := range found {
			v.mirror(root, strings.TrimPrefix(strings.TrimPrefix(path, root), "/"))
		}
	}
	v.certificates(root)
	for _, name := range hostTrust {
		v.mirrorDir(root, name)
	}
	for _, name := range hostHidden {
		if st, err := os.Stat(filepath.Join(root, name)); err == nil && st.IsDir() {
			v.binds = append(v.binds, Bind{Source: empty, Destination: "/" + name, ReadOnly: true})
		}
	}
	if release, err := os.ReadFile(filepath.Join(root, "etc/os-release")); err == nil {
		v.nodes = append(v.nodes, tree.File("etc/os-release", string(release)))
	}
	return v
}

// systemDir repeats the machine's /bin and its like: a link where it is one, else a bind.
func (v *hostView) systemDir(root, name string) {
	to, err := os.Readlink(filepath.Join(root, name))
	if err == nil {
		v.nodes = append(v.nodes, tree.Link(name, to))
		return
	}
	v.mirror(root, name)
}

// mirror binds a file or directory of the machine to the same place.
func (v *hostView) mirror(root, name string) {
	st, err := os.Stat(filepath.Join(root, name))
	if err == nil {
		v.bind(root, name, st.IsDir())
	}
}

func (v *hostView) bind(root, name string, isDir bool) {
	point := tree.File(name, "")
	if isDir {
		point = tree.Dir(name, 0o755)
	}
	if !slices.ContainsFunc(v.nodes, func(n tree.Node) bool { return n.Path == name }) {
		v.nodes = append(v.nodes, point)
	}
	v.binds = append(v.binds, Bind{Source: filepath.Join(root, name), Destination: "/" + name, ReadOnly: true})
}

// mirrorDir is mirror for a directory that others must be made for first.
func (v *hostView) mirrorDir(root, name string) {
	if st, err := os.Lstat(filepath.Join(root, name)); err != nil || !st.IsDir() {
		return
	}
	at := ""
	for part := range strings.SplitSeq(path.Dir(name), "/") {
		at = path.Join(at, part)
		if !slices.ContainsFunc(v.nodes, func(n tree.Node) bool { return n.Path == at }) {
			v.nodes = append(v.nodes, tree.Dir(at, 0o755))
		}
	}
	v.bind(root, name, true)
}

// certificates shows the machine's CA certificates, with those an operator added: the directory /etc/ssl/certs if they
// are whole in it, else a copy of the file that has them; machines without one get Mozilla's.
func (v *hostView) certificates(root string) {
	name := filepath.Join(root, system.CABundle)
	if st, err := os.Lstat(name); err == nil && st.Mode().IsRegular() && st.Size() > 0 && st.Mode().Perm()&0o004 != 0 {
		if dir, err := os.Lstat(filepath.Dir(name)); err == nil && dir.Mode().Type() == fs.ModeDir {
			v.bind(root, filepath.Dir(system.CABundle), true)
			return
		}
	}
	v.nodes = append(v.nodes, tree.File(system.CABundle, bundleOf(root)), tree.Link("etc/ssl/cert.pem", "certs/ca-certificates.crt"))
}

// bundleOf is the machine's file of CA certificates, or Mozilla's.
func bundleOf(root string) string {
	for _, name := range bundles {
		file := filepath.Join(root, name)
		if st, err := os.Stat(file); err != nil || !st.Mode().IsRegular() || st.Size() > maxBundle || st.Mode().Perm()&0o004 == 0 {
			continue
		}
		if text, err := os.ReadFile(file); err == nil && strings.Contains(string(text), "-----BEGIN CERTIFICATE-----") {
			return string(text)
		}
	}
	return system.CACertificates()
}

// release is the os-release file of the machine.
func (v *hostView) release() string {
	for _, n := range v.nodes {
		if n.Path == "etc/os-release" {
			return n.Content
		}
	}
	return ""
}
