package kube

import (
	"bytes"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"
)

// Header says where objects come from, in a comment above them.
type Header struct {
	Version string // of this program
	Source  string // the manifest's name
	SHA256  string // of its text; "" of what has none
	Target  string // what is given to kubectl: a file or a directory
	Secrets bool   // the objects have the values of Secrets
}

// String is the comment.
func (h Header) String() string {
	source := line(h.Source)
	if h.SHA256 != "" {
		source += " sha256:" + h.SHA256
	}
	s := fmt.Sprintf("# rendered by cupola %s from %s\n# apply: kubectl apply --server-side -f %s\n", h.Version, source, line(h.Target))
	if !h.Secrets {
		s += "# values of Secrets are not in here: " + placeholder + " stands for them; render again with --with-secrets to have them\n"
	}
	return s
}

// line is text that stays in its comment.
func line(s string) string {
	return string(bytes.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == 0x85 || r == 0x2028 || r == 0x2029 {
			return '_'
		}
		return r
	}, []byte(s)))
}

// Write writes objects as YAML documents: keys sorted, so that the same objects
// are the same text.
func Write(w io.Writer, all []Object) error {
	for _, o := range all {
		if _, err := io.WriteString(w, "---\n"); err != nil {
			return err
		}
		e := yaml.NewEncoder(w)
		e.SetIndent(2)
		if err := e.Encode(map[string]any(o)); err != nil {
			return fmt.Errorf("write %s %s: %w", o.Kind(), o.Name(), err)
		}
		if err := e.Close(); err != nil {
			return err
		}
	}
	return nil
}

// Read reads what Write wrote.
func Read(r io.Reader) (all []Object, err error) {
	for d := yaml.NewDecoder(r); ; {
		var o Object
		switch err := d.Decode((*map[string]any)(&o)); {
		case err == io.EOF:
			return all, nil
		case err != nil:
			return all, err
		case o != nil:
			all = append(all, o)
		}
	}
}
