package kube

import (
	"strconv"
	"strings"
)

// Since this Linux, all file systems of a cell's pods can be shown to a user namespace; those of Secrets were the last ones.
const mapsMajor, mapsMinor = 6, 3

// hasUserNamespaces reports whether pods of a node may have their own user namespaces: its container runtime and its kernel must support them.
func hasUserNamespaces(node Object) bool {
	if !kernelHas(node.Text("status", "nodeInfo", "kernelVersion"), mapsMajor, mapsMinor) {
		return false
	}
	for _, handler := range node.Items("status", "runtimeHandlers") {
		if handler.Text("name") == "" { // the default one
			has, _ := handler.Map("features")["userNamespaces"].(bool)
			return has
		}
	}
	return false
}

// kernelHas reports whether a version of Linux, like 6.8.0-31-generic, is at least major.minor.
func kernelHas(version string, major, minor int) bool {
	first, rest, _ := strings.Cut(version, ".")
	second, _, _ := strings.Cut(rest, ".")
	second, _, _ = strings.Cut(second, "-")
	a, errA := strconv.Atoi(first)
	b, errB := strconv.Atoi(second)
	return errA == nil && errB == nil && (a > major || a == major && b >= minor)
}
