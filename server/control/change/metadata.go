package change

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"cupola/server/control/message"
	"cupola/store/cf"
)

// Metadata is the "metadata" of a request; null removes a key.
type Metadata struct {
	Labels      map[string]*string `json:"labels"`
	Annotations map[string]*string `json:"annotations"`
}

// UnmarshalJSON takes values that are numbers and booleans as their text, as Rails
// does.
func (p *Metadata) UnmarshalJSON(b []byte) error {
	var raw struct {
		Labels      map[string]any `json:"labels"`
		Annotations map[string]any `json:"annotations"`
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := d.Decode(&raw); err != nil {
		return err
	}
	p.Labels, p.Annotations = texts(raw.Labels), texts(raw.Annotations)
	return nil
}

func texts(values map[string]any) map[string]*string {
	if values == nil {
		return nil
	}
	out := map[string]*string{}
	for k, v := range values {
		out[k] = nil
		if v != nil {
			text := message.Text(v)
			out[k] = &text
		}
	}
	return out
}

// Apply changes m, or says what is wrong in Cloud Controller's words.
func (p *Metadata) Apply(m *cf.Metadata) error {
	if p == nil {
		return nil
	}
	if err := p.fault(); err != nil {
		return err
	}
	m.Labels = patch(m.Labels, p.Labels)
	m.Annotations = patch(m.Annotations, p.Annotations)
	return metadataFits(m)
}

// Limits of a resource's metadata as a whole: Cloud Controller has none, and each
// list shows all of it. The bytes are those that Kubernetes gives annotations.
const (
	maxMetadata      = 500 // labels, and annotations
	maxMetadataBytes = 256 << 10
)

func metadataFits(m *cf.Metadata) error {
	sum := 0
	for k, v := range m.Annotations {
		sum += len(k) + len(v)
	}
	switch {
	case len(m.Labels) > maxMetadata:
		return cf.Unprocessable("Metadata labels may have at most %d entries, they have %d", maxMetadata, len(m.Labels))
	case len(m.Annotations) > maxMetadata:
		return cf.Unprocessable("Metadata annotations may have at most %d entries, they have %d", maxMetadata, len(m.Annotations))
	case sum > maxMetadataBytes:
		return cf.Unprocessable("Metadata annotations may have at most %d bytes, they have %d", maxMetadataBytes, sum)
	}
	return nil
}

// fault is what is wrong with the metadata; a request was checked before, a manifest
// was not.
func (p *Metadata) fault() error {
	for _, k := range slices.Sorted(maps.Keys(p.Labels)) {
		if f := message.LabelFaults(k, p.Labels[k]); len(f) > 0 {
			return cf.Unprocessable("Metadata %s", strings.Join(f, ", Metadata "))
		}
	}
	for _, k := range slices.Sorted(maps.Keys(p.Annotations)) {
		if f := message.AnnotationFaults(k, p.Annotations[k]); len(f) > 0 {
			return cf.Unprocessable("Metadata %s", strings.Join(f, ", Metadata "))
		}
	}
	return nil
}

// patch sets the keys that have a value and removes those that are null.
func patch(m map[string]string, p map[string]*string) map[string]string {
	out := map[string]string{}
	for k, v := range m {
		out[k] = v
	}
	for k, v := range p {
		if v == nil {
			delete(out, k)
		} else {
			out[k] = *v
		}
	}
	return out
}
