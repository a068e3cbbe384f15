package api

import (
	"cupola/server/control/message"
)

var (
	buildpackName = message.Like(`^[-A-Za-z0-9_]+$`, "is invalid")
	stackStates   = message.In("must be one of ACTIVE, RESTRICTED, DEPRECATED, DISABLED", "ACTIVE", "RESTRICTED", "DEPRECATED", "DISABLED")
	position      = message.Integer(message.AtLeast(1))
	boolean       = message.Boolean
)

var stackMessages = map[string]checks{
	"POST /v3/buildpacks": {
		message.Metadata,
		message.Keys("name", "stack", "position", "enabled", "locked", "lifecycle", "metadata"),
		message.Attribute("name", message.String, message.Present, message.Max(250), buildpackName),
		message.Optional("stack", message.String, message.Max(250)),
		message.Optional("position", position),
		message.Optional("enabled", boolean),
		message.Optional("locked", boolean),
		message.Optional("lifecycle", message.String, message.In(`must be either "buildpack" or "cnb"`, "buildpack", "cnb")),
	},
	"PATCH /v3/buildpacks/{guid}": {
		message.Metadata,
		message.Keys("name", "stack", "position", "enabled", "locked", "metadata"),
		message.Optional("name", message.String, message.Max(250), buildpackName),
		message.Optional("stack", message.String, message.Max(250)),
		message.Given("position", message.Attribute("position", position)),
		message.Given("enabled", message.Attribute("enabled", boolean)),
		message.Given("locked", message.Attribute("locked", boolean)),
	},
	"POST /v3/stacks": {
		message.Metadata,
		message.Attribute("name", message.Present, message.Max(250)),
		message.Attribute("description", message.Max(250)),
		message.Given("state", message.Attribute("state", stackStates)),
		message.Optional("state_reason", message.Max(5000)),
	},
	"PATCH /v3/stacks/{guid}": {
		message.Metadata,
		message.Keys("state", "state_reason", "metadata"),
		message.Given("state", message.Attribute("state", stackStates)),
		message.Optional("state_reason", message.Max(5000)),
	},
}
