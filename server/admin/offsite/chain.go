package offsite

import (
	"maps"
	"strings"

	"cupola/server/admin/backup"
)

// Each fanout-th part of a level follows the last one of a higher level, with all that
// changed since, so that a restore needs few of many parts.
const (
	fanout = 16
	levels = 4
)

// chain knows what the next part has to hold.
type chain struct {
	sent   int // parts; the first one is whole
	levels [levels]link
}

// link is the last part of a level or a higher one.
type link struct {
	after string          // its name
	since map[uint32]bool // pages that changed since
	files files           // that it and those before it have
}

// files are the IDs of files, by their names. Of a file whose content changes, like a key, it is the
// last one.
type files map[string]string

// name is that of the file that an archive.Member's ID is of.
func (files) name(id string) string {
	name, _, _ := strings.Cut(id, " ")
	return name
}

// has reports whether a file is there as it is now; there reports whether any content of it is.
func (f files) has(id string) (has, there bool) {
	last, there := f[f.name(id)]
	return last == id, there
}

// level is that of the next part.
func (c *chain) level() (level int) {
	for n := c.sent; n > 0 && n%fanout == 0 && level < levels-1; n /= fanout {
		level++
	}
	return level
}

// next is what the next part follows; the zero link for a whole one.
func (c *chain) next() link {
	if c.sent == 0 {
		return link{}
	}
	return c.levels[c.level()]
}

// changed notes what was taken, until it was sent.
func (c *chain) changed(p *backup.Part) {
	if p.Whole {
		*c = chain{}
		return
	}
	for n := range c.levels {
		if c.levels[n].since == nil {
			c.levels[n].since = map[uint32]bool{}
		}
		for _, page := range p.Numbers {
			c.levels[n].since[page] = true
		}
	}
}

// add notes that the next part was sent.
func (c *chain) add(name string, ids []string) {
	to, all := c.level(), maps.Clone(c.next().files)
	if c.sent == 0 {
		to = levels - 1
	}
	if all == nil {
		all = files{}
	}
	for _, id := range ids {
		all[all.name(id)] = id
	}
	for n := range to + 1 {
		c.levels[n] = link{name, map[uint32]bool{}, all} // all is not changed any more
	}
	c.sent++
}
