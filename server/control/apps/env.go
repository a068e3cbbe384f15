package apps

import (
	"encoding/json"
	"fmt"
	"strings"

	"cupola/store/cf"
)

// PatchEnv sets the variables that have a value and removes those that are
// null, or says which name cannot be one.
func PatchEnv(env map[string]string, p map[string]*any) (map[string]string, error) {
	out := map[string]string{}
	for k, v := range env {
		out[k] = v
	}
	for k, v := range p {
		if err := checkEnvName(k); err != nil {
			return nil, err
		}
		if v == nil || *v == nil {
			delete(out, k)
			continue
		}
		text, err := envText(k, *v)
		if err != nil {
			return nil, err
		}
		out[k] = text
	}
	return out, envFits(out)
}

// Limits of an app's variables, in bytes: Linux executes nothing with a longer
// one (MAX_ARG_STRLEN), or with more than a quarter of the stack in sum.
const (
	maxVariable = 128<<10 - 1
	maxEnv      = 512 << 10
)

func envFits(env map[string]string) error {
	sum := 0
	for k, v := range env {
		n := len(k) + len("=") + len(v)
		if n >= maxVariable {
			return cf.Unprocessable("Environment variable '%.100s' is too long: %d bytes with its name; at most %d are accepted", k, n, maxVariable-1)
		}
		sum += n
	}
	if sum > maxEnv {
		return cf.Unprocessable("Environment variables are too large: %d bytes; at most %d are accepted", sum, maxEnv)
	}
	return nil
}

func checkEnvName(k string) error {
	switch {
	case k == "":
		return cf.Unprocessable("Environment variables key must be a minimum length of 1")
	case strings.HasPrefix(k, "VCAP_"):
		return cf.Unprocessable("Environment variables cannot start with 'VCAP_'")
	case strings.HasPrefix(k, "VMC_"):
		return cf.Unprocessable("Environment variables cannot start with 'VMC_'")
	case k == "PORT":
		return cf.Unprocessable("Environment variables cannot set PORT")
	case strings.ContainsAny(k, "=\x00"):
		return cf.Unprocessable("Environment variables key '%s' cannot contain '='", k)
	}
	return nil
}

// envText is a variable's value as text: Cloud Controller takes numbers and
// booleans too.
func envText(k string, v any) (string, error) {
	switch x := v.(type) {
	case string:
		if strings.Contains(x, "\x00") {
			return "", cf.Unprocessable("Non-string value in environment variable for key '%s', value '%s'", k, "with a null byte")
		}
		return x, nil
	case bool, float64, int, int64:
		b, err := json.Marshal(x)
		return string(b), err
	}
	return "", cf.Unprocessable("Non-string value in environment variable for key '%s', value '%s'", k, fmt.Sprint(v))
}
