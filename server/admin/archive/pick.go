package archive

import (
	"context"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"strings"

	"cupola/store"
)

// Picker takes one volume out of a backup.
type Picker struct {
	Dir string // gets the database and its key, which come before all volumes
	// Choose names the volume, once the database is in Dir.
	Choose func(Manifest) (volume string, err error)
	To     io.Writer // gets the volume's content: worth nothing if picking fails

	manifest Manifest
	chosen   bool
	volume   string
	err      error // of Choose
}

// File picks from the file of a backup, which it reads and checks to its end.
func (p *Picker) File(ctx context.Context, r io.Reader) error {
	return p.end(read(ctx, r, visitor{Manifest: p.begin, Member: p.member}))
}

// Tar picks from what a Source wrote. It reads, and checks, only the members that it needs.
func (p *Picker) Tar(ctx context.Context, r io.ReadSeeker) error {
	skip := func(m Member) bool { return !p.wants(m) && p.err == nil }
	return p.end(faultOf(ctx, readTar(r, visitor{Manifest: p.begin, Member: p.member, Skip: skip})))
}

func (p *Picker) begin(m Manifest) error {
	p.manifest = m
	return nil
}

// choose asks once which volume is wanted.
func (p *Picker) choose() {
	if !p.chosen {
		p.chosen = true
		p.volume, p.err = p.Choose(p.manifest)
	}
}

func (p *Picker) wants(m Member) bool {
	if IsDatabase(m) {
		return true
	}
	if !strings.HasPrefix(m.Name, TreesDir+"/") {
		return false
	}
	p.choose()
	return p.err == nil && m.Name == TreeName(p.volume)
}

// IsDatabase reports whether a member is the database or its key.
func IsDatabase(m Member) bool {
	return m.Name == "db/"+store.DatabaseFile || m.Name == "db/"+store.KeyFile
}

func (p *Picker) member(m Member, r io.Reader) error {
	wanted := p.wants(m)
	switch {
	case p.err != nil:
		return &visitError{p.err}
	case !wanted:
		return nil
	case IsDatabase(m):
		return writeFile(filepath.Join(p.Dir, path.Base(m.Name)), r)
	}
	_, err := io.Copy(ownErrors{p.To}, r)
	return err
}

// end sees that the volume was there.
func (p *Picker) end(err error) error {
	if err != nil {
		return err
	}
	if p.choose(); p.err != nil {
		return p.err
	}
	for _, v := range p.manifest.Volumes {
		if v.Name == p.volume {
			return nil
		}
	}
	return fmt.Errorf("the backup does not have the volume %s: it was made --without-volumes, or while the volume was being deleted", p.volume)
}
