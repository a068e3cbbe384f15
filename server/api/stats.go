package api

import "cupola/store/cf"

func (c *call) processInstances(p *cf.Process) []doc { return []doc{} }

func (c *call) vcapApplication(app *cf.App) (doc, error) { return doc{}, nil }
