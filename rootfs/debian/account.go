package debian

import (
	"fmt"
	"io/fs"
	"strings"
	"time"
)

// finishAccounts writes the account files from base-passwd's masters, with CF's
// vcap, and vcap's home. No account has a password.
func finishAccounts(t *tree, _ []*installed) error {
	users, err := master(t, "passwd")
	if err != nil {
		return err
	}
	groups, err := master(t, "group")
	if err != nil {
		return err
	}
	users = append(users, fmt.Sprintf("vcap:!:%d:%d::/%s:/bin/bash", vcapUID, vcapUID, vcapHome))
	groups = append(groups, fmt.Sprintf("vcap:!:%d:", vcapUID))
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
	return makeHome(t)
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

// makeHome makes vcap's home with the app directory, and /app that leads there.
func makeHome(t *tree) error {
	m := t.own(0o755)
	m.uid, m.gid = vcapUID, vcapUID
	for _, dir := range []string{vcapHome, vcapHome + "/app"} {
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
		to := vcapHome + strings.TrimPrefix(name, "etc/skel")
		if _, err := t.write(to, m, strings.NewReader(string(content))); err != nil {
			return err
		}
	}
	return t.symlink("app", "/"+vcapHome+"/app", t.own(0o777))
}
