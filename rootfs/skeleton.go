package rootfs

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	mozilla "golang.org/x/crypto/x509roots/fallback/bundle"

	"cupola/runtime/contract"
)

// node is one file of a stack that is built from nothing.
type node struct {
	path    string // relative, slash-separated
	mode    fs.FileMode
	owner   uint32 // both user and group in the container
	content string // of a file; the target of a link
}

func dirNode(path string, mode fs.FileMode) node { return node{path: path, mode: fs.ModeDir | mode} }
func fileNode(path, content string) node         { return node{path: path, mode: 0o644, content: content} }
func linkNode(path, to string) node              { return node{path: path, mode: fs.ModeSymlink, content: to} }

const caBundle = "etc/ssl/certs/ca-certificates.crt"

// skeleton is what every stack of ours has: the directories and accounts that Diego's lifecycle relies on.
func skeleton(shell string) []node {
	home := node{path: contract.Home[1:], mode: fs.ModeDir | 0o755, owner: contract.VcapID}
	app := node{path: contract.AppDir[1:], mode: fs.ModeDir | 0o755, owner: contract.VcapID}
	return []node{
		dirNode("dev", 0o755), dirNode("proc", 0o555), dirNode("sys", 0o555), dirNode("run", 0o755),
		dirNode("etc", 0o755), dirNode("etc/ssl", 0o755), dirNode("etc/ssl/certs", 0o755),
		dirNode("home", 0o755), home, app, linkNode("app", contract.AppDir),
		dirNode("root", 0o700), dirNode("tmp", 0o777|fs.ModeSticky), dirNode(contract.ProgramDir[1:], 0o755),
		dirNode("var", 0o755), dirNode("var/tmp", 0o777|fs.ModeSticky), dirNode("var/lib", 0o755), linkNode("var/run", "/run"),
		dirNode("mnt", 0o755), dirNode("opt", 0o755), dirNode("srv", 0o755),
		fileNode("etc/passwd", passwd(shell)), fileNode("etc/group", group()),
		fileNode("etc/hosts", "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n"),
		fileNode("etc/hostname", "localhost\n"), fileNode("etc/resolv.conf", ""),
		fileNode("etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\nnetworks: files\nservices: files\nprotocols: files\n"),
		fileNode("etc/shells", shell+"\n"),
		fileNode("etc/profile", "export PATH=${PATH:-/usr/local/bin:/usr/bin:/bin}\n"),
	}
}

// vcapEntry and vcapGroup are the lines of apps' user in /etc/passwd and
// /etc/group.
func vcapEntry(shell string) string {
	return fmt.Sprintf("%s:x:%d:%d:%s:%s:%s", contract.VcapName, contract.VcapID, contract.VcapID, contract.VcapName, contract.Home, shell)
}

func vcapGroup() string { return fmt.Sprintf("%s:x:%d:", contract.VcapName, contract.VcapID) }

func passwd(shell string) string {
	return "root:x:0:0:root:/root:" + shell + "\n" +
		"daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin\n" +
		"nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n" +
		vcapEntry(shell) + "\n"
}

func group() string {
	return "root:x:0:\ndaemon:x:1:\ntty:x:5:\nnogroup:x:65534:\n" + vcapGroup() + "\n"
}

// caCertificates is Mozilla's list as PEM. Roots that are trusted under constraints alone are left out: a file of
// certificates cannot say the constraint.
func caCertificates() string {
	var b strings.Builder
	for root := range mozilla.Roots() {
		if root.Constraint == nil {
			b.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}))
		}
	}
	return b.String()
}

// fingerprint names a tree by all that is in it.
func fingerprint(nodes []node, ids IDMap) string {
	h := sha256.New()
	fmt.Fprintf(h, "%d %d\n", ids.Base, ids.Size)
	for _, n := range sorted(nodes) {
		fmt.Fprintf(h, "%q %o %d %q\n", n.path, n.mode, n.owner, n.content)
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}

func sorted(nodes []node) []node {
	return slices.SortedFunc(slices.Values(nodes), func(a, b node) int { return cmp.Compare(a.path, b.path) })
}

// writeTree makes the tree in the new directory dir.
func writeTree(dir string, nodes []node, ids IDMap) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	if err := settleNode(dir, node{mode: fs.ModeDir | 0o755}, ids); err != nil {
		return err
	}
	for _, n := range sorted(nodes) { // parents sort before what is in them
		if err := writeNode(dir, n, ids); err != nil {
			return err
		}
	}
	return nil
}

func writeNode(dir string, n node, ids IDMap) error {
	name := filepath.Join(dir, filepath.FromSlash(n.path))
	var err error
	switch {
	case n.mode.IsDir():
		err = os.Mkdir(name, 0o700)
	case n.mode&fs.ModeSymlink != 0:
		err = os.Symlink(n.content, name)
	default:
		err = os.WriteFile(name, []byte(n.content), 0o600)
	}
	if err != nil {
		return err
	}
	return settleNode(name, n, ids)
}

func settleNode(name string, n node, ids IDMap) error {
	if privileged() {
		id := int(ids.Host(n.owner))
		if err := os.Lchown(name, id, id); err != nil {
			return err
		}
	}
	if n.mode&fs.ModeSymlink != 0 {
		return nil
	}
	if err := os.Chmod(name, n.mode&^fs.ModeType); err != nil {
		return err
	}
	return os.Chtimes(name, time.Time{}, time.Unix(0, 0))
}
