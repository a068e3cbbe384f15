package manifest

import (
	"strings"

	"cupola/server/bosh/release"
)

func (l *linter) releases() {
	seen := map[string]bool{}
	for i := range l.m.Releases {
		r := &l.m.Releases[i]
		l.name(r.At, "release", r.Name, seen)
		if err := r.fit(); err != nil && !l.builtIn(r) && !variableText().MatchString(r.Version+r.URL) {
			f := Finding{Level: Error, Path: r.Path, Line: r.Line, What: err.Error(), Mend: r.fix()}
			l.found.add(f)
		}
		if _, err := release.ParseDigests(r.SHA1); err != nil && r.archived() && !variableText().MatchString(r.SHA1) {
			l.found.errorf(At{r.Path + "/sha1", r.Line}, "%s", err)
		}
		if host, _, _ := strings.Cut(r.URL, "/"); host == "hub.docker.com" {
			l.found.warnf(At{r.Path + "/url", r.Line}, "hub.docker.com is not a registry; use docker.io")
		}
		if s := r.Stemcell; s != nil {
			l.stemcell(*s, !r.archived())
		}
		if c := r.Credentials; (c.Username == "") != (c.Password == "") {
			l.found.errorf(At{r.Path + "/credentials", r.Line}, "username and password belong together; one is missing")
		}
	}
}

// fix says what to change in a release that no job can come from.
func (r *Release) fix() string {
	switch r.Version {
	case "":
		return "give version"
	case floating[1]:
		return "create and upload it with 'cupola deployment upload-release DIRECTORY', and give its version"
	}
	return "give the version of the release, or leave out url and upload the release"
}

// stemcell checks one that images may be named for, or that archives are compiled for.
func (l *linter) stemcell(s Stemcell, forImages bool) {
	switch {
	case s.OS == "":
		l.found.errorf(s.At, "the stemcell has no os")
	case !forImages:
	case s.Version == "":
		l.found.errorf(s.At, "the stemcell has no version")
	case s.Version == floating[0]:
		l.found.errorf(s.At, "stemcell version %q is not supported; images are named for one", s.Version)
	}
}

// stemcells checks the stemcells that groups use, and reports unused ones.
func (l *linter) stemcells() {
	needed, images := map[string]bool{}, map[string]bool{}
	for _, g := range l.m.InstanceGroups {
		if g.Stemcell != "" && l.needsStemcell(g, false) {
			needed[g.Stemcell] = true
			images[g.Stemcell] = images[g.Stemcell] || l.needsStemcell(g, true)
		}
	}
	seen := map[string]bool{}
	for _, s := range l.m.Stemcells {
		l.name(s.At, "stemcell", s.Alias, seen)
		if needed[s.Alias] {
			l.stemcell(s, images[s.Alias])
		} else {
			l.found.warnf(s.At, "not used")
		}
	}
}

// needsStemcell reports whether a release of the group's jobs has no stemcell; for
// images, a release with images.
func (l *linter) needsStemcell(g *InstanceGroup, images bool) bool {
	for _, j := range g.Jobs {
		if r := l.m.Release(j.Release); r != nil && !j.builtIn() && r.Stemcell == nil && !strings.HasPrefix(r.URL, "file://") && !(images && r.archived()) {
			return true
		}
	}
	return false
}
