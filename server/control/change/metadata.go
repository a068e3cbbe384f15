package change

import (
	"regexp"
	"strings"

	"cupola/store/cf"
)

// Metadata is the "metadata" of a request; null removes a key.
type Metadata struct {
	Labels      map[string]*string `json:"labels"`
	Annotations map[string]*string `json:"annotations"`
}

var labelKey = regexp.MustCompile(`^([A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`)

var labelValue = regexp.MustCompile(`^([A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?)?$`)

// Apply changes m, or says what is wrong in Cloud Controller's words.
func (p *Metadata) Apply(m *cf.Metadata) error {
	if p == nil {
		return nil
	}
	for k, v := range p.Labels {
		if err := checkLabel(k, v); err != nil {
			return err
		}
	}
	for k, v := range p.Annotations {
		if v != nil && len(*v) > 5000 {
			return cf.Unprocessable("Metadata annotations error: '%.20s...' is greater than 5000 characters", *v)
		}
		if len(k) > 1000 {
			return cf.Unprocessable("Metadata annotations error: '%.20s...' is greater than 1000 characters", k)
		}
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

func checkLabel(k string, v *string) error {
	prefix, name, prefixed := strings.Cut(k, "/")
	if !prefixed {
		prefix, name = "", k
	}
	switch {
	case k == "":
		return cf.Unprocessable("Metadata label key error: key cannot be empty string")
	case len(name) > 63 || len(prefix) > 253:
		return cf.Unprocessable("Metadata label key error: '%.20s...' is greater than 63 characters", name)
	case !labelKey.MatchString(k):
		return cf.Unprocessable("Metadata label key error: '%s' contains invalid characters", k)
	case v != nil && len(*v) > 63:
		return cf.Unprocessable("Metadata label value error: '%.20s...' is greater than 63 characters", *v)
	case v != nil && !labelValue.MatchString(*v):
		return cf.Unprocessable("Metadata label value error: '%s' contains invalid characters", *v)
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
