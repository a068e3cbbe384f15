package debian

import (
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// finishDpkg writes the database by which dpkg, apt and scanners know what is
// there (dpkg(1)): status, and each package's list of files and scripts.
func finishDpkg(t *tree, packages []*installed) error {
	sorted := slices.SortedFunc(slices.Values(packages), func(a, b *installed) int { return strings.Compare(a.Name, b.Name) })
	var status strings.Builder
	for _, p := range sorted {
		status.WriteString(p.status(t))
		status.WriteByte('\n')
		base := "var/lib/dpkg/info/" + p.fileName(p.control.get("Multi-Arch")) + "."
		if err := t.put(base+"list", 0o644, []byte(p.list())); err != nil {
			return err
		}
		for _, name := range slices.Sorted(maps.Keys(p.members)) {
			mode := t.own(0o644).mode
			if slices.Contains([]string{"preinst", "postinst", "prerm", "postrm", "config"}, name) {
				mode = 0o755
			}
			if err := t.put(base+name, mode, p.members[name]); err != nil {
				return err
			}
		}
	}
	for name, content := range map[string]string{
		"status": status.String(), "available": "", "info/format": "1\n", "diversions": "", "statoverride": "", "triggers/File": "",
		"triggers/Unincorp": "",
	} {
		if err := t.put("var/lib/dpkg/"+name, 0o644, []byte(content)); err != nil {
			return err
		}
	}
	if err := t.put("etc/dpkg/dpkg.cfg.d/excludes", 0o644, []byte(dpkgExcludes)); err != nil {
		return err
	}
	return t.mkdir("var/lib/dpkg/updates", t.own(0o755))
}

// dpkgExcludes tells dpkg what isDocumentation left out.
const dpkgExcludes = `path-exclude=/usr/share/doc/*
path-include=/usr/share/doc/*/copyright
path-exclude=/usr/share/man/*
path-exclude=/usr/share/info/*
path-exclude=/usr/share/lintian/*
path-exclude=/usr/share/doc-base/*
path-exclude=/usr/share/gtk-doc/*
path-exclude=/usr/share/locale/*/LC_MESSAGES/*.mo
`

// status is the package's stanza: its control file, and its state after Package.
func (p *installed) status(t *tree) string {
	stanza := slices.Clone(p.control)
	at := slices.IndexFunc(stanza, func(f field) bool { return strings.EqualFold(f.name, "Package") }) + 1
	stanza = slices.Insert(stanza, at, field{"Status", "install ok installed"})
	if files := p.conffiles(t); files != "" {
		stanza = append(stanza, field{"Conffiles", files})
	}
	return stanza.String()
}

// conffiles lists the package's configuration files with their sums, by which dpkg sees
// what a user has changed.
func (p *installed) conffiles(t *tree) string {
	var b strings.Builder
	for line := range strings.Lines(string(p.members["conffiles"])) {
		name := strings.TrimSpace(line)
		if !strings.HasPrefix(name, "/") || strings.ContainsAny(name, " \t") {
			continue // "remove-on-upgrade /path" names what must not be there
		}
		if content, err := t.read(name); err == nil {
			sum := md5.Sum(content)
			fmt.Fprintf(&b, "\n %s %s", name, hex.EncodeToString(sum[:]))
		}
	}
	return b.String()
}

// list is the content of the .list file: every path as the package ships it.
func (p *installed) list() string {
	var b strings.Builder
	for _, path := range p.shipped {
		if path == "/" {
			path = "/."
		}
		b.WriteString(path + "\n")
	}
	return b.String()
}
