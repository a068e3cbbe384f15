package stack

import (
	"cupola/runtime/contract"

	"cupola/rootfs/system"
	"cupola/rootfs/tree"
)

// Minifs is the stack that is always there. It consists of the helper in every container, accounts and CA certificates. Static
// binaries and simple commands run in it.
const Minifs = "minifs"

// minifsTree has a shell that is never called bash: scripts that ask for bash need one that is.
func minifsTree(tools []string) []tree.Node {
	nodes := append(system.Skeleton(system.Shell),
		tree.Dir("bin", 0o755), tree.Link("sbin", "bin"),
		tree.Dir("usr", 0o755), tree.Link("usr/bin", "../bin"), tree.Link("usr/sbin", "../bin"),
		tree.Dir("usr/local", 0o755), tree.Dir("usr/local/bin", 0o755), tree.Dir("usr/lib", 0o755), tree.Dir("lib", 0o755),
		tree.File(system.CABundle, system.CACertificates()),
		tree.Link("etc/ssl/cert.pem", "certs/ca-certificates.crt"),
		tree.File("etc/os-release", "NAME=\"cupola minifs\"\nID=minifs\nPRETTY_NAME=\"cupola minifs\"\n"),
	)
	seen := map[string]bool{"bash": true}
	for _, tool := range append([]string{"sh"}, tools...) {
		if !seen[tool] {
			nodes = append(nodes, tree.Link("bin/"+tool, contract.Helper))
		}
		seen[tool] = true
	}
	return nodes
}
