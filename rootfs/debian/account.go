package debian

import (
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"
)

// finishAccounts writes the account files from base-passwd's masters, with extra
// users and their homes. No account has a password.
func finishAccounts(t *tree, extra []User) error {
	users, err := master(t, "passwd")
	if err != nil {
		return err
	}
	groups, err := master(t, "group")
	if err != nil {
		return err
	}
	for _, u := range extra {
		users = append(users, fmt.Sprintf("%s:!:%d:%d::/%s:/bin/bash", u.Name, u.ID, u.ID, u.Home))
		groups = append(groups, fmt.Sprintf("%s:!:%d:", u.Name, u.ID))
	}
	day := t.nodes[""].mtime.Unix() / int64((24 * time.Hour).Seconds())
	var passwd, shadow, group, gshadow strings.Builder
	for _, line := range users {
		name, secret, rest := splitAccount(line)
		fmt.Fprintf(&passwd, "%s:x:%s\n", name, rest)
		fmt.Fprintf(&shadow, "%s:%s:%d:0:99999:7:::\n", name, secret, day)
	}
	for _, line := range groups {
		name, secret, rest := splitAccount(line)
		fmt.Fprintf(&group, "%s:x:%s\n", name, rest)
		fmt.Fprintf(&gshadow, "%s:%s::\n", name, secret)
	}
	for _, f := range []struct {
		name string
		mode fs.FileMode
		gid  int
		text string
	}{
		{"etc/passwd", 0o644, 0, passwd.String()},
		{"etc/group", 0o644, 0, group.String()},
		{"etc/shadow", 0o640, shadowGID, shadow.String()},
		{"etc/gshadow", 0o640, shadowGID, gshadow.String()},
		{"etc/subuid", 0o644, 0, ""},
		{"etc/subgid", 0o644, 0, ""},
	} {
		m := t.own(f.mode)
		m.gid = f.gid
		if _, err := t.write(f.name, m, strings.NewReader(f.text)); err != nil {
			return err
		}
	}
	for _, u := range extra {
		if err := makeHome(t, u); err != nil {
			return err
		}
	}
	return nil
}

// shadowGID is fixed by Debian policy.
const shadowGID = 42

// master returns the lines of base-passwd's file; without that package there is
// still root.
func master(t *tree, kind string) ([]string, error) {
	name := "usr/share/base-passwd/" + kind + ".master"
	if t.lookup(name) == nil {
		return map[string][]string{"passwd": {"root:*:0:0:root:/root:/bin/bash"}, "group": {"root:*:0:"}}[kind], nil
	}
	content, err := t.read(name)
	if err != nil {
		return nil, err
	}
	var lines []string
	for line := range strings.Lines(string(content)) {
		if line = strings.TrimSpace(line); strings.Count(line, ":") >= 3 {
			lines = append(lines, line)
		}
	}
	return lines, nil
}

func splitAccount(line string) (name, secret, rest string) {
	f := strings.SplitN(line, ":", 3)
	return f[0], f[1], f[2]
}

// makeHome makes a user's home, and the other directories of the user.
func makeHome(t *tree, u User) error {
	m := t.own(0o755)
	m.uid, m.gid = u.ID, u.ID
	for _, dir := range append([]string{u.Home}, u.Dirs...) {
		if err := t.mkdir(dir, m); err != nil {
			return err
		}
	}
	m.mode = 0o644
	for _, name := range t.glob("etc/skel", ".*") {
		content, err := t.read(name)
		if err != nil {
			continue // a directory
		}
		to := u.Home + strings.TrimPrefix(name, "etc/skel")
		if _, err := t.write(to, m, strings.NewReader(string(content))); err != nil {
			return err
		}
	}
	return nil
}

// finishLinks makes the extra links.
func finishLinks(t *tree, links map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(links)) {
		if err := t.symlink(name, links[name], t.own(0o777)); err != nil {
			return err
		}
	}
	return nil
}
