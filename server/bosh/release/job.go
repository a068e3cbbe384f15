package release

import (
	"io/fs"

	"cupola/server/bosh/tree"
)

// Job is a job of a release.
type Job struct {
	Name       string
	Templates  []Template          // by Destination
	Properties map[string]Property // by dotted name
	Order      []string            // the names of Properties as the spec has them
	Provides   []Provided
	Consumes   []Consumed
	Packages   []string
	// Monit is the template of the job's monit file; nil: it has none.
	Monit []byte
}

// Property is one that the templates of a job may see.
type Property struct {
	Description string
	// Default is nil for none; else made of nil, bool, int, int64, uint64,
	// float64, string, []any and map[string]any.
	Default any
	Order   *tree.Order // of Default
}

// Provided is a link that a job offers.
type Provided struct {
	Name, Type string
	Properties []string // dotted names of those that come with the link
}

// Consumed is a link that a job wants.
type Consumed struct {
	Name, Type string
	Optional   bool
}

// Template is a file of a job before it is rendered.
type Template struct {
	Source      string // below templates
	Destination string // below the directory of the job; clean and relative
	Content     []byte
	Mode        fs.FileMode // of the rendered file, which belongs to root and the group vcap
}
