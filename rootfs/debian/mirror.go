package debian

import (
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"
)

// codenames tell which distribution a source of the host belongs to, whatever
// release the host itself runs. (Derivatives keep their parent's codenames; the
// signature decides in the end.)
func codenames(distro string) []string {
	if distro == "Ubuntu" {
		return []string{"focal", "jammy", "mantic", "noble", "oracular", "plucky", "questing", "resolute"}
	}
	return []string{"buster", "bullseye", "bookworm", "trixie", "forky", "duke", "sid", "oldstable", "stable", "testing", "unstable"}
}

// mirrors returns the base URLs to try for a pocket, best first: those the caller
// named, else those of the host's apt sources.
func mirrors(o Options, s suite, p pocket, host []source) ([]string, error) {
	if o.Mirror != "" {
		return namedMirrors(o, s, p)
	}
	found := hostMirrors(s, p, host)
	if len(found) == 0 {
		return nil, fmt.Errorf("no %s mirror for %s in the host's apt sources: pass --mirror URL", s.distro, p.name)
	}
	return found, nil
}

// namedMirrors follows the layout of Debian's own hosts, where debian-security
// lies next to debian; Ubuntu has all its pockets in one place.
func namedMirrors(o Options, s suite, p pocket) ([]string, error) {
	named := o.Mirror
	if p.security && o.SecurityMirror != "" {
		named = o.SecurityMirror
	}
	u, err := url.Parse(named)
	if err != nil || !isHTTP(named) || u.Host == "" {
		return nil, fmt.Errorf("mirror %q is not an http or https URL", named)
	}
	if p.security && o.SecurityMirror == "" && s.distro == "Debian" {
		u.Path = path.Join("/", u.Path) + "-security"
	}
	return []string{strings.TrimRight(u.String(), "/")}, nil
}

// hostMirrors picks the sources of the suite's distribution. The suite's own
// entries come before those of its sisters, and entries bound to the archive's
// keyring before the rest, among which may be other people's archives.
func hostMirrors(s suite, p pocket, host []source) []string {
	type candidate struct {
		url   string
		score int
	}
	var all []candidate
	for _, src := range host {
		score := sourceScore(s, p, src)
		if score == 0 {
			continue
		}
		for _, uri := range src.uris {
			uri = strings.TrimRight(uri, "/")
			if !slices.ContainsFunc(all, func(c candidate) bool { return c.url == uri }) {
				all = append(all, candidate{uri, score})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b candidate) int { return b.score - a.score })
	urls := make([]string, len(all))
	for i, c := range all {
		urls[i] = c.url
	}
	return urls
}

// sourceScore is 0 for a source of no use.
func sourceScore(s suite, p pocket, src source) int {
	if len(src.components) > 0 && !slices.Contains(src.components, "main") {
		return 0
	}
	score := 0
	for _, name := range src.suites {
		base, part, _ := strings.Cut(name, "-")
		security := part == "security" || strings.HasSuffix(name, "/updates")
		// Ubuntu's mirrors carry the security pocket too; Debian's do not.
		if !slices.Contains(codenames(s.distro), base) || s.distro == "Debian" && security != p.security {
			continue
		}
		rank := 1
		if base == s.codename {
			rank = 2
		}
		if name == p.name {
			rank = 3
		}
		score = max(score, rank)
	}
	isArchive := func(keyring string) bool {
		return strings.Contains(path.Base(keyring), strings.ToLower(s.distro)+"-archive")
	}
	if score > 0 && slices.ContainsFunc(src.signedBy, isArchive) {
		score += 10
	}
	return score
}
