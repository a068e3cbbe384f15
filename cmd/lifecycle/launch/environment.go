package launch

import (
	"fmt"
	"path/filepath"
	"strings"

	"cupola/cmd/lifecycle/vcap"
	"cupola/runtime/contract"
)

// environment returns env for an app in dir: HOME, TMPDIR,
// DEPS_DIR and DATABASE_URL set, VCAP_APPLICATION completed,
// VCAP_PLATFORM_OPTIONS gone.
func environment(dir string, env []string) ([]string, error) {
	if strings.ContainsRune(dir, 0) {
		return nil, fmt.Errorf("app directory %q", dir)
	}
	parent := filepath.Dir(dir)
	env = set(env, "HOME", dir)
	env = set(env, "TMPDIR", filepath.Join(parent, "tmp"))
	env = set(env, "DEPS_DIR", filepath.Join(parent, "deps"))
	in := vcap.Instance{GUID: get(env, contract.EnvInstanceGUID), Index: get(env, contract.EnvInstanceIndex), Port: get(env, contract.EnvPort)}
	if text, ok := vcap.CompleteApplication(get(env, contract.EnvApplication), in); ok {
		env = set(env, contract.EnvApplication, text)
	}
	if url := vcap.DatabaseURL(get(env, contract.EnvServices)); url != "" {
		env = set(env, contract.EnvDatabaseURL, url)
	}
	return unset(env, "VCAP_PLATFORM_OPTIONS"), nil
}

func get(env []string, name string) string {
	for _, kv := range env {
		if k, v, _ := strings.Cut(kv, "="); k == name {
			return v
		}
	}
	return ""
}

func set(env []string, name, value string) []string {
	return append(unset(env, name), name+"="+value)
}

func unset(env []string, name string) []string {
	kept := make([]string, 0, len(env)+1)
	for _, kv := range env {
		if k, _, _ := strings.Cut(kv, "="); k != name {
			kept = append(kept, kv)
		}
	}
	return kept
}
