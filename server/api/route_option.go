package api

import (
	"encoding/json"
	"fmt"
	"slices"

	"cupola/server/control"
	"cupola/server/control/change"
	"cupola/server/control/routes"
	"cupola/store/cf"
)

// options reads the options of a request.
func (c *call) options(v change.Field[any]) (map[string]any, error) {
	if !v.Set {
		return nil, nil
	}
	given, isObject := v.V.(map[string]any)
	if !isObject {
		return nil, cf.Unprocessable("Options 'options' is not a valid object")
	}
	rules, err := routes.Rules(c.Session)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(given)
	if err != nil {
		return nil, err
	}
	faults := rules.Faults(given)
	if len(text) > routes.MaxOptionsBytes {
		faults = slices.Insert(faults, 0, fmt.Sprintf("must be smaller than %d bytes (actual size is %d bytes)", routes.MaxOptionsBytes, len(text)))
	}
	for i, f := range faults {
		faults[i] = "Options " + f
	}
	return given, control.Invalid(faults)
}
