package debian

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/ProtonMail/go-crypto/openpgp/clearsign"
)

// bootstrapKeys looks for pinned keys in the archive's own keyring package, for a host
// that lacks them. All that it reads on the way is unverified; only the
// fingerprints of the keys count.
func (b *builder) bootstrapKeys(ctx context.Context, a *archive, signed []byte, keys *keyring) error {
	block, _ := clearsign.Decode(signed)
	if block == nil {
		return fmt.Errorf("no signed document")
	}
	r, err := parseRelease(string(block.Bytes))
	if err != nil {
		return err
	}
	offered, err := b.readIndexes(ctx, &archive{pocket: a.pocket, base: a.base, release: r})
	if err != nil {
		return err
	}
	for _, p := range offered {
		if p.name != b.suite.keyring {
			continue
		}
		path, _, err := b.fetcher.file(ctx, p.digest, a.base+"/"+p.filename)
		if err != nil {
			return err
		}
		return readKeyPackage(path, keys)
	}
	return fmt.Errorf("no key found on this host, and no package %s in the archive", b.suite.keyring)
}

// readKeyPackage offers every file of the keyring directories in a .deb to keys.
func readKeyPackage(path string, keys *keyring) error {
	d, err := openDeb(path)
	if err != nil {
		return err
	}
	defer d.close()
	r, err := decompress(d.data.name, d.data.data)
	if err != nil {
		return err
	}
	defer r.Close()
	for archive := tar.NewReader(r); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if h.Typeflag != tar.TypeReg || !strings.Contains(h.Name, "usr/share/keyrings/") && !strings.Contains(h.Name, "etc/apt/trusted.gpg.d/") {
			continue
		}
		if raw, err := readAllLimited(archive, maxKeyring); err == nil {
			_ = keys.add(raw) // what is not a keyring has no pinned key
		}
	}
}
