package model

import "strings"

// faults gathers what is wrong with a message, in Diego's words.
type faults struct{ list []string }

// field says that a field is not valid.
func (f *faults) field(name string, wrong bool) {
	if wrong {
		f.list = append(f.list, "Invalid field: "+name)
	}
}

// say says something else.
func (f *faults) say(text string, wrong bool) {
	if wrong {
		f.list = append(f.list, text)
	}
}

// in takes over what is wrong with a part, after the name of the field that
// has it; "" when Diego does not name it.
func (f *faults) in(name string, check func(*faults)) {
	var inner faults
	check(&inner)
	if len(inner.list) == 0 {
		return
	}
	f.field(name, name != "")
	f.list = append(f.list, inner.list...)
}

func (f *faults) err() error {
	if len(f.list) == 0 {
		return nil
	}
	return &Error{InvalidRequest, strings.Join(f.list, ", ")}
}
