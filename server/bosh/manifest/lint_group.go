package manifest

import (
	"fmt"
	"slices"
	"strings"

	"cupola/runtime/suggest"
)

func (l *linter) groups() {
	seen, total := map[string]bool{}, 0
	for _, g := range l.m.InstanceGroups {
		l.name(g.At, "instance group", g.Name, seen)
		l.scale(g)
		l.update(g.Update, g.Path+"/update")
		l.disk(g)
		l.images(g)
		l.jobs(g)
		total += min(g.Instances, maxTotal)
	}
	if total > maxTotal {
		l.found.errorf(At{Path: "/instance_groups", Line: l.m.at.Line}, "there are more than %d instances", maxTotal)
	}
	l.migrations()
}

// scale checks how often a group runs, and when.
func (l *linter) scale(g *InstanceGroup) {
	if !slices.Contains(lifecycles, g.Lifecycle) && !variableText().MatchString(string(g.Lifecycle)) {
		l.found.errorf(At{g.Path + "/lifecycle", g.Line}, "unknown lifecycle %q; it is service, errand or auto-errand", cut(string(g.Lifecycle), 60))
	}
	if g.Instances > maxInstances {
		l.found.errorf(At{g.Path + "/instances", g.Line}, "%d instances; a group can have at most %d", g.Instances, maxInstances)
	}
	if (g.Lifecycle == Errand || g.Lifecycle == AutoErrand) && g.Instances != 1 && !g.unsure {
		l.soft(At{g.Path + "/instances", g.Line}, "errand instance group %q must have exactly 1 instance, has %d", g.Name, g.Instances)
	}
	l.azs(g)
}

// azs checks the AZs of a group, and reports how many instances each has.
func (l *linter) azs(g *InstanceGroup) {
	n, seen := len(g.AZs), map[string]bool{}
	if n > maxAZs {
		l.found.errorf(At{g.Path + "/azs", g.Line}, "%d AZs; a group can have at most %d", n, maxAZs)
		return
	}
	for i, az := range g.AZs {
		l.name(At{fmt.Sprintf("%s/azs/%d", g.Path, i), g.Line}, "AZ", az, seen)
	}
	if n == 0 || g.Lifecycle != Service || g.unsure || g.Instances > maxInstances {
		return
	}
	counts := make([]int, n)
	for _, i := range g.All() {
		counts[i.AZIndex-1]++
	}
	each := make([]string, n)
	for i, az := range g.AZs {
		each[i] = fmt.Sprintf("%d in %s", counts[i], cut(az, 60))
	}
	l.found.infof(g.At, "%d %s over %d %s: %s", g.Instances, plural("instance", g.Instances), n, plural("AZ", n), strings.Join(each, ", "))
}

func plural(noun string, n int) string {
	if n == 1 {
		return noun
	}
	return noun + "s"
}

func (l *linter) disk(g *InstanceGroup) {
	if g.PersistentDiskMB == 0 && g.PersistentDiskType != "" && l.m.cloud == nil {
		l.found.warnf(At{g.Path + "/persistent_disk_type", g.Line}, "there is no cloud-config with this disk type; give one, or persistent_disk, the size in MB")
	}
}

// images reports releases of a group without a known image, and an unused
// stemcell.
func (l *linter) images(g *InstanceGroup) {
	reported := map[string]bool{}
	for _, j := range g.Jobs {
		r := l.m.Release(j.Release)
		if r == nil || reported[r.Name] || j.builtIn() || r.fit() != nil || variableText().MatchString(r.URL+r.Version+g.Stemcell) {
			continue // the release reports its faults
		}
		reported[r.Name] = true
		if s := l.m.stemcellOf(g, r); s != nil && (s.OS == "" || s.Version == "" && !r.archived() || variableText().MatchString(s.OS+s.Version)) {
			continue
		}
		if _, err := l.m.Image(g, j); err != nil {
			l.found.add(Finding{Level: Error, Path: j.Path, Line: j.Line, What: err.Error(), Mend: l.fixImage(g, r)})
		}
	}
	if g.Stemcell != "" && len(g.Jobs) > 0 && !l.needsStemcell(g, false) {
		l.found.warnf(At{g.Path + "/stemcell", g.Line}, "not used")
	}
}

func (l *linter) fixImage(g *InstanceGroup, r *Release) string {
	var aliases []string
	for _, s := range l.m.Stemcells {
		aliases = append(aliases, s.Alias)
	}
	switch {
	case l.m.stemcellOf(g, r) != nil:
		return "registries take lower case paths, and tags of up to 128 letters, digits, dots, hyphens and underscores"
	case g.Stemcell != "":
		return fmt.Sprintf("no stemcell has the alias %q%s", cut(g.Stemcell, 60), suggest.Hint(g.Stemcell, aliases))
	}
	return fmt.Sprintf("give the release %q a stemcell, or the group the alias of one", r.Name)
}

// migrations checks what groups were before: no disk can become two, or be
// that of a group that is there.
func (l *linter) migrations() {
	taken := map[string]string{}
	for _, g := range l.m.InstanceGroups {
		for _, from := range g.MigratedFrom {
			key := from.Name + "\x00" + from.AZ
			switch {
			case variableText().MatchString(from.Name + from.AZ):
				continue
			case from.Name == "" || !plainName().MatchString(from.Name) || strings.Contains(from.Name, ".."):
				l.found.errorf(from.At, "%q is not a valid name for an instance group", cut(from.Name, 60))
			case from.Name == g.Name && from.AZ == "":
				l.found.errorf(from.At, "the group cannot be migrated from itself")
			case from.Name != g.Name && l.m.Group(from.Name) != nil:
				l.found.errorf(from.At, "the instance group %q is there still; remove it, or do not migrate from it", from.Name)
			case taken[key] != "":
				l.found.errorf(from.At, "%q is migrated to %q already", from.Name, taken[key])
			}
			taken[key] = g.Name
		}
	}
}
