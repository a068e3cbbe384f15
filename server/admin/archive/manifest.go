package archive

import (
	"encoding/hex"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"cupola/runtime/pattern"
	"cupola/store"
)

// format is the number of this file format: the second has volumes.
const format = 2

// Where, in a backup, that lies which becomes part of a data directory only by
// being unpacked.
const (
	StacksDir = "stacks" // <stack>/stack.json, lock.json, fs.tar
	ImagesDir = "images" // <sha256>.json: the records of images
	LocksDir  = "stack-locks"
	TreesDir  = "volume-trees" // <volume>.tar
	PagesName = "db/pages"
)

// Manifest says what a backup holds. All members of a file are there, in the
// order of the manifest.
type Manifest struct {
	Format  int
	Version string // of the cupola that wrote it
	Schema  int    // of the database
	Created time.Time
	Left    []Left   `json:",omitempty"`
	Volumes []Volume `json:",omitempty"`
	// Pages says which pages of the database are there, as the member PagesName, in a
	// part: what changed since a backup. A part has no other copy of the database.
	Pages   *store.PageSet `json:",omitempty"`
	Members []Member
}

// Left is what the apps of a backup need, and that is only named in it.
type Left struct {
	Kind   string // stack, image or volume
	Name   string
	Origin string // what the stack was made of; whose the volume is
}

// Volume is a volume whose content is there, as the member TreeName.
type Volume struct {
	Name   string
	Bytes  int64 // desired, not used
	Shared bool  // every user of a container may write to it
}

// TreeName is the member that has a volume's content.
func TreeName(volume string) string { return path.Join(TreesDir, volume+".tar") }

// Member is a file of a backup.
type Member struct {
	Name   string // as in a data directory, with slashes
	Size   int64  // bytes
	SHA256 string // hex
}

// Bytes is what the members have together.
func (m Manifest) Bytes() (sum int64) {
	for _, f := range m.Members {
		sum += f.Size
	}
	return sum
}

const (
	maxMembers = 1 << 20
	maxMember  = 1 << 40 // bytes
)

// names are what members may be called: there are no others in a backup, so
// that none is written where it does not belong.
var names = pattern.Lazy(`^(` + strings.Join([]string{
	`db/(cupola\.db|pages|store\.key|admin-password|ca\.key)`, `db/bbs/[a-z]+\.(crt|key)`, `identity/ca\.(crt|key)`, `ca\.pem`, `ssh_host_key`,
	`blobs/[0-9a-f]{2}/[0-9a-f]{64}`, `rootfs/oci/[0-9a-f]{64}`, `rootfs/images/fallbacks`, ImagesDir + `/[0-9a-f]{64}\.json`,
	StacksDir + `/[a-zA-Z0-9][a-zA-Z0-9_.-]{0,62}/(stack\.json|lock\.json|fs\.tar)`, LocksDir + `/[a-zA-Z0-9][a-zA-Z0-9_.-]{0,62}\.json`,
	TreesDir + `/[a-zA-Z0-9][a-zA-Z0-9_-]{0,127}\.tar`,
}, "|") + `)$`)

// What every backup has.
var needed = []string{"db/cupola.db", "db/store.key"}

// check refuses a manifest that is none, before anything it says is relied on.
func (m Manifest) check() error {
	switch {
	case m.Format > format:
		return fmt.Errorf("it was written by a newer cupola (%s; format %d, this one knows %d)", m.Version, m.Format, format)
	case m.Format < 1:
		return errors.New("its manifest names no format")
	case len(m.Members) > maxMembers:
		return fmt.Errorf("it has %d members", len(m.Members))
	}
	seen := map[string]bool{}
	for _, f := range m.Members {
		if err := f.check(); err != nil {
			return err
		}
		if seen[f.Name] {
			return fmt.Errorf("member %q is there twice", f.Name)
		}
		seen[f.Name] = true
	}
	if m.Pages != nil {
		return m.checkPart(seen)
	}
	if seen[PagesName] {
		return errors.New("it has pages of the database, but is not a part")
	}
	for _, name := range needed {
		if !seen[name] {
			return fmt.Errorf("it has no %s", name)
		}
	}
	return m.checkVolumes(seen)
}

// checkPart holds that a part has its pages, and nothing that only a backup has.
func (m Manifest) checkPart(members map[string]bool) error {
	if err := m.Pages.Check(); err != nil {
		return err
	}
	if !members[PagesName] {
		return errors.New("the pages of the database are not there")
	}
	for _, f := range m.Members {
		switch dir, _, _ := strings.Cut(f.Name, "/"); {
		case f.Name == PagesName && f.Size != m.Pages.Bytes():
			return fmt.Errorf("its pages have %d bytes instead of %d", f.Size, m.Pages.Bytes())
		case f.Name == "db/cupola.db", dir == StacksDir, dir == LocksDir, dir == TreesDir:
			return fmt.Errorf("member %q is none of a part", f.Name)
		}
	}
	return nil
}

// checkVolumes holds that each volume has its member, and each such member its
// volume.
func (m Manifest) checkVolumes(members map[string]bool) error {
	volumes := map[string]bool{}
	for _, v := range m.Volumes {
		name := TreeName(v.Name)
		switch {
		case !members[name]:
			return fmt.Errorf("the content of the volume %q is not there", v.Name)
		case volumes[name]:
			return fmt.Errorf("the volume %q is there twice", v.Name)
		case v.Bytes < 1 || v.Bytes > maxMember:
			return fmt.Errorf("the volume %q has %d bytes", v.Name, v.Bytes)
		}
		volumes[name] = true
	}
	for _, f := range m.Members {
		if strings.HasPrefix(f.Name, TreesDir+"/") && !volumes[f.Name] {
			return fmt.Errorf("member %q belongs to no volume", f.Name)
		}
	}
	return nil
}

func (f Member) check() error {
	if !names().MatchString(f.Name) {
		return fmt.Errorf("member %q is none of a backup", f.Name)
	}
	if f.Size < 0 || f.Size > maxMember {
		return fmt.Errorf("member %q has %d bytes", f.Name, f.Size)
	}
	if sum, err := hex.DecodeString(f.SHA256); err != nil || len(sum) != 32 {
		return fmt.Errorf("member %q has no SHA-256", f.Name)
	}
	if sum := f.addressed(); sum != "" && (sum != f.SHA256 || strings.HasPrefix(f.Name, "blobs/") && path.Base(path.Dir(f.Name)) != sum[:2]) {
		return fmt.Errorf("member %q is not what its name says", f.Name)
	}
	return nil
}

// ID is another one for each content of a file: its name, if that tells the content.
func (f Member) ID() string {
	if f.addressed() != "" || strings.HasPrefix(f.Name, ImagesDir+"/") {
		return f.Name
	}
	return f.Name + " " + f.SHA256
}

// addressed is the digest that a member is named by; "" for one that is not.
func (f Member) addressed() string {
	if strings.HasPrefix(f.Name, "blobs/") || strings.HasPrefix(f.Name, "rootfs/oci/") {
		return path.Base(f.Name)
	}
	return ""
}
