package api

import (
	"cupola/server/kube"
	"cupola/store/cf"
)

// RenderRequest is a manifest to be written as Kubernetes objects. Ops are
// applied by the client.
type RenderRequest struct {
	Manifest string         `json:"manifest"`
	Values   map[string]any `json:"values"`
	Lenient  bool           `json:"lenient"`
	Options  kube.Options   `json:"options"`
	// Existing are variables as a cluster has them.
	Existing []kube.Variable `json:"existing"`
	// Rotate names variables that are made anew all the same.
	Rotate []string `json:"rotate"`
}

// Rendered is what became of a manifest.
type Rendered struct {
	Objects  string         `json:"objects"` // YAML
	Warnings []kube.Warning `json:"warnings"`
}

// renderBOSH answers with objects. It takes as long as images need to get here,
// so it is no transaction.
func renderBOSH(c *call) (*response, error) {
	if err := c.receive(); err != nil {
		return nil, err
	}
	if err := c.tx(true, c.PermitAdmin); err != nil {
		return nil, err
	}
	var req RenderRequest
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	if c.s.RenderBOSH == nil {
		return nil, cf.Unprocessable("nothing renders deployments here")
	}
	rendered, err := c.s.RenderBOSH(c.Context(), req)
	if err != nil {
		return nil, cf.Unprocessable("%s", err)
	}
	return ok(rendered)
}
