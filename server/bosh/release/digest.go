package release

import (
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"strings"
)

// Digests are what a file must have, by BOSH's name of the algorithm: sha1, sha256
// or sha512. None: any file will do.
type Digests map[string]string

// lengths are those of the digests, in bytes.
var lengths = map[string]int{"sha1": sha1.Size, "sha256": sha256.Size, "sha512": sha512.Size}

// ParseDigests reads a digest as BOSH writes it: hex alone is SHA-1, others have
// their algorithm before it, and several are separated by ";".
func ParseDigests(text string) (Digests, error) {
	all := Digests{}
	if text == "" {
		return all, nil
	}
	for part := range strings.SplitSeq(text, ";") {
		algorithm, sum, named := strings.Cut(strings.TrimSpace(part), ":")
		if !named {
			algorithm, sum = "sha1", algorithm
		}
		length, known := lengths[algorithm]
		if raw, err := hex.DecodeString(sum); !known || err != nil || len(raw) != length {
			return nil, fmt.Errorf("invalid digest %.100q: give a SHA-1 in hex, or sha256:HEX, or several like sha1:HEX;sha256:HEX", part)
		}
		all[algorithm] = strings.ToLower(sum)
	}
	return all, nil
}

// Sums computes the digests of what is written to it.
type Sums struct{ hashes map[string]hash.Hash }

// NewSums begins sums.
func NewSums() *Sums {
	return &Sums{map[string]hash.Hash{"sha1": sha1.New(), "sha256": sha256.New(), "sha512": sha512.New()}}
}

// Write adds to all sums. It never fails.
func (s *Sums) Write(p []byte) (int, error) {
	for _, h := range s.hashes {
		h.Write(p)
	}
	return len(p), nil
}

// SHA1 is the SHA-1 of what was written, in hex.
func (s *Sums) SHA1() string { return s.sum("sha1") }

// SHA256 is the SHA-256 of what was written, in hex.
func (s *Sums) SHA256() string { return s.sum("sha256") }

func (s *Sums) sum(algorithm string) string { return hex.EncodeToString(s.hashes[algorithm].Sum(nil)) }

// Check compares what was written with all digests that are wanted.
func (s *Sums) Check(want Digests) error {
	var faults []error
	for algorithm, sum := range want {
		if got := s.sum(algorithm); got != sum {
			faults = append(faults, fmt.Errorf("the %s is '%s', and '%s' was expected", algorithm, got, sum))
		}
	}
	return errors.Join(faults...)
}
