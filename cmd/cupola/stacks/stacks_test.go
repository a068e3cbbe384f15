package stacks

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"cupola/rootfs/image"
	rootstack "cupola/rootfs/stack"
	"cupola/server/admin/stack"
)

const wideStacks = `NAME             CF_STACK     SIZE     MADE               WHAT
debian12         cflinuxfs4   190 MB   2026-01-02 03:04   debian12 core
host (default)   host         -        -                  this machine's /usr, read-only

IMAGE                                                            DIGEST                SIZE     USED               NEEDED BY
registry.example.com:5000/team/a-service-with-a-name:2026.1.17   sha256:0123456789ab   120 MB   2026-01-02 03:04   apps, containers, stack mine, other
oci:/srv/i                                                       sha256:ba9876543210   1.2 GB   2026-01-02 03:04   -
`

const narrowStacks = `NAME             CF_STACK     SIZE     MADE               WHAT
debian12         cflinuxfs4   190 MB   2026-01-02 03:04   debian12 core
host (default)   host         -        -                  this machine's /usr,
                                                          read-only

IMAGE        DIGEST                SIZE     USED               NEEDED BY
registry.example.com:5000/team/a-service-with-a-name:2026.1.17
             sha256:0123456789ab   120 MB   2026-01-02 03:04   apps, containers,
                                                               stack mine, other
oci:/srv/i   sha256:ba9876543210   1.2 GB   2026-01-02 03:04   -
`

func TestStacksOutput(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 0, 0, time.Local)
	stacks := []stack.Info{
		{Stack: rootstack.Stack{Name: "debian12", Compat: "cflinuxfs4", Description: "debian12 core", Bytes: 190e6, Created: at}},
		{Stack: rootstack.Stack{Name: "host", Compat: "host", Description: "this machine's /usr, read-only"}, Default: true},
	}
	images := []stack.ImageInfo{
		{Info: image.Info{Image: image.Image{Reference: "registry.example.com:5000/team/a-service-with-a-name:2026.1.17", Digest: "sha256:0123456789abcdef"}, DiskBytes: 120e6, Used: at, Mounted: true, Stacks: []string{"mine", "other"}}, Pinned: true},
		{Info: image.Info{Image: image.Image{Reference: "oci:/srv/i", Digest: "sha256:ba9876543210fedc"}, DiskBytes: 1.2e9, Used: at}},
	}
	for width, want := range map[int]string{0: wideStacks, 80: narrowStacks} {
		var out bytes.Buffer
		if err := writeStacks(&out, stacks, width); err != nil {
			t.Fatal(err)
		}
		if err := writeImages(&out, images, width); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Errorf("%d columns (-want +got):\n%s", width, diff)
		}
	}
}
