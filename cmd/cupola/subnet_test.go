package main

import (
	"crypto/sha256"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// twoAlike makes two daemons whose directories ask for the same addresses.
func twoAlike(t *testing.T) (a, b *daemon) {
	t.Helper()
	binary, byHash := needBinary(t), map[byte]string{}
	for {
		dir := newDaemonDir(t)
		hash := sha256.Sum256([]byte(dir))[3] % 100
		if other, ok := byHash[hash]; ok {
			delete(byHash, hash)
			for _, unused := range byHash {
				if err := os.Remove(unused); err != nil {
					t.Error(err)
				}
			}
			made := func(dir string) *daemon {
				d := &daemon{t: t, binary: binary, dir: dir, addr: "127.0.0.1:0", log: &logBuffer{}, admin: &adminSession{}}
				t.Cleanup(d.destroy)
				return d
			}
			return made(other), made(dir)
		}
		byHash[hash] = dir
	}
}

func (d *daemon) subnet() netip.Prefix {
	d.t.Helper()
	text, err := os.ReadFile(filepath.Join(d.dir, "subnet"))
	if err != nil {
		d.t.Fatal(err)
	}
	return netip.MustParsePrefix(strings.TrimSpace(string(text)))
}

func (d *daemon) setSubnet(p netip.Prefix) {
	d.t.Helper()
	if err := os.WriteFile(filepath.Join(d.dir, "subnet"), []byte(p.String()+"\n"), 0o644); err != nil {
		d.t.Fatal(err)
	}
}

// TestAddressesAreOneDaemonsAlone has two daemons want the same subnet, and the
// machine's network then have that of one.
func TestAddressesAreOneDaemonsAlone(t *testing.T) {
	t.Parallel()
	a, b := twoAlike(t)
	a.start()
	b.start()
	first, second := a.subnet(), b.subnet()
	if first.Overlaps(second) {
		t.Fatalf("got %s and %s; want two", first, second)
	}
	b.pushProbe("front")
	before := b.running("front", "web", 1)[0]
	if !second.Contains(netip.MustParseAddr(before.Host)) {
		t.Errorf("the app has %s; want one of %s", before.Host, second)
	}
	b.looksUp(internal) // which its own daemon answers

	b.kill()
	b.setSubnet(first) // as of two daemons of a former version
	out, err := exec.Command(b.binary, "serve", "--data-dir", b.dir, "--http", "127.0.0.1:0", "--https", "off").CombinedOutput()
	if err == nil || !strings.Contains(string(out), first.String()) || !strings.Contains(string(out), a.dir) || !strings.Contains(string(out), "cupola cleanup --data-dir "+b.dir) {
		t.Errorf("beside running containers: got %v\n%s", err, out)
	}
	b.setSubnet(second)

	route := netip.PrefixFrom(second.Addr().Next(), 17).Masked().String()
	if out, err := exec.Command("ip", "route", "add", "unreachable", route).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command("ip", "route", "del", "unreachable", route).Run() })
	b.start()
	if now := b.running("front", "web", 1)[0]; b.subnet() != second || now.InstanceGUID != before.InstanceGUID {
		t.Errorf("got %s, %+v; want %s for as long as the app runs", b.subnet(), now, second)
	}
	if log := b.log.String(); !strings.Contains(log, "overlap this machine's network") || !strings.Contains(log, route) {
		t.Errorf("the log does not tell of the route %s", route)
	}
	b.looksUp(internal)

	b.kill()
	if out, err := exec.Command(b.binary, "cleanup", "--data-dir", b.dir).CombinedOutput(); err != nil {
		t.Fatalf("cleanup: %v\n%s", err, out)
	}
	b.setSubnet(first) // as of a daemon that was killed before it had the addresses that it wrote down
	b.start()
	third := b.subnet()
	if third.Overlaps(first) || third.Overlaps(second) {
		t.Errorf("without containers it has %s; want none of %s and %s", third, first, second)
	}
	b.running("front", "web", 1)
	b.looksUp(internal)
	a.kill()
	a.start()
	if a.subnet() != first {
		t.Errorf("the other one has %s by now; want %s", a.subnet(), first)
	}
}
