package system

import (
	"encoding/pem"
	"fmt"
	"io/fs"
	"strings"

	mozilla "golang.org/x/crypto/x509roots/fallback/bundle"

	"cupola/rootfs/tree"
	"cupola/runtime/contract"
)

// CABundle is the file with the CA certificates that a system trusts.
const CABundle = "etc/ssl/certs/ca-certificates.crt"

// Shell is the one that every stack has.
const Shell = "/bin/sh"

// Skeleton is what every built-in stack has: the directories and accounts that Diego's lifecycle relies on.
func Skeleton(shell string) []tree.Node {
	home := tree.Node{Path: contract.Home[1:], Mode: fs.ModeDir | 0o755, Owner: contract.VcapID}
	app := tree.Node{Path: contract.AppDir[1:], Mode: fs.ModeDir | 0o755, Owner: contract.VcapID}
	return []tree.Node{
		tree.Dir("dev", 0o755), tree.Dir("proc", 0o555), tree.Dir("sys", 0o555), tree.Dir("run", 0o755),
		tree.Dir("etc", 0o755), tree.Dir("etc/ssl", 0o755), tree.Dir("etc/ssl/certs", 0o755),
		tree.Dir("home", 0o755), home, app, tree.Link("app", contract.AppDir),
		tree.Dir("root", 0o700), tree.Dir("tmp", 0o777|fs.ModeSticky), tree.Dir(contract.ProgramDir[1:], 0o755),
		tree.Dir("var", 0o755), tree.Dir("var/tmp", 0o777|fs.ModeSticky), tree.Dir("var/lib", 0o755), tree.Link("var/run", "/run"),
		tree.Dir("mnt", 0o755), tree.Dir("opt", 0o755), tree.Dir("srv", 0o755),
		tree.File("etc/passwd", passwd(shell)), tree.File("etc/group", group()),
		tree.File("etc/hosts", "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n"),
		tree.File("etc/hostname", "localhost\n"), tree.File("etc/resolv.conf", ""),
		tree.File("etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\nnetworks: files\nservices: files\nprotocols: files\n"),
		tree.File("etc/shells", shell+"\n"),
		tree.File("etc/profile", "export PATH=${PATH:-/usr/local/bin:/usr/bin:/bin}\n"),
	}
}

// vcapEntry is the line of the apps' user in /etc/passwd.
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

// CACertificates is Mozilla's list as PEM. Roots that are trusted under constraints alone are left out: a file of
// certificates cannot say the constraint.
func CACertificates() string {
	var b strings.Builder
	for root := range mozilla.Roots() {
		if root.Constraint == nil {
			b.Write(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}))
		}
	}
	return b.String()
}
