package api

import (
	"cupola/server/kube"
	"cupola/store/cf"
)

// renderBOSH answers with objects. It takes as long as images need to get here,
// so it is no transaction.
func renderBOSH(c *call) (*response, error) {
	if err := c.receive(); err != nil {
		return nil, err
	}
	if err := c.tx(true, c.PermitAdmin); err != nil {
		return nil, err
	}
	var req kube.RenderRequest
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
