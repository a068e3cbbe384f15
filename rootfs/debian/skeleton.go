package debian

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// makeSkeleton lays the links that have to be there before the first package: a
// merged /usr, which packages take for granted but none makes, and those of /var.
func makeSkeleton(t *tree, arch string) error {
	merged := []string{"bin", "lib", "sbin"}
	if slices.Contains([]string{"amd64", "ppc64el"}, arch) {
		merged = append(merged, "lib64")
	}
	links := map[string]string{"var/run": "/run", "var/lock": "/run/lock"}
	for _, name := range merged {
		links[name] = "usr/" + name
		if err := t.mkdir("usr/"+name, t.own(0o755)); err != nil {
			return err
		}
	}
	if err := t.mkdir("run/lock", t.own(0o777|fs.ModeSticky)); err != nil {
		return err
	}
	for name, target := range links {
		if err := t.symlink(name, target, t.own(0o777)); err != nil {
			return err
		}
	}
	return nil
}

// own is the meta of what the build itself makes: root's, and as old as the lock.
func (t *tree) own(mode fs.FileMode) meta {
	return meta{mode: mode, mtime: t.nodes[""].mtime, owner: noPackage}
}

// finish does what the packages' maintainer scripts would have done, as far as
// a container has use for it, and writes dpkg's database.
func finish(t *tree, packages []*installed, x Extras) error {
	steps := []struct {
		name string
		do   func() error
	}{
		{"base files", func() error { return finishBase(t) }},
		{"accounts", func() error { return finishAccounts(t, x.Users) }},
		{"links", func() error { return finishLinks(t, x.Links) }},
		{"shell", func() error { return finishShell(t) }},
		{"PAM", func() error { return finishPAM(t) }},
		{"locale", func() error { return finishLocale(t, x.Locale) }},
		{"certificates", func() error { return finishCertificates(t, packages) }},
		{"openssl", func() error { return finishOpenSSL(t, x.OpenSSL) }},
		{"alternatives", func() error { return finishAlternatives(t, packages) }},
		{"libraries", func() error { return finishLibraries(t, packages) }},
		{"dpkg database", func() error { return finishDpkg(t, packages) }},
	}
	for _, s := range steps {
		if err := s.do(); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return t.finish()
}

// copyIfAbsent does as most scripts do with a package's default of a file.
func copyIfAbsent(t *tree, from, to string, mode fs.FileMode) error {
	if t.lookup(to) != nil || t.lookup(from) == nil {
		return nil
	}
	content, err := t.read(from)
	if err != nil {
		return err
	}
	return t.put(to, mode, content)
}

// finishBase follows base-files, libc-bin, readline-common and tzdata.
func finishBase(t *tree) error {
	for _, c := range []struct{ from, to string }{
		{"usr/share/base-files/profile", "etc/profile"},
		{"usr/share/base-files/dot.profile", "root/.profile"},
		{"usr/share/base-files/dot.bashrc", "root/.bashrc"},
		{"usr/share/base-files/nsswitch.conf", "etc/nsswitch.conf"},
		{"usr/share/libc-bin/nsswitch.conf", "etc/nsswitch.conf"},
		{"usr/share/readline/inputrc", "etc/inputrc"},
	} {
		if err := copyIfAbsent(t, c.from, c.to, 0o644); err != nil {
			return err
		}
	}
	for _, dir := range []string{"mnt", "srv", "opt", "media", "etc/opt", "var/opt", "usr/local/bin", "usr/local/sbin",
		"usr/local/lib", "usr/local/share", "usr/local/include", "usr/local/etc", "usr/local/src", "proc", "sys", "dev"} {
		if err := t.mkdir(dir, t.own(0o755)); err != nil {
			return err
		}
	}
	for _, dir := range []string{"tmp", "var/tmp"} {
		if err := t.mkdir(dir, t.own(0o777|fs.ModeSticky)); err != nil {
			return err
		}
	}
	// The files that a runtime mounts its own over.
	for _, f := range []struct{ name, text string }{
		{"etc/hosts", "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n"}, {"etc/hostname", ""}, {"etc/resolv.conf", ""},
	} {
		if t.lookup(f.name) == nil {
			if err := t.put(f.name, 0o644, []byte(f.text)); err != nil {
				return err
			}
		}
	}
	return errors.Join(finishMail(t), finishTimezone(t))
}

// finishMail makes the mail directory, which belongs to Debian's group 8, mail.
func finishMail(t *tree) error {
	m := t.own(0o775 | fs.ModeSetgid)
	m.gid = 8
	if err := t.mkdir("var/mail", m); err != nil || t.lookup("var/spool/mail") != nil {
		return err
	}
	return t.symlink("var/spool/mail", "../mail", t.own(0o777))
}

func finishTimezone(t *tree) error {
	if t.lookup("usr/share/zoneinfo/Etc/UTC") == nil || t.lookup("etc/localtime") != nil {
		return nil
	}
	if err := t.symlink("etc/localtime", "/usr/share/zoneinfo/Etc/UTC", t.own(0o777)); err != nil {
		return err
	}
	return t.put("etc/timezone", 0o644, []byte("Etc/UTC\n"))
}

// finishShell sees to /bin/sh, which dash's script links on suites where no
// package ships it, and lists the shells as update-shells does.
func finishShell(t *tree) error {
	for _, shell := range []string{"dash", "bash"} {
		if t.lookup("usr/bin/sh") == nil && t.lookup("usr/bin/"+shell) != nil {
			if err := t.symlink("usr/bin/sh", shell, t.own(0o777)); err != nil {
				return err
			}
		}
	}
	var list strings.Builder
	seen := make(map[string]bool)
	for _, name := range append([]string{"usr/share/debianutils/shells"}, t.glob("usr/share/debianutils/shells.d", "*")...) {
		content, err := t.read(name)
		if err != nil {
			continue
		}
		for line := range strings.FieldsSeq(string(content)) {
			for _, shell := range []string{line, "/usr" + line} {
				if !seen[shell] && strings.HasPrefix(line, "/bin/") {
					list.WriteString(shell + "\n")
				}
				seen[shell] = true
			}
		}
	}
	return t.put("etc/shells", 0o644, []byte(list.String()))
}

// finishLocale makes a locale, such as en_US.UTF-8, another name for the C.UTF-8
// that libc brings: where the locale that LANG names is missing, perl complains at
// every start.
func finishLocale(t *tree, locale string) error {
	if locale == "" {
		return nil
	}
	file := "usr/lib/locale/" + strings.Replace(locale, "UTF-8", "utf8", 1)
	for _, name := range []string{"C.utf8", "C.UTF-8"} {
		if t.lookup("usr/lib/locale/"+name) == nil || t.lookup(file) != nil {
			continue
		}
		if err := t.symlink(file, name, t.own(0o777)); err != nil {
			return err
		}
	}
	return t.put("etc/default/locale", 0o644, []byte("LANG="+locale+"\n"))
}
