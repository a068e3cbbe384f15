package bindings

import "fmt"

// Fit returns why an app, a task or a staging (what, in Cloud Controller's
// words) could not start with its bindings, or nil.
func Fit(form Form, all []Binding, what string) error {
	if form == FormNone {
		text, err := VCAPServices(all)
		if err != nil {
			return err
		}
		return checkVariable(text)
	}
	if _, err := Files(form, all); err != nil {
		return fmt.Errorf("Cannot build service binding files for %s - %s", what, err) //nolint:staticcheck // Cloud Controller's text
	}
	return nil
}
