package cell

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"cupola/rootfs/tree"
	"cupola/runtime/contract"
)

// user is the user of a process.
type user struct {
	UID, GID uint32
	Groups   []uint32
	Name     string // "" where the passwd file does not say
	Home     string
}

// vcap is the user of apps in all of Cloud Foundry, also in a root filesystem
// that does not know it.
var vcap = user{UID: contract.VcapID, GID: contract.VcapID, Name: contract.VcapName, Home: contract.Home}

// layerOwner owns the files of a shared layer. A layer is unpacked
// before there is a passwd file to look into, so a name means vcap: a process of
// another named user only reads its droplet.
func layerOwner(name string) tree.Owner {
	if u, ok := numericUser(name); ok {
		return tree.Owner{UID: u.UID, GID: u.GID}
	}
	return tree.Owner{UID: vcap.UID, GID: vcap.GID}
}

// lookUp finds name in the passwd and group files of the container's root.
func (b *build) lookUp(name string) (user, error) {
	return resolveUser(name, b.rootFile("/etc/passwd"), b.rootFile("/etc/group"))
}

// rootFile reads a small file of the root; a missing one is empty.
func (b *build) rootFile(path string) string {
	f, err := b.cell.cfg.RootFS.Open(b.guid(), path)
	if err != nil {
		return ""
	}
	defer f.Close()
	content, _ := io.ReadAll(io.LimitReader(f, 1<<20))
	return string(content)
}

// resolveUser turns what an image's USER may be into a user: a name or uid and,
// after a colon, a group or gid. "" is vcap. As in docker, a user with an explicit
// group is in no other group.
func resolveUser(name, passwd, group string) (user, error) {
	who, groupName, both := strings.Cut(cmp.Or(name, vcap.Name), ":")
	u, ok := findUser(who, passwd)
	if !ok {
		return user{}, fmt.Errorf("no user %q in the root filesystem", name)
	}
	if !both {
		u.Groups = supplementary(group, u.Name)
		return u, nil
	}
	if u.GID, ok = findGroup(groupName, group); !ok {
		return user{}, fmt.Errorf("no group of the user %q in the root filesystem", name)
	}
	return u, nil
}

// findUser finds a user by name or uid. An id need not be known to a passwd file,
// nor need root and vcap. A number is never a name, also when it is too large for
// an id: else an image's passwd file could call root so.
func findUser(name, passwd string) (user, bool) {
	u, numeric := numericUser(name)
	known, found := findPasswd(passwd, func(e user) bool {
		return numeric && e.UID == u.UID || !isNumber(name) && e.Name == name
	})
	switch {
	case found:
		return known, true
	case numeric:
		u.Home = "/"
		return u, true
	case name == vcap.Name:
		return vcap, true
	case name == "root":
		return user{Name: "root", Home: "/root"}, true
	}
	return user{}, false
}

// findGroup finds a group by name or gid, which need not be known.
func findGroup(name, group string) (gid uint32, ok bool) {
	lines := bufio.NewScanner(strings.NewReader(group))
	for lines.Scan() {
		fields := strings.Split(lines.Text(), ":")
		if len(fields) < 4 || fields[0] != name || isNumber(name) {
			continue
		}
		if gid, err := strconv.ParseUint(fields[2], 10, 32); err == nil {
			return uint32(gid), true
		}
	}
	n, err := strconv.ParseUint(name, 10, 32)
	return uint32(n), err == nil
}

// isNumber reports whether a user or group is meant by its id.
func isNumber(name string) bool {
	return name != "" && strings.Trim(name, "0123456789") == ""
}

// numericUser parses "uid" and "uid:gid"; the group is 0 where none is named.
func numericUser(name string) (user, bool) {
	uid, gid, both := strings.Cut(name, ":")
	n, err := strconv.ParseUint(uid, 10, 32)
	if err != nil {
		return user{}, false
	}
	u := user{UID: uint32(n)}
	if both {
		g, err := strconv.ParseUint(gid, 10, 32)
		if err != nil {
			return user{}, false
		}
		u.GID = uint32(g)
	}
	return u, true
}

// findPasswd returns the first matching entry of a passwd file.
func findPasswd(passwd string, want func(user) bool) (user, bool) {
	lines := bufio.NewScanner(strings.NewReader(passwd))
	for lines.Scan() {
		fields := strings.Split(lines.Text(), ":")
		if len(fields) < 6 {
			continue
		}
		u, ok := numericUser(fields[2] + ":" + fields[3])
		u.Name, u.Home = fields[0], fields[5]
		if ok && want(u) {
			return u, true
		}
	}
	return user{}, false
}

// supplementary lists the groups that name name as a member.
func supplementary(group, name string) []uint32 {
	var groups []uint32
	lines := bufio.NewScanner(strings.NewReader(group))
	for lines.Scan() {
		fields := strings.Split(lines.Text(), ":")
		if len(fields) < 4 || name == "" || !slices.Contains(strings.Split(fields[3], ","), name) {
			continue
		}
		if gid, err := strconv.ParseUint(fields[2], 10, 32); err == nil {
			groups = append(groups, uint32(gid))
		}
	}
	return groups
}
