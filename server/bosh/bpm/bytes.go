package bpm

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"
)

// Bytes is a size as bpm writes it: a number and a unit, all units being powers
// of 1024, so that 1G, 1GB and 1GiB are 2^30.
type Bytes int64

var errBytes = errors.New("byte quantity must be a positive integer with a unit of measurement like M, MB, MiB, G, GiB, or GB")

// parseBytes reads a size in bpm's terms.
func parseBytes(s string) (Bytes, error) {
	s = strings.ToUpper(strings.TrimSpace(s))
	at := strings.IndexFunc(s, unicode.IsLetter)
	if at < 0 {
		return 0, errBytes
	}
	number, err := strconv.ParseFloat(s[:at], 64)
	if err != nil || number < 0 {
		return 0, errBytes
	}
	const units = "BKMGTPE"
	power := strings.IndexByte(units, s[at])
	if rest := s[at+1:]; power < 0 || rest != "" && (power == 0 || rest != "B" && rest != "IB") {
		return 0, errBytes
	}
	size := number * math.Exp2(float64(10*power))
	if size >= math.MaxInt64 {
		return 0, errBytes
	}
	return Bytes(size), nil
}

// UnmarshalYAML reads a size; null is none.
func (b *Bytes) UnmarshalYAML(n *yaml.Node) error {
	var s *string
	if err := n.Decode(&s); err != nil || s == nil {
		return err
	}
	var err error
	*b, err = parseBytes(*s)
	return err
}
