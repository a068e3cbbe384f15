package unpack

import (
	"path"
	"strings"
)

const (
	maxName = 4095 // PATH_MAX less the final NUL
	maxPart = 255  // NAME_MAX
)

// cleanName turns an entry's name into a slash-separated path relative to the root of the archive, "." for the root.
// Images may spell names from "/".
func cleanName(name string, image bool) (string, error) {
	refuse := func(reason string) (string, error) { return "", &EntryError{Name: name, Reason: reason} }
	rel := name
	if image {
		rel = strings.TrimLeft(rel, "/")
	}
	switch {
	case rel == "" && image && name != "":
		return ".", nil
	case rel == "":
		return refuse("has no name")
	case len(rel) > maxName:
		return "", &EntryError{Name: name[:64] + "…", Reason: "has a name that is too long"}
	case strings.HasPrefix(rel, "/"):
		return refuse("has an absolute name")
	case strings.ContainsRune(rel, 0):
		return refuse("has a NUL in its name")
	}
	for part := range strings.SplitSeq(rel, "/") {
		if part == ".." {
			return refuse("climbs out of the archive")
		}
		if len(part) > maxPart {
			return "", &EntryError{Name: part[:64] + "…", Reason: "has a name that is too long"}
		}
	}
	return path.Clean(rel), nil
}

// linkAbove returns the first of name's parents that is in links.
func linkAbove(name string, links map[string]struct{}) (string, bool) {
	if len(links) == 0 {
		return "", false
	}
	for i := range len(name) {
		if name[i] != '/' {
			continue
		}
		if _, ok := links[name[:i]]; ok {
			return name[:i], true
		}
	}
	return "", false
}
