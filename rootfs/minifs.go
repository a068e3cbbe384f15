package rootfs

import "cupola/runtime/contract"

// minifs is the stack that is always there: made of nothing but the helper in every container, accounts and CA
// certificates. Static binaries and simple commands run in it.
const minifsName = "minifs"

// shell is never to be called bash in minifs: scripts that ask for bash need one that is.
const minifsShell = "/bin/sh"

func minifsTree(tools []string) []node {
	nodes := append(skeleton(minifsShell),
		dirNode("bin", 0o755), linkNode("sbin", "bin"),
		dirNode("usr", 0o755), linkNode("usr/bin", "../bin"), linkNode("usr/sbin", "../bin"),
		dirNode("usr/local", 0o755), dirNode("usr/local/bin", 0o755), dirNode("usr/lib", 0o755), dirNode("lib", 0o755),
		fileNode(caBundle, caCertificates()),
		linkNode("etc/ssl/cert.pem", "certs/ca-certificates.crt"),
		fileNode("etc/os-release", "NAME=\"cupola minifs\"\nID=minifs\nPRETTY_NAME=\"cupola minifs\"\n"),
	)
	seen := map[string]bool{"bash": true}
	for _, tool := range append([]string{"sh"}, tools...) {
		if !seen[tool] {
			nodes = append(nodes, linkNode("bin/"+tool, contract.Helper))
		}
		seen[tool] = true
	}
	return nodes
}
