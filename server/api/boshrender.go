package api

import "cupola/store/cf"

// renderBOSH answers with objects. It takes as long as images need to get here,
// so it is not a transaction.
func renderBOSH(c *call) (*response, error) {
	if err := c.receive(); err != nil {
		return nil, err
	}
	if err := c.tx(true, c.PermitAdmin); err != nil {
		return nil, err
	}
	if c.s.RenderBOSH == nil {
		return nil, cf.Unprocessable("nothing renders deployments here")
	}
	var invalid error
	rendered, err := c.s.RenderBOSH(c.Context(), func(request any) error {
		invalid = decode(c, request)
		return invalid
	})
	if invalid != nil {
		return nil, invalid
	}
	if err != nil {
		return nil, cf.Unprocessable("%s", err)
	}
	return ok(rendered)
}
