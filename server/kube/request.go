package kube

import "cupola/server/bosh/tree"

// RenderRequest is a manifest to be written as Kubernetes objects. Ops are
// applied by the client.
type RenderRequest struct {
	Manifest string   `json:"manifest"`
	Values   tree.Map `json:"values"`
	Lenient  bool     `json:"lenient"`
	Options  Options  `json:"options"`
	// Existing are variables as a cluster has them.
	Existing []Variable `json:"existing"`
	// Rotate names variables that are generated again although they have a value.
	Rotate []string `json:"rotate"`
}

// Rendered is what became of a manifest.
type Rendered struct {
	Objects  string    `json:"objects"` // YAML
	Warnings []Warning `json:"warnings"`
}
