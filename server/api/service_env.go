package api

import (
	"encoding/json"

	"cupola/server/bindings"
	"cupola/server/control/services"
	"cupola/server/desire"
	"cupola/store/cf"
)

// systemEnv is what of an app's environment the platform says of its services.
func (c *call) systemEnv(app *cf.App) (doc, error) {
	list, err := services.BoundTo(c.Session, app)
	if err != nil {
		return nil, err
	}
	if form := bindings.Form(app.BindingForm); form != bindings.FormNone {
		where := form.Variable()
		return doc{where.Name: where.Value}, nil
	}
	return doc{"VCAP_SERVICES": json.RawMessage(desire.VCAPServices(list))}, nil
}
