package create

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"cupola/runtime/pattern"
)

// sources are the files below src and blobs. Those of src hide equal names in blobs.
type sources struct {
	paths   map[string]string // by their names
	missing []string          // names of blobs that config/blobs.yml lists and that are not here
}

func listSources(dir string) (*sources, error) {
	all := &sources{paths: map[string]string{}}
	for _, below := range []string{"blobs", "src"} {
		root := filepath.Join(dir, below)
		err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) && path == root {
				return nil
			}
			if err != nil || e.IsDir() {
				return err
			}
			name, err := filepath.Rel(root, path)
			all.paths[filepath.ToSlash(name)] = path
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	var blobs map[string]any
	if err := readYAML(filepath.Join(dir, "config", "blobs.yml"), &blobs); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(blobs)) {
		if _, err := os.Stat(filepath.Join(dir, "blobs", filepath.FromSlash(name))); err != nil {
			all.missing = append(all.missing, name)
		}
	}
	return all, nil
}

func byPlace(a, b file) int { return cmp.Compare(a.at, b.at) }

// choose returns the files that match any pattern and no excluded one, by name. A
// pattern must match something.
func (s *sources) choose(patterns, excluded []string) (chosen []file, err error) {
	var out []*regexp.Regexp
	for _, pattern := range excluded {
		rule, err := glob(pattern)
		if err != nil {
			return nil, err
		}
		out = append(out, rule)
	}
	isOut := func(name string) bool {
		return slices.ContainsFunc(out, func(rule *regexp.Regexp) bool { return rule.MatchString(name) })
	}
	names := map[string]bool{}
	for _, pattern := range patterns {
		rule, err := glob(pattern)
		if err != nil {
			return nil, err
		}
		found := false
		for name := range s.paths {
			if rule.MatchString(name) {
				found = true
				names[name] = !isOut(name)
			}
		}
		if blob := slices.IndexFunc(s.missing, rule.MatchString); blob >= 0 {
			return nil, fmt.Errorf("the blob %s of config/blobs.yml is not in blobs: run 'bosh sync-blobs'", s.missing[blob])
		}
		if !found {
			return nil, fmt.Errorf("missing files for pattern '%s'", pattern)
		}
	}
	for name, in := range names {
		if in {
			chosen = append(chosen, file{path: s.paths[name], at: name})
		}
	}
	return chosen, nil
}

// tokens are the parts of a pattern that mean something.
var tokens = pattern.Lazy(`\*\*/|\*\*|\*|\?|\{[^{}]*\}|\[[^\]]+\]|[^*?{}\[\]]+|.`)

// glob turns a pattern of the bosh CLI into a regular expression: ** is any number of
// directories.
func glob(pattern string) (*regexp.Regexp, error) {
	var rule strings.Builder
	rule.WriteString("^")
	for _, token := range tokens().FindAllString(filepath.ToSlash(filepath.Clean(pattern)), -1) {
		switch {
		case token == "**/":
			rule.WriteString("(?:.*/)?")
		case token == "**":
			rule.WriteString(".*")
		case token == "*":
			rule.WriteString("[^/]*")
		case token == "?":
			rule.WriteString("[^/]")
		case token[0] == '{' && len(token) > 1:
			var options []string
			for option := range strings.SplitSeq(token[1:len(token)-1], ",") {
				options = append(options, regexp.QuoteMeta(option))
			}
			rule.WriteString("(?:" + strings.Join(options, "|") + ")")
		case token[0] == '[' && len(token) > 1:
			rule.WriteString(token)
		default:
			rule.WriteString(regexp.QuoteMeta(token))
		}
	}
	re, err := regexp.Compile(rule.String() + "$")
	if err != nil {
		return nil, fmt.Errorf("invalid pattern '%s'", pattern)
	}
	return re, nil
}
