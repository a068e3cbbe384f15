package bindings

import "fmt"

// maxVariable is how many bytes a variable may have, with its name, for the
// kernel to start a program with it: MAX_ARG_STRLEN, less the NUL at its end.
const maxVariable = 128<<10 - 1

// VCAPServices is the content of VCAP_SERVICES.
func VCAPServices(all []Binding) ([]byte, error) {
	services := object{}
	for _, b := range all {
		entry, err := b.entry()
		if err != nil {
			return nil, err
		}
		label := b.label()
		list := []value{}
		for _, s := range services {
			if s.name == label {
				list = s.value.([]value)
			}
		}
		services.set(label, append(list, entry))
	}
	return encode(services, true), nil
}

// entry is a binding in VCAP_SERVICES.
func (b Binding) entry() (object, error) {
	attributes, err := b.attributes()
	if err != nil {
		return nil, err
	}
	credentials, err := b.credentials()
	if err != nil {
		return nil, err
	}
	entry := object{}
	for _, a := range attributes {
		entry = append(entry, a)
		if a.name == "binding_name" {
			entry = append(entry, attribute{"credentials", credentials})
		}
	}
	return entry, nil
}

func (b Binding) credentials() (object, error) {
	v, err := parse(b.Credentials)
	if err != nil {
		return nil, fmt.Errorf("credentials of binding %s: %w", b.GUID, err)
	}
	o, ok := v.(object)
	if !ok && v != nil {
		return nil, fmt.Errorf("credentials of binding %s are not an object", b.GUID)
	}
	if o == nil {
		o = object{}
	}
	return o, nil
}

// checkVariable refuses a VCAP_SERVICES with which no program could be started.
func checkVariable(text []byte) error {
	const name = "VCAP_SERVICES="
	if len(name)+len(text) <= maxVariable {
		return nil
	}
	return fmt.Errorf("VCAP_SERVICES has %d bytes, and a variable can have at most %d: have the app read its bindings from files, with the app feature '%s' or '%s'",
		len(text), maxVariable-len(name), FormVCAP, FormServiceBindingIO)
}
