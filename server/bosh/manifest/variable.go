package manifest

import "cupola/server/bosh/variables"

// Variable is a value that is made when the deployment has none.
type Variable struct {
	At
	Name       string
	Type       string // password, certificate, rsa or ssh
	Options    map[string]any
	UpdateMode string // no-overwrite, overwrite or converge; "" is the deployment's
	Consumes   map[string]any
}

func variable(o *object) Variable {
	return Variable{At: o.At, Name: o.text("name"), Type: o.text("type"), Options: o.values("options"), UpdateMode: o.text("update_mode"), Consumes: o.values("consumes")}
}

// Declared are the variables of a manifest that Lint found nothing wrong with,
// as package variables takes them. Their options have to be interpolated.
func (m *Manifest) Declared() []variables.Declared {
	all := make([]variables.Declared, 0, len(m.Variables))
	for _, v := range m.Variables {
		options, _ := variables.Parse(variables.Type(v.Type), v.Options)
		d := variables.Declared{Name: v.Name, Type: variables.Type(v.Type), Options: options, Mode: variables.Mode(v.UpdateMode)}
		if d.Mode == "" && m.Features.ConvergeVariables {
			d.Mode = variables.Converge
		}
		all = append(all, d)
	}
	return all
}
