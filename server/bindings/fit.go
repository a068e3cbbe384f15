package bindings

import "fmt"

// Fit tells why what is of an app, as Cloud Controller calls it, could not be
// started with its bindings; nil if it could.
func Fit(form Form, all []Binding, what string) error {
	if form == FormNone {
		text, err := VCAPServices(all)
		if err != nil {
			return err
		}
		return CheckVariable(text)
	}
	if _, err := Files(form, all); err != nil {
		return fmt.Errorf("Cannot build service binding files for %s - %s", what, err) //nolint:staticcheck // Cloud Controller's text
	}
	return nil
}
