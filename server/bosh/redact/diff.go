package redact

import "cupola/server/bosh/linediff"

// Diff returns the lines in which two manifests or configs differ, as linediff.Lines
// does. Without secrets, credentials are redacted.
func Diff(was, is string, secrets bool) (lines []string, err error) {
	if !secrets {
		if was, err = Manifest(was); err != nil {
			return nil, err
		}
		if is, err = Manifest(is); err != nil {
			return nil, err
		}
	}
	for _, l := range linediff.Lines(was, is) {
		lines = append(lines, Shown(l))
	}
	return lines, nil
}
