package debian

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// A source is one entry of apt's sources (sources.list(5)): every URI serves
// every suite.
type source struct {
	uris       []string
	suites     []string
	components []string
	signedBy   []string // keyring files
}

// parseSourceList reads the one-line format. Entries of other types than "deb"
// and lines it cannot read are left out: apt decides about those.
func parseSourceList(text string) []source {
	var all []source
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		rest, ok := strings.CutPrefix(strings.TrimSpace(line), "deb")
		if !ok || rest == "" || !strings.ContainsAny(rest[:1], " \t[") {
			continue
		}
		var s source
		rest = strings.TrimSpace(rest)
		if opts, after, ok := strings.Cut(rest, "]"); ok && strings.HasPrefix(opts, "[") {
			rest = after
			for opt := range strings.FieldsSeq(opts[1:]) {
				if v, ok := strings.CutPrefix(strings.ToLower(opt), "signed-by="); ok {
					s.signedBy = keyringPaths(opt[len(opt)-len(v):])
				}
			}
		}
		if f := strings.Fields(rest); len(f) >= 2 {
			s.uris, s.suites, s.components = f[:1], f[1:2], f[2:]
			all = append(all, s)
		}
	}
	return all
}

// parseSources reads the deb822 format. Disabled entries and those of other types
// than "deb" are left out.
func parseSources(text string) ([]source, error) {
	var all []source
	for p, err := range paragraphs(text) {
		if err != nil {
			return all, err
		}
		if !slices.Contains(p.words("Types"), "deb") || slices.Contains([]string{"no", "false", "0"}, strings.ToLower(p.get("Enabled"))) {
			continue
		}
		all = append(all, source{
			uris:       p.words("URIs"),
			suites:     p.words("Suites"),
			components: p.words("Components"),
			signedBy:   keyringPaths(p.get("Signed-By")),
		})
	}
	return all, nil
}

// keyringPaths drops what Signed-By may hold besides paths: fingerprints and
// whole keys.
func keyringPaths(value string) []string {
	return slices.DeleteFunc(strings.FieldsFunc(value, func(r rune) bool { return strings.ContainsRune(", \t\n", r) }),
		func(s string) bool { return !strings.HasPrefix(s, "/") })
}

// readSources reads apt's sources of the machine whose root is fsys, in apt's
// order. A URI "mirror+file:/path" is replaced by what that file lists. Absent
// files are not an error.
func readSources(fsys fs.FS) ([]source, error) {
	names := []string{"etc/apt/sources.list"}
	for _, glob := range []string{"etc/apt/sources.list.d/*.list", "etc/apt/sources.list.d/*.sources"} {
		more, err := fs.Glob(fsys, glob)
		if err != nil {
			return nil, err
		}
		names = append(names, more...)
	}
	var all []source
	for _, name := range names {
		text, err := fs.ReadFile(fsys, name)
		if err != nil {
			continue
		}
		parsed := parseSourceList(string(text))
		if strings.HasSuffix(name, ".sources") {
			if parsed, err = parseSources(string(text)); err != nil {
				return nil, fmt.Errorf("read /%s: %w", name, err)
			}
		}
		all = append(all, parsed...)
	}
	for i := range all {
		all[i].uris = expandMirrors(fsys, all[i].uris)
	}
	return all, nil
}

// expandMirrors keeps the http and https URIs. Cloud images of Debian name their
// mirrors in a file of one URI a line.
func expandMirrors(fsys fs.FS, uris []string) []string {
	var all []string
	for _, uri := range uris {
		if path, ok := strings.CutPrefix(uri, "mirror+file:"); ok {
			text, err := fs.ReadFile(fsys, strings.TrimLeft(path, "/"))
			if err != nil {
				continue
			}
			for line := range strings.Lines(string(text)) {
				if f := strings.Fields(line); len(f) > 0 && isHTTP(f[0]) {
					all = append(all, f[0])
				}
			}
		} else if isHTTP(uri) {
			all = append(all, uri)
		}
	}
	return all
}

func isHTTP(uri string) bool {
	return strings.HasPrefix(uri, "http://") || strings.HasPrefix(uri, "https://")
}
