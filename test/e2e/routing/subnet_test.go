package routing

import (
	"crypto/sha256"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"cupola/test/e2e"
)

// twoAlike makes two daemons whose directories ask for the same addresses.
func twoAlike(t *testing.T) (a, b *e2e.Daemon) {
	t.Helper()
	binary, byHash := e2e.NeedBinary(t), map[byte]string{}
	for {
		dir := e2e.NewDir(t)
		hash := sha256.Sum256([]byte(dir))[3] % 100
		if other, ok := byHash[hash]; ok {
			delete(byHash, hash)
			for _, unused := range byHash {
				if err := os.Remove(unused); err != nil {
					t.Error(err)
				}
			}
			made := func(dir string) *e2e.Daemon {
				d := &e2e.Daemon{T: t, Binary: binary, Dir: dir, Addr: "127.0.0.1:0", Log: &e2e.LogBuffer{}, Admin: &e2e.AdminSession{}}
				t.Cleanup(d.Destroy)
				return d
			}
			return made(other), made(dir)
		}
		byHash[hash] = dir
	}
}

func setSubnet(d *e2e.Daemon, p netip.Prefix) {
	d.T.Helper()
	if err := os.WriteFile(filepath.Join(d.Dir, "subnet"), []byte(p.String()+"\n"), 0o644); err != nil {
		d.T.Fatal(err)
	}
}

// TestAddressesAreOneDaemonsAlone has two daemons want the same subnet, and the
// machine's network then have that of one.
func TestAddressesAreOneDaemonsAlone(t *testing.T) {
	t.Parallel()
	a, b := twoAlike(t)
	a.Start()
	b.Start()
	first, second := a.Subnet(), b.Subnet()
	if first.Overlaps(second) {
		t.Fatalf("got %s and %s; want two", first, second)
	}
	b.PushProbe("front")
	before := b.Running("front", "web", 1)[0]
	if !second.Contains(netip.MustParseAddr(before.Host)) {
		t.Errorf("the app has %s; want one of %s", before.Host, second)
	}
	looksUp(b, internal) // which its own daemon answers

	b.Kill()
	setSubnet(b, first) // as of two daemons of a former version
	out, err := exec.Command(b.Binary, "serve", "--data-dir", b.Dir, "--http", "127.0.0.1:0", "--https", "off").CombinedOutput()
	if err == nil || !strings.Contains(string(out), first.String()) || !strings.Contains(string(out), a.Dir) || !strings.Contains(string(out), "cupola cleanup --data-dir "+b.Dir) {
		t.Errorf("beside running containers: got %v\n%s", err, out)
	}
	setSubnet(b, second)

	route := netip.PrefixFrom(second.Addr().Next(), 17).Masked().String()
	if out, err := exec.Command("ip", "route", "add", "unreachable", route).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command("ip", "route", "del", "unreachable", route).Run() })
	b.Start()
	if now := b.Running("front", "web", 1)[0]; b.Subnet() != second || now.InstanceGUID != before.InstanceGUID {
		t.Errorf("got %s, %+v; want %s for as long as the app runs", b.Subnet(), now, second)
	}
	if log := b.Log.String(); !strings.Contains(log, "overlap this machine's network") || !strings.Contains(log, route) {
		t.Errorf("the log does not tell of the route %s", route)
	}
	looksUp(b, internal)

	b.Kill()
	if out, err := exec.Command(b.Binary, "cleanup", "--data-dir", b.Dir).CombinedOutput(); err != nil {
		t.Fatalf("cleanup: %v\n%s", err, out)
	}
	setSubnet(b, first) // as of a daemon that was killed before it had the addresses that it wrote down
	b.Start()
	third := b.Subnet()
	if third.Overlaps(first) || third.Overlaps(second) {
		t.Errorf("without containers it has %s; want none of %s and %s", third, first, second)
	}
	b.Running("front", "web", 1)
	looksUp(b, internal)
	a.Kill()
	a.Start()
	if a.Subnet() != first {
		t.Errorf("the other one has %s by now; want %s", a.Subnet(), first)
	}
}
