// Package change holds what requests to change a noun have in common: fields
// that may be absent, null or a value, relationships, and labels and annotations.
// Decoders and manifests fill them, the verbs apply them.
package change
