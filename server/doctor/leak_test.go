package doctor

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	nsMount   = "50 27 0:4 net:[4026532] /tmp/cupola-demo-1/netns/ns/3 rw - nsfs nsfs rw\n"
	runMount  = "51 27 254:0 /tmp/x /tmp/cupola-demo-1/rootfs/run rw - ext4 /dev/vda rw\n"
	diskMount = "52 51 7:0 / /srv/my\\040data/rootfs/run/id-1/disk rw - ext4 /dev/loop0 rw\n"
	rootMount = "53 51 0:50 / /srv/my\\040data/rootfs/run/id-1/root//deleted rw - overlay overlay rw\n"
	sysMount  = "54 27 0:46 / /srv/my\\040data/containers/sys ro - sysfs sysfs ro\n"
	helpers   = "55 27 0:47 / /srv/my\\040data/containers/helper ro - overlay overlay ro\n"
	ofVolume  = "56 27 7:1 / /srv/data/volumes/3c102967-a4f6-4341-ba6c-42a229f56a96/disk rw - ext4 /dev/loop1 rw\n"
	ofBOSH    = "57 27 7:2 / /srv/data/volumes/bosh-store-3c102967-a4f6-4341-ba6c-42a229f56a96/disk rw - ext4 /dev/loop2 rw\n"
	shown     = "58 27 7:1 / /srv/data/volumes/.shown/id-1/0 rw - ext4 /dev/loop1 rw\n"
	memory    = "59 27 0:52 / /srv/data/memory/24771405-8c07-4006-80aa-782b rw - tmpfs tmpfs rw\n"
	allMemory = "65 27 254:0 /x /tmp/cupola-e2e-1/memory rw - ext4 /dev/vda rw\n"
	foreign   = "60 27 0:50 / /var/lib/docker/overlay2/abc/merged rw - overlay overlay rw\n" +
		"61 27 0:4 net:[402] /run/docker/netns/1234 rw - nsfs nsfs rw\n" +
		"62 27 254:0 /x /home/me/rootfs/run rw - ext4 /dev/vda rw\n" +
		"63 27 0:20 / /run rw - tmpfs tmpfs rw\n" +
		"64 27 254:1 / /mnt/disk rw - ext4 /dev/vdb rw\n" +
		"66 27 254:1 / /mnt/volumes/vm/disk rw - ext4 /dev/vdb rw\n" +
		"67 27 0:53 / /sys/fs/cgroup/memory rw - cgroup cgroup rw\n" +
		"68 27 0:54 / /srv/memory/cache rw - tmpfs tmpfs rw\n"
)

func TestMountsOfDaemons(t *testing.T) {
	type mount struct{ Name, Key, Base, Fix string }
	var got []mount
	for _, f := range parseMounts(foreign + nsMount + runMount + diskMount + rootMount + sysMount + helpers + ofVolume + ofBOSH + shown + memory + allMemory) {
		got = append(got, mount{f.Name, f.key, f.base, f.Fix})
	}
	want := []mount{
		{"/tmp/cupola-e2e-1/memory", "/tmp/cupola-e2e-1/memory", "/tmp/cupola-e2e-1", "sudo umount -l /tmp/cupola-e2e-1/memory"},
		{"/srv/data/memory/24771405-8c07-4006-80aa-782b", "/srv/data/memory/24771405-8c07-4006-80aa-782b", "/srv/data", "sudo umount -l /srv/data/memory/24771405-8c07-4006-80aa-782b"},
		{"/srv/data/volumes/.shown/id-1/0", "/srv/data/volumes/.shown/id-1/0", "/srv/data", "sudo umount -l /srv/data/volumes/.shown/id-1/0"},
		{"/srv/data/volumes/bosh-store-3c102967-a4f6-4341-ba6c-42a229f56a96/disk", "/srv/data/volumes/bosh-store-3c102967-a4f6-4341-ba6c-42a229f56a96/disk", "/srv/data", "sudo umount -l /srv/data/volumes/bosh-store-3c102967-a4f6-4341-ba6c-42a229f56a96/disk"},
		{"/srv/data/volumes/3c102967-a4f6-4341-ba6c-42a229f56a96/disk", "/srv/data/volumes/3c102967-a4f6-4341-ba6c-42a229f56a96/disk", "/srv/data", "sudo umount -l /srv/data/volumes/3c102967-a4f6-4341-ba6c-42a229f56a96/disk"},
		{"/srv/my data/containers/helper", "/srv/my data/containers/helper", "/srv/my data", "sudo umount -l '/srv/my data/containers/helper'"},
		{"/srv/my data/containers/sys", "/srv/my data/containers/sys", "/srv/my data", "sudo umount -l '/srv/my data/containers/sys'"},
		{"/srv/my data/rootfs/run/id-1/root//deleted", "/srv/my data/rootfs/run/id-1/root", "/srv/my data", "sudo umount -l '/srv/my data/rootfs/run/id-1/root//deleted'"},
		{"/srv/my data/rootfs/run/id-1/disk", "/srv/my data/rootfs/run/id-1/disk", "/srv/my data", "sudo umount -l '/srv/my data/rootfs/run/id-1/disk'"},
		{"/tmp/cupola-demo-1/rootfs/run", "/tmp/cupola-demo-1/rootfs/run", "/tmp/cupola-demo-1", "sudo umount -l /tmp/cupola-demo-1/rootfs/run"},
		{"/tmp/cupola-demo-1/netns/ns/3", "/tmp/cupola-demo-1/netns/ns/3", "/tmp/cupola-demo-1", "sudo umount -l /tmp/cupola-demo-1/netns/ns/3"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("mounts, the latest first (-want +got):\n%s", diff)
	}
}

// testOwner is what a data directory's daemon has, in tests.
func testOwner(dir string) Owner {
	if dir == "/srv/data" {
		return Owner{DataDir: dir, Table: "cupola", Cgroup: "cupola", LinkPrefix: "cup", Subnet: netip.MustParsePrefix("10.251.0.0/16")}
	}
	return Owner{DataDir: dir, Table: "cupola-abc", Cgroup: "cupola-abc", LinkPrefix: "cabcdef", Subnet: netip.MustParsePrefix("10.130.0.0/16")}
}

func allKinds(table, link, address, dir string) []finding {
	return []finding{
		{Leak{kindProcess, "12 (sh)", "kill"}, table, ""},
		{Leak{kindCgroup, table, "find"}, table, ""},
		{Leak{kindMount, dir + "/rootfs/run/i/root", "umount"}, dir + "/rootfs/run/i/root", dir},
		{Leak{kindLoop, "/dev/loop1", "losetup"}, dir + "/rootfs/run/i/disk.img", dir},
		{Leak{kindLink, link, "ip link"}, link, ""},
		{Leak{kindAddress, address, "ip address"}, address, ""},
		{Leak{kindTable, table, "nft"}, table, ""},
		{Leak{kindDirectory, dir, "rm -rf " + dir}, dir, dir},
	}
}

func TestOwnersKeepWhatIsTheirs(t *testing.T) {
	ours := allKinds("cupola", "cup12", "10.251.0.1", "/srv/data")
	if left := unowned(ours, []Owner{testOwner("/srv/data")}); len(left) != 0 {
		t.Errorf("got %v beside the owner; want nothing", left)
	}
	if left := unowned(ours, []Owner{testOwner("/srv/data2")}); len(left) != len(ours) {
		t.Errorf("another owner took all but %v", left)
	}
	if left := unowned(ours, nil); len(left) != len(ours) {
		t.Errorf("nobody took all but %v", left)
	}
}

func TestStoppedDaemonIsOneLeak(t *testing.T) {
	found := append(allKinds("cupola", "cup12", "10.251.0.1", "/srv/data"), finding{Leak{kindTable, "cupola-zz", "nft"}, "cupola-zz", ""})
	got := stopped(found, testOwner, func(dir string) bool { return dir == "/srv/data" })
	want := []Leak{
		{kindDaemon, "of /srv/data has stopped, and 1 process of its apps still runs", "sudo cupola cleanup --data-dir /srv/data && rm -rf /srv/data"},
		{kindTable, "cupola-zz", "nft"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("leaks (-want +got):\n%s", diff)
	}
	if got := stopped(found, testOwner, func(string) bool { return false }); len(got) != len(found) {
		t.Errorf("got %v; want each as it is when the data directory is gone", got)
	}
	files := []finding{{Leak{kindDirectory, "/tmp/cupola-demo-1", "rm"}, "/tmp/cupola-demo-1", "/tmp/cupola-demo-1"}}
	if got := stopped(files, testOwner, func(string) bool { return true }); len(got) != 1 || got[0].Kind != kindDirectory {
		t.Errorf("got %v; want the directory, of which nothing else is left", got)
	}
}

func FuzzMounts(f *testing.F) {
	for _, s := range []string{nsMount, runMount, diskMount, rootMount, foreign, "\\1", "1 2 3:4 / \\777\\0 - nsfs"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, m := range parseMounts(text) {
			if m.base == "" || !strings.HasPrefix(m.key, m.base) {
				t.Errorf("mount %q has the base %q", m.key, m.base)
			}
		}
		parseHierarchies(text)
	})
}

func FuzzTables(f *testing.F) {
	f.Add("   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 4711 1 0")
	f.Fuzz(func(t *testing.T, text string) {
		listening(text, 8080)
		parseVersion(text)
	})
}
