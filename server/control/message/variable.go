package message

import "strings"

// VariableFault is what is wrong with the name of an environment variable, "" for
// nothing: CC: Validators::EnvironmentVariablesValidator.
func VariableFault(k string) string {
	switch upper := strings.ToUpper(k); {
	case k == "":
		return "key must be a minimum length of 1"
	case strings.HasPrefix(upper, "VCAP_"):
		return "cannot start with VCAP_"
	case strings.HasPrefix(upper, "VMC"):
		return "cannot start with VMC_"
	case upper == "PORT":
		return "cannot set PORT"
	}
	return ""
}
