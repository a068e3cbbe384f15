package gitpush

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/pktline"
)

// update is one ref that a push wants changed. A zero hash is none.
type update struct {
	name     plumbing.ReferenceName
	old, new plumbing.Hash
}

func (u update) deletes() bool { return u.new.IsZero() }

// deploys reports whether the update is of a branch whose pushes deploy.
func (u update) deploys() bool {
	return !u.deletes() && (u.name == plumbing.Main || u.name == plumbing.Master)
}

// fault is what is wrong with the ref itself; "" for nothing.
func (u update) fault() string {
	switch {
	case len(u.name) > maxRefName || u.name.Validate() != nil:
		return "the name is not valid"
	case !u.name.IsBranch() && !u.name.IsTag():
		return "only branches and tags are accepted"
	}
	return ""
}

// order is what a client wants of a push: the lines before the pack.
type order struct {
	updates  []update
	shallow  bool // the client has a shallow clone
	sideband bool // it shows messages
	report   bool // it reads what became of each ref
}

// packs reports whether a pack follows.
func (o *order) packs() bool {
	for _, u := range o.updates {
		if !u.deletes() {
			return true
		}
	}
	return false
}

// Bounds of a push.
const (
	maxUpdates = 100
	maxRefName = 200 // bytes
	maxOrder   = 10_000
)

// readOrder reads the lines of a push, up to the pack. Their form is git's
// (gitprotocol-pack, "Reference Update Request and Packfile Transfer").
func readOrder(r io.Reader) (*order, error) {
	o := &order{}
	s := pktline.NewScanner(r)
	for n := 0; s.Scan(); n++ {
		line := s.Bytes()
		if len(line) == 0 {
			return o, nil
		}
		if n > maxOrder {
			return nil, errors.New("the push has too many lines")
		}
		if err := o.line(bytes.TrimSuffix(line, []byte("\n"))); err != nil {
			return nil, err
		}
	}
	if err := s.Err(); err != nil {
		return nil, fmt.Errorf("read the push: %w", err)
	}
	return nil, errors.New("the push ends before its pack")
}

func (o *order) line(line []byte) error {
	if bytes.HasPrefix(line, []byte("shallow ")) {
		o.shallow = true
		return nil
	}
	command, offers, first := bytes.Cut(line, []byte{0})
	if first {
		if err := o.offers(string(offers)); err != nil {
			return err
		}
	}
	fields := strings.SplitN(string(command), " ", 3)
	if len(fields) == 1 && strings.HasPrefix(fields[0], "push-cert") {
		return errors.New("signed pushes are not supported: push without --signed")
	}
	if len(fields) != 3 || !plumbing.IsHash(fields[0]) || !plumbing.IsHash(fields[1]) {
		return fmt.Errorf("the push has an invalid line %.80q", command)
	}
	if len(o.updates) == maxUpdates {
		return fmt.Errorf("the push has more than %d refs: push fewer at once", maxUpdates)
	}
	o.updates = append(o.updates, update{plumbing.ReferenceName(fields[2]), plumbing.NewHash(fields[0]), plumbing.NewHash(fields[1])})
	return nil
}

func (o *order) offers(text string) error {
	for offer := range strings.FieldsSeq(text) {
		name, value, _ := strings.Cut(offer, "=")
		switch {
		case name == "side-band-64k":
			o.sideband = true
		case name == "report-status":
			o.report = true
		case name == "object-format" && value != "sha1":
			return fmt.Errorf("the repository has objects of %.20q; only sha1 is supported", value)
		}
	}
	return nil
}
