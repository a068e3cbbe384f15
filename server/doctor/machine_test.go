package doctor

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cupola/runtime/network"
	"cupola/server/admin/archive"
)

// files makes a machine of files: a name that ends in "/" is a directory, a
// content that starts with "-> " a link.
func files(t *testing.T, content map[string]string) *machine {
	t.Helper()
	m := &machine{host: host{root: t.TempDir()}, now: time.Now(), getenv: func(string) string { return "" }}
	m.DataDir, m.Domain, m.HTTP = "/var/lib/cupola", "localhost", "127.0.0.1:8080"
	for name, text := range content {
		path := filepath.Join(m.root, name)
		dir := filepath.Dir(path)
		if strings.HasSuffix(name, "/") {
			dir = path
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		if to, ok := strings.CutPrefix(text, "-> "); ok {
			err = os.Symlink(to, path)
		} else if !strings.HasSuffix(name, "/") {
			err = os.WriteFile(path, []byte(text), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return m
}

const (
	mountsV2     = "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
	mountsHybrid = "30 23 0:26 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n" +
		"31 23 0:27 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n" +
		"32 23 0:28 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n" +
		"33 23 0:29 / /sys/fs/cgroup/devices rw - cgroup cgroup rw,devices\n" +
		"34 23 0:30 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
	mountsNoPids = "30 23 0:26 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n" +
		"31 23 0:27 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
	oneSwap = "Filename Type Size Used Priority\n/dev/sda2 partition 1 0 -2"
)

func TestChecks(t *testing.T) {
	root := func(m *machine) { m.superuser = true }
	for _, c := range []struct {
		name   string
		files  map[string]string
		set    func(*machine)
		check  func(*machine, context.Context) Result
		level  Level
		detail string
		fix    string
	}{
		{"kernel", map[string]string{"proc/sys/kernel/osrelease": "6.1.0-18-amd64\n"}, nil, (*machine).kernel, OK, "Linux 6.1.0-18-amd64", ""},
		{"untried kernel", map[string]string{"proc/sys/kernel/osrelease": "5.10.0", "etc/os-release": debian12}, nil, (*machine).kernel, Warn, "older than 5.15", "full-upgrade"},
		{"old kernel", map[string]string{"proc/sys/kernel/osrelease": "4.19.0", "etc/os-release": debian12}, nil, (*machine).kernel, Fail, "older than 5.10", "full-upgrade"},
		{"odd kernel", map[string]string{"proc/sys/kernel/osrelease": "x"}, nil, (*machine).kernel, Warn, "cannot parse", "uname"},

		{"cgroup v2", map[string]string{"proc/self/mountinfo": mountsV2, "sys/fs/cgroup/cgroup.controllers": "cpuset cpu io memory pids", "sys/fs/cgroup/cgroup.subtree_control": "memory pids"}, root, (*machine).cgroup, OK, "v2 with", ""},
		{"cgroup v2 without memory", map[string]string{"proc/self/mountinfo": mountsV2, "sys/fs/cgroup/cgroup.controllers": "cpuset cpu io pids"}, nil, (*machine).cgroup, Fail, "lacks the controllers memory", "cgroup_enable=memory"},
		{"cgroup v2 without pids", map[string]string{"proc/self/mountinfo": mountsV2, "sys/fs/cgroup/cgroup.controllers": "cpu memory"}, nil, (*machine).cgroup, Fail, "lacks the controllers pids", "cgroup_no_v1=all"},
		{"cgroup v2 not delegated", map[string]string{"proc/self/mountinfo": mountsV2, "sys/fs/cgroup/cgroup.controllers": "memory pids", "sys/fs/cgroup/cgroup.type": "domain"}, nil, (*machine).cgroup, Fail, "lacks the controllers cpu", "Delegate=yes"},
		{"cgroup v2 passes nothing on", map[string]string{"proc/self/mountinfo": mountsV2, "sys/fs/cgroup/cgroup.controllers": "cpu memory pids"}, root, (*machine).cgroup, Fail, "enable the cgroup controllers memory, cpu, pids", "on the machine itself"},
		{"cgroup v2 of a container", map[string]string{"proc/self/mountinfo": mountsV2, "sys/fs/cgroup/cgroup.controllers": "cpu memory pids", "sys/fs/cgroup/cgroup.type": "domain", "sys/fs/cgroup/cgroup.procs": "1\n"},
			root, (*machine).cgroup, Fail, "contains processes", "--cgroupns=host"},
		{"cgroup hybrid", map[string]string{"proc/self/mountinfo": mountsHybrid, "sys/fs/cgroup/memory/": "", "sys/fs/cgroup/cpu,cpuacct/": "", "sys/fs/cgroup/pids/": "", "sys/fs/cgroup/devices/": ""},
			root, (*machine).cgroup, OK, "v1, hybrid, with", ""},
		{"cgroup v1 without pids", map[string]string{"proc/self/mountinfo": mountsNoPids}, nil, (*machine).cgroup, Fail, "lacks the controller pids", "-o pids cgroup /sys/fs/cgroup/pids"},
		{"cgroup v1 read-only", map[string]string{"proc/self/mountinfo": mountsHybrid}, root, (*machine).cgroup, Fail, "create a cgroup", "--privileged"},
		{"no cgroup", map[string]string{"proc/self/mountinfo": "1 1 0:1 / / rw - ext4 /dev/sda rw\n"}, nil, (*machine).cgroup, Fail, "no cgroups", "mount -t cgroup2"},
		{"no cgroup in a container on v1", map[string]string{"proc/self/mountinfo": "1 1 0:1 / / rw - ext4 /dev/sda rw\n", "proc/self/cgroup": "2:memory:/\n1:cpu,cpuacct:/\n0::/\n"}, nil, (*machine).cgroup, Fail, "no cgroups", "mount -t cgroup -o $c"},

		{"no swap", map[string]string{"proc/swaps": "Filename Type Size Used Priority\n"}, nil, (*machine).swap, OK, "none", ""},
		{"swap not accounted", map[string]string{"proc/swaps": oneSwap, "proc/self/mountinfo": mountsHybrid}, nil, (*machine).swap, Warn, "does not account swap", "swapaccount=1"},
		{"swap of v1", map[string]string{"proc/swaps": oneSwap, "proc/self/mountinfo": mountsHybrid, "sys/fs/cgroup/memory/memory.memsw.limit_in_bytes": ""}, nil, (*machine).swap, OK, "accounted", ""},
		{"swap of v2", map[string]string{"proc/swaps": oneSwap, "proc/self/mountinfo": mountsV2, "sys/fs/cgroup/a/memory.max": "", "sys/fs/cgroup/a/memory.swap.max": ""}, nil, (*machine).swap, OK, "accounted", ""},
		{"swap not of v2", map[string]string{"proc/swaps": oneSwap, "proc/self/mountinfo": mountsV2, "sys/fs/cgroup/a/memory.max": ""}, nil, (*machine).swap, Warn, "does not account", "swapaccount=1"},

		{"seccomp", map[string]string{"proc/sys/kernel/seccomp/actions_avail": "kill_process errno"}, nil, (*machine).seccomp, OK, "filters", ""},
		{"no seccomp", map[string]string{"etc/os-release": debian12}, nil, (*machine).seccomp, Fail, "no system call filters", "full-upgrade"},
		{"selinux", map[string]string{"sys/fs/selinux/enforce": "1"}, nil, (*machine).modules, Warn, "SELinux", "setenforce 0"},
		{"apparmor", map[string]string{"sys/module/apparmor/parameters/enabled": "Y\n"}, nil, (*machine).modules, OK, "AppArmor", ""},
		{"apparmor of ubuntu 24.04", map[string]string{"sys/module/apparmor/parameters/enabled": "Y\n", "proc/sys/kernel/apparmor_restrict_unprivileged_userns": "1\n"}, nil, (*machine).modules, OK, "cupola makes containers as root", ""},
		{"no module", nil, nil, (*machine).modules, OK, "neither", ""},

		{"forwarding", map[string]string{"proc/sys/net/ipv4/ip_forward": "1\n"}, nil, (*machine).forward, OK, "on", ""},
		{"forwarding off", map[string]string{"proc/sys/net/ipv4/ip_forward": "0\n"}, nil, (*machine).forward, OK, "turns it on", ""},
		{"no ipv4", nil, nil, (*machine).forward, Fail, "no IPv4", "ipv4.disable"},
		{"free subnet", nil, subnet(nil), (*machine).subnet, OK, "10.251.0.0/16 is free", ""},
		{"overlapping subnet", nil, subnet(nil, network.Use{Prefix: netip.MustParsePrefix("10.0.0.0/8"), Link: "tun0"}), (*machine).subnet, Warn, "overlaps 10.0.0.0/8 on tun0", "sudo cupola cleanup --data-dir /var/lib/cupola"},
		{"no subnet", nil, subnet(errors.New("no addresses are free")), (*machine).subnet, Fail, "no addresses are free", "ip route"},

		{"memory", map[string]string{"proc/meminfo": "MemTotal:  8000000 kB\nMemAvailable:  4000000 kB\n"}, nil, (*machine).memory, OK, "3.8 GB free of 7.6 GB", ""},
		{"little memory", map[string]string{"proc/meminfo": "MemTotal:  800000 kB\nMemAvailable:  400000 kB\n"}, nil, (*machine).memory, Warn, "390 MB free", "ps aux"},
		{"way", map[string]string{"var/lib/": ""}, nil, (*machine).traversable, OK, "/var/lib/cupola", ""},
		{"no way", map[string]string{"var/lib/": ""}, func(m *machine) { _ = os.Chmod(m.path("var"), 0o700) }, (*machine).traversable, Fail, "traverse /var,", "sudo chmod o+x /var"},

		{"no proxy", nil, nil, (*machine).proxy, OK, "none", ""},
		{"proxy", nil, environment("HTTP_PROXY", "http://u:secret@p:1"), (*machine).proxy, Warn, "http://u:xxxxx@p:1", ".localhost"},
		{"proxy beside", nil, environment("https_proxy", "http://p:1", "NO_PROXY", "a, .localhost"), (*machine).proxy, OK, "not for .localhost", ""},

		{"clock", nil, nil, (*machine).clock, OK, "", ""},
		{"clock behind", nil, func(m *machine) { m.now = time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC) }, (*machine).clock, Fail, "before this program was built", "timedatectl"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := files(t, c.files)
			if c.set != nil {
				c.set(m)
			}
			r := c.check(m, t.Context())
			if r.Level != c.level || !strings.Contains(r.Detail, c.detail) || !strings.Contains(r.Fix, c.fix) {
				t.Errorf("got %s %q, fix %q; want %s %q, %q", r.Level, r.Detail, r.Fix, c.level, c.detail, c.fix)
			}
			if r.Level != OK && r.Fix == "" {
				t.Error("has no fix")
			}
		})
	}
}

// subnet is that of containers, with what is in its way.
func subnet(err error, inWay ...network.Use) func(*machine) {
	return func(m *machine) {
		m.Subnet = func() (netip.Prefix, []network.Use, error) {
			return netip.MustParsePrefix("10.251.0.0/16"), inWay, err
		}
	}
}

func environment(pairs ...string) func(*machine) {
	return func(m *machine) {
		m.getenv = func(name string) string {
			for i := 0; i < len(pairs); i += 2 {
				if pairs[i] == name {
					return pairs[i+1]
				}
			}
			return ""
		}
	}
}

func TestNames(t *testing.T) {
	for _, c := range []struct {
		domain, known string
		level         Level
		detail, fix   string
	}{
		{"localhost", "api. cupola-doctor.", OK, "*.localhost resolves", ""},
		{"localhost", "", Warn, "the API is at http://localhost:8080", "127.0.0.1 api.localhost"},
		{"localhost", "api.", Warn, "curl and browsers resolve APP.localhost", "APP.localhost"},
		{"apps.example.com", "api. cupola-doctor.", OK, "*.apps.example.com resolves", ""},
		{"apps.example.com", "api.", Warn, "names of apps do not", "APP.apps.example.com"},
		{"apps.example.com", "", Warn, "does not resolve", "127.0.0.1 api.apps.example.com"},
	} {
		m := files(t, nil)
		m.Domain = c.domain
		m.lookup = func(_ context.Context, host string) ([]string, error) {
			if first, _, _ := strings.Cut(host, "."); strings.Contains(c.known, first+".") {
				return []string{"127.0.0.1"}, nil
			}
			return nil, errors.New("no such host")
		}
		r := m.names(t.Context())
		if r.Level != c.level || !strings.Contains(r.Detail, c.detail) || !strings.Contains(r.Fix, c.fix) {
			t.Errorf("%s with %q: got %s %q, fix %q; want %s %q, %q", c.domain, c.known, r.Level, r.Detail, r.Fix, c.level, c.detail, c.fix)
		}
	}
}

func TestJudgements(t *testing.T) {
	m := files(t, nil)
	m.Subnet = func() (netip.Prefix, []network.Use, error) { return netip.MustParsePrefix("10.250.0.0/16"), nil, nil }
	for _, c := range []struct {
		name   string
		got    Result
		level  Level
		detail string
	}{
		{"quota", m.judgeQuota("loop ext4", "no project quota: …"), OK, "enforced by loop ext4"},
		{"no mkfs", m.judgeQuota("plain directory", "mkfs.ext4 is not there"), Warn, "fill the disk"},
		{"no loop", m.judgeQuota("plain directory", "no loop device"), Warn, "fill the disk"},
		{"no loop in a container of LXC", files(t, map[string]string{"proc/1/environ": "container=lxc\x00"}).judgeQuota("plain directory", "operation not permitted"), Warn, "fill the disk"},
		{"engine", (&machine{Options: Options{Engine: "launch"}}).engine(t.Context()), OK, "launch starts"},
		{"other engine", (&machine{Options: Options{Engine: "runc"}}).engine(t.Context()), OK, "--engine launch is faster"},
		{"impossible engine", (&machine{Options: Options{Engine: "launch", NoLaunch: errors.New("needs x")}}).engine(t.Context()), OK, "runc starts containers: needs x"},
		{"resolvers", judgeResolvers([]netip.AddrPort{netip.MustParseAddrPort("9.9.9.9:53")}), OK, "forwarded to 9.9.9.9"},
		{"no resolvers", judgeResolvers(nil), Warn, "resolve only names of other apps"},
		{"firewall", m.judgeFirewall(nil, false), OK, "no other firewall"},
		{"docker", m.judgeFirewall([]network.Closed{{Table: "filter", Chain: "FORWARD"}}, false), OK, "accepted where another firewall drops all others: filter FORWARD"},
		{"firewalld", m.judgeFirewall([]network.Closed{{Table: "firewalld", Chain: "filter_FORWARD", Firewalld: true}}, true), OK, "firewalld filter_FORWARD"},
		{"firewalld without command", m.judgeFirewall([]network.Closed{{Table: "firewalld", Chain: "filter_FORWARD", Firewalld: true}}, false), Warn, "firewall-cmd is not in PATH"},
		{"files", judgeNofile(1 << 20), OK, "1048576"},
		{"few files", judgeNofile(1024), Warn, "1024"},
		{"any files", judgeNofile(1<<64 - 1), OK, "no limit"},
		{"disk", m.judgeDisk(50*gib, 100, 50), OK, "50 GB free"},
		{"small disk", m.judgeDisk(4*gib, 100, 50), Warn, "4.0 GB free"},
		{"full disk", m.judgeDisk(100*mib, 100, 50), Fail, "100 MB free"},
		{"no inodes", m.judgeDisk(50*gib, 100, 4), Warn, "4 of 100 inodes"},
		{"btrfs has no inodes", m.judgeDisk(50*gib, 0, 0), OK, "50 GB"},
		{"fresh backup", m.judgeBackups(1, []archive.DatabaseCopy{{Made: m.now.Add(-time.Hour)}}), OK, "1h0m0s ago; 1 kept"},
		{"old backup", m.judgeBackups(1, []archive.DatabaseCopy{{Made: m.now.Add(-72 * time.Hour)}}), Warn, "72h0m0s ago"},
		{"no backup", m.judgeBackups(1, nil), Warn, "no automatic backup"},
		{"all capabilities", judgeCapabilities(1<<41-1, false), OK, "all required capabilities"},
		{"docker's capabilities", judgeCapabilities(0xa80425fb, false), Fail, "net_admin, sys_admin, sys_ptrace"},
		{"docker's capabilities, without containers here", judgeCapabilities(0xa80425fb, true), OK, "all required capabilities"},
		{"no capabilities, without containers here", judgeCapabilities(0, true), Fail, "chown, dac_override, fowner"},
	} {
		if c.got.Level != c.level || !strings.Contains(c.got.Detail, c.detail) {
			t.Errorf("%s: got %s %q; want %s %q", c.name, c.got.Level, c.got.Detail, c.level, c.detail)
		}
		if c.got.Level != OK && c.got.Fix == "" {
			t.Errorf("%s: has no fix", c.name)
		}
	}
}

func TestPortTakenByAnother(t *testing.T) {
	const tcp = "  sl  local_address rem_address st tx_queue tr tm->when retrnsmt uid timeout inode\n" +
		"   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 4711 1 0 100 0 0 10 0\n" +
		"   1: 0100007F:1F90 0100007F:A0A0 01 00000000:00000000 00:00000000 00000000 0 0 4712 1 0 100 0 0 10 0\n"
	if got := listening(tcp, 8080); len(got) != 1 || got[0] != "4711" {
		t.Errorf("got listening sockets %q; want 4711", got)
	}
	m := files(t, map[string]string{
		"proc/net/tcp": tcp, "proc/33/comm": "nginx\n", "proc/33/fd/3": "-> socket:[4711]", "proc/33/fd/4": "-> /dev/null",
	})
	r := m.inUse("127.0.0.1:8080", "other")
	if r.Level != Fail || !strings.Contains(r.Detail, "nginx (pid 33)") || !strings.Contains(r.Fix, "kill 33") {
		t.Errorf("got %+v; want nginx named", r)
	}
}

func TestPortTakenByOurDaemon(t *testing.T) {
	data := t.TempDir()
	m := files(t, map[string]string{
		"proc/locks":    "1: FLOCK  ADVISORY  WRITE 7 fd:00:1 0 EOF\n",
		"proc/net/tcp6": "   0: 00000000000000000000000000000000:1F90 00000000000000000000000000000000:0000 0A 0:0 0:0 0 0 0 99 1 0\n",
		"proc/7/fd/3":   "-> socket:[99]", "proc/7/fd/4": "-> " + data + "/lock", "proc/7/fdinfo/4": "pos:\t0\nlock:\t1: FLOCK  ADVISORY  WRITE 7 fd:00:1 0 EOF\n",
	})
	m.DataDir = data
	if r := m.inUse("[::]:8080", ""); r.Level != OK || !strings.Contains(r.Detail, "cupola is running, pid 7") {
		t.Errorf("got %+v; want that cupola is running", r)
	}
}

func TestDaemonsNameTheirDirectory(t *testing.T) {
	const locked = "lock:\t1: FLOCK  ADVISORY  WRITE 7 fd:00:1 0 EOF\n"
	m := files(t, map[string]string{
		"proc/locks":  "1: POSIX  ADVISORY  WRITE 5 fd:00:9 0 EOF\n2: FLOCK  ADVISORY  WRITE 8 fd:00:1 0 EOF\n3: FLOCK  ADVISORY  WRITE 7 fd:00:2 0 EOF\n3: -> FLOCK  ADVISORY  WRITE 6 fd:00:2 0 EOF\n4: FLOCK  ADVISORY  READ 9 fd:00:3 0 EOF\n5: FLOCK  ADVISORY  WRITE 7 fd:00:4 0 EOF\n",
		"proc/6/fd/3": "-> /real/data/lock", "proc/6/fdinfo/3": "pos: 0\n",
		"proc/7/fd/3": "-> /real/data/lock", "proc/7/fdinfo/3": locked, "real/data/lock": "/given/data\nlonger before",
		"proc/8/fd/3": "-> /other/lock", "proc/8/fdinfo/3": locked,
		"proc/9/fd/3": "-> /not/held/lock", "proc/9/fdinfo/3": "pos: 0\n",
	})
	got := m.daemons()
	if len(got) != 2 || got[0] != (Daemon{7, "/given/data"}) || got[1] != (Daemon{8, "/other"}) {
		t.Errorf("got %+v; want those of pid 7 and 8", got)
	}
}

func TestToolText(t *testing.T) {
	if got, want := toolText([]string{"5.2", "", "20.1", "", "", "1.26"}), "bash 5.2, node 20.1, go 1.26; no python3, ruby, java"; got != want {
		t.Errorf("got %q; want %q", got, want)
	}
	m := files(t, map[string]string{"usr/bin/java": "#!/bin/sh\necho 'openjdk version \"17.0.1\" 2021' >&2\n"})
	if err := os.Chmod(m.path("usr/bin/java"), 0o755); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(toolVersions(t.Context(), m.root), ","); got != ",,,,17.0.1," {
		t.Errorf("got versions %q; want Java's", got)
	}
}
