package manifest

// Variable is a value that is made when the deployment has none.
type Variable struct {
	At
	Name       string
	Type       string // password, certificate, rsa or ssh
	Options    map[string]any
	UpdateMode string // no-overwrite, overwrite or converge; "" is the deployment's

	Consumes map[string]any
}

// VariableTypes are those that can be made, with the options of each.
var VariableTypes = map[string][]string{
	"password": {"length", "exclude_upper", "exclude_lower", "exclude_number", "include_special"},
	"certificate": {"ca", "common_name", "alternative_names", "is_ca", "key_usage", "extended_key_usage", "duration", "organization",
		"organization_unit", "country", "state", "locality", "key_length", "self_sign"},
	"rsa": {"key_length"},
	"ssh": {"key_length", "ssh_comment"},
}

func variable(o *object) Variable {
	return Variable{At: o.At, Name: o.text("name"), Type: o.text("type"), Options: o.values("options"), UpdateMode: o.text("update_mode"), Consumes: o.values("consumes")}
}
