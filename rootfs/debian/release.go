package debian

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// maxRelease bounds an InRelease file: Ubuntu's largest is under 300 KB.
const maxRelease = 8 << 20

// A release is the signed table of contents of a pocket.
type release struct {
	names      []string // suite and codename
	date       time.Time
	validUntil time.Time // zero if the archive sets none
	byHash     bool
	files      map[string]digest // by path below dists/<pocket>
}

// A digest is what a file must be.
type digest struct {
	sha256 string // lower-case hex
	size   int64
}

// parseRelease reads the signed text of an InRelease file.
func parseRelease(text string) (*release, error) {
	for p, err := range paragraphs(text) {
		if err != nil {
			return nil, err
		}
		r := &release{
			names:  []string{p.get("Suite"), p.get("Codename")},
			byHash: p.get("Acquire-By-Hash") == "yes",
		}
		if r.date, err = time.Parse(time.RFC1123, p.get("Date")); err != nil {
			return nil, fmt.Errorf("no date in %q", p.get("Date"))
		}
		if until := p.get("Valid-Until"); until != "" {
			if r.validUntil, err = time.Parse(time.RFC1123, until); err != nil {
				return nil, fmt.Errorf("no date in %q", until)
			}
		}
		r.files, err = parseDigests(p.get("SHA256"))
		return r, err
	}
	return nil, fmt.Errorf("no release fields")
}

// parseDigests reads lines of "hash size path".
func parseDigests(text string) (map[string]digest, error) {
	files := make(map[string]digest)
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		if len(f) != 3 || !isSHA256(f[0]) {
			return nil, fmt.Errorf("no hash, size and path in %.80q", line)
		}
		size, err := strconv.ParseInt(f[1], 10, 64)
		if err != nil || size < 0 {
			return nil, fmt.Errorf("no size in %.80q", line)
		}
		files[f[2]] = digest{f[0], size}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("no SHA256 sums")
	}
	return files, nil
}

func isSHA256(s string) bool {
	return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == ""
}

// check refuses the release of another suite, one that has run out, and one from
// the future, which means that the clock is wrong.
func (r *release) check(pocket string, now time.Time) error {
	if r.names[0] != pocket && r.names[1] != pocket {
		return fmt.Errorf("the mirror gave suite %s (%s) for %s", r.names[0], r.names[1], pocket)
	}
	if !r.validUntil.IsZero() && now.After(r.validUntil) {
		return fmt.Errorf("the mirror's index ran out on %s: use a mirror that is in step, or set the clock",
			r.validUntil.Format(time.DateOnly))
	}
	if now.Add(24 * time.Hour).Before(r.date) {
		return fmt.Errorf("the mirror's index is from %s, after this machine's %s: set the clock",
			r.date.Format(time.DateOnly), now.Format(time.DateOnly))
	}
	return nil
}
