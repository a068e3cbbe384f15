package cf

import "time"

// Resource is what every noun has.
type Resource struct {
	GUID      string
	CreatedAt time.Time
	UpdatedAt time.Time // zero: never changed
}

// Metadata is the labels and annotations of a noun.
type Metadata struct {
	Labels      map[string]string
	Annotations map[string]string
}
