package datadir

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"cupola/runtime/network"
	"cupola/server/doctor"
)

// subnetFile remembers in which block a data directory's containers have their
// addresses. It is written before any of them is given.
func subnetFile(dataDir string) string { return filepath.Join(dataDir, "subnet") }

// subnets are what a data directory's containers may have their addresses in:
// the default directory's first is 10.251.0.0/16, and another one's follows from
// its path, so that it is most often the same.
func subnets(dataDir string) (all []netip.Prefix) {
	if dataDir == Default {
		all = append(all, block(10, 251))
	}
	sum := sha256.Sum256([]byte(dataDir))
	for n := range 100 {
		all = append(all, block(10, 128+(int(sum[3])+n)%100))
	}
	for n := range 16 {
		all = append(all, block(172, 16+n))
	}
	for n := range 64 {
		all = append(all, block(100, 64+n))
	}
	return all
}

func block(a, b int) netip.Prefix {
	return netip.PrefixFrom(netip.AddrFrom4([4]byte{byte(a), byte(b), 0, 0}), 16)
}

// keptSubnet is what subnetFile says, or that of a daemon of a version before
// there was the file. The error wraps fs.ErrNotExist where no daemon has had
// one.
func keptSubnet(dataDir string) (netip.Prefix, error) {
	text, err := os.ReadFile(subnetFile(dataDir))
	if errors.Is(err, fs.ErrNotExist) {
		if _, serr := os.Stat(filepath.Join(dataDir, "netns")); serr == nil {
			return subnets(dataDir)[0], nil
		}
	}
	if err != nil {
		return netip.Prefix{}, err
	}
	subnet, err := netip.ParsePrefix(strings.TrimSpace(string(text)))
	if err != nil || !subnet.Addr().Is4() || subnet.Bits() > 29 {
		return netip.Prefix{}, fmt.Errorf("%s says %.40q and not a block of addresses like 10.130.0.0/16: write that of its containers, which 'ip route' shows, or remove it where none runs", subnetFile(dataDir), text)
	}
	return subnet.Masked(), nil
}

// PickSubnet chooses where containers get their addresses. While there are some
// it is where they have theirs, whatever is in its way.
func PickSubnet(dataDir string) (subnet netip.Prefix, inWay []network.Use, err error) {
	kept, err := keptSubnet(dataDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return kept, nil, err
	}
	live, err := network.Live(filepath.Join(dataDir, "netns"))
	if err != nil {
		return kept, nil, err
	}
	uses, err := network.Uses()
	if err != nil {
		return kept, nil, err
	}
	want := network.Want{LinkPrefix: OwnerOf(dataDir).LinkPrefix, Kept: kept, Live: live && kept.IsValid(), Candidates: subnets(dataDir)}
	return want.Pick(uses)
}

// OpenSubnet chooses the subnet of containers and makes it this daemon's, unless
// running containers share theirs with another daemon's.
func (d *Dir) OpenSubnet(ctx context.Context) error {
	subnet, inWay, err := PickSubnet(d.path)
	if err != nil {
		return err
	}
	for _, u := range inWay {
		if u.Cupola {
			return fmt.Errorf("the addresses %s of this one's containers overlap %s of %s: run 'sudo cupola cleanup --data-dir %s', after which containers get others", subnet, u, d.neighbour(u), d.path)
		}
		d.log.WarnContext(ctx, "addresses of containers overlap this machine's network, and what is there they cannot reach: stop the daemon and run 'cupola cleanup', after which they get others",
			"containers", subnet, "network", u.String())
	}
	return d.TakeSubnet(ctx)
}

// neighbour names the daemon that has an address.
func (d *Dir) neighbour(u network.Use) string {
	for _, other := range doctor.Daemons() {
		if other.DataDir != d.path && (u.Of(OwnerOf(other.DataDir).LinkPrefix) || OwnerOf(other.DataDir).Subnet.Overlaps(u.Prefix)) {
			return "the cupola of " + other.DataDir
		}
	}
	return "another cupola"
}

// TakeSubnet chooses the subnet of containers, remembers it and then makes it
// this daemon's. Another daemon may be faster: then it chooses again.
func (d *Dir) TakeSubnet(ctx context.Context) error {
	for {
		subnet, inWay, err := PickSubnet(d.path)
		if err != nil {
			return err
		}
		if err := d.keepSubnet(ctx, subnet); err != nil {
			return err
		}
		err = network.Claim(d.Owner().LinkPrefix, subnet)
		if !errors.Is(err, network.ErrTaken) || len(inWay) > 0 || ctx.Err() != nil {
			return err
		}
	}
}

func (d *Dir) keepSubnet(ctx context.Context, subnet netip.Prefix) error {
	if kept, err := keptSubnet(d.path); err == nil && kept != subnet {
		d.log.InfoContext(ctx, "containers get other addresses, since theirs are in use", "addresses", subnet, "before", kept)
	}
	return writeLine(subnetFile(d.path), subnet.String())
}
