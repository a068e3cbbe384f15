package debian

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp/clearsign"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	openpgp "github.com/ProtonMail/go-crypto/openpgp/v2"
)

const maxKeyring = 4 << 20

// A keyring holds the keys that may sign an archive: only ones whose primary
// fingerprint is pinned, from wherever their material was read.
type keyring struct {
	pins []string
	keys openpgp.EntityList
}

// loadKeyring reads key material from files, of which those in must have to be
// readable, until every pinned key is found.
func loadKeyring(pins, must, may []string) (*keyring, error) {
	k := &keyring{pins: pins}
	for i, path := range slices.Concat(must, may) {
		if len(k.keys) == len(pins) {
			break
		}
		raw, err := readLimited(path, maxKeyring)
		if err == nil {
			err = k.add(raw)
		}
		if err != nil && i < len(must) {
			return nil, fmt.Errorf("read keyring %s: %w", path, err)
		}
	}
	return k, nil
}

// hostKeyrings lists the files where apt keeps keys.
func hostKeyrings(sources []source) []string {
	var paths []string
	for _, s := range sources {
		paths = append(paths, s.signedBy...)
	}
	for _, glob := range []string{
		"/usr/share/keyrings/*archive*", "/etc/apt/trusted.gpg.d/*", "/etc/apt/keyrings/*",
	} {
		found, _ := filepath.Glob(glob) // its one error is a bad pattern
		paths = append(paths, found...)
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// add takes the pinned keys out of raw, binary or armored.
func (k *keyring) add(raw []byte) error {
	read := openpgp.ReadKeyRing
	if bytes.HasPrefix(bytes.TrimSpace(raw), []byte("-----BEGIN PGP")) {
		read = openpgp.ReadArmoredKeyRing
	}
	entities, err := read(bytes.NewReader(raw))
	if err != nil {
		return err
	}
	for _, e := range entities {
		if print := fingerprint(e); slices.Contains(k.pins, print) && !k.has(print) {
			k.keys = append(k.keys, e)
		}
	}
	return nil
}

func (k *keyring) has(print string) bool {
	return slices.ContainsFunc(k.keys, func(e *openpgp.Entity) bool { return fingerprint(e) == print })
}

func fingerprint(e *openpgp.Entity) string {
	return strings.ToUpper(hex.EncodeToString(e.PrimaryKey.Fingerprint))
}

// open returns the text of a clear-signed document if one of its signatures is
// by a pinned key that is valid at now. What lies outside of the signed part is
// never returned.
func (k *keyring) open(signed []byte, now time.Time) ([]byte, error) {
	block, _ := clearsign.Decode(signed)
	if block == nil {
		return nil, fmt.Errorf("no signed document")
	}
	config := &packet.Config{Time: func() time.Time { return now }}
	if _, _, err := openpgp.VerifyDetachedSignature(k.keys, bytes.NewReader(block.Bytes), block.ArmoredSignature.Body, config); err != nil {
		return nil, err
	}
	return block.Bytes, nil
}

// readLimited reads a file of at most limit bytes.
func readLimited(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readAllLimited(f, limit)
}

func readAllLimited(r io.Reader, limit int64) ([]byte, error) {
	raw, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(raw)) > limit {
		err = fmt.Errorf("more than %d bytes", limit)
	}
	return raw, err
}
