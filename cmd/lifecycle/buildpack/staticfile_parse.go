package buildpack

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"go.yaml.in/yaml/v3"

	"cupola/cmd/lifecycle/static"
)

// staticfile is the file's options under the names the Cloud Foundry
// buildpack gives them. Switches are texts: `true` and `enabled` both mean on.
type staticfile struct {
	Root            string            `yaml:"root"`
	Directory       string            `yaml:"directory"`
	DotFiles        string            `yaml:"host_dot_files"`
	LocationInclude string            `yaml:"location_include"`
	PushState       string            `yaml:"pushstate"`
	SSI             string            `yaml:"ssi"`
	HTTP2           string            `yaml:"enable_http2"`
	ForceHTTPS      string            `yaml:"force_https"`
	HSTS            string            `yaml:"http_strict_transport_security"`
	HSTSSubdomains  string            `yaml:"http_strict_transport_security_include_subdomains"`
	HSTSPreload     string            `yaml:"http_strict_transport_security_preload"`
	StatusCodes     map[string]string `yaml:"status_codes"`
}

// parseStaticfile reads a Staticfile; the warnings name options that the
// server does not have.
func parseStaticfile(text []byte) (static.Config, []string, error) {
	var f staticfile
	if err := yaml.Unmarshal(text, &f); err != nil {
		return static.Config{}, nil, fmt.Errorf("Staticfile is not valid YAML: %w", err)
	}
	c := static.Config{
		Listing: f.Directory == "visible", DotFiles: on(f.DotFiles), PushState: on(f.PushState),
		ForceHTTPS: on(f.ForceHTTPS), HTTP2: on(f.HTTP2), StatusPages: f.StatusCodes,
		StrictSecurity: f.strictSecurity(),
	}
	if f.Root != "" {
		c.Root = strings.TrimPrefix(path.Clean("/"+f.Root), "/")
	}
	var warnings []string
	if f.LocationInclude != "" {
		warnings = append(warnings, "location_include is nginx configuration and is ignored")
	}
	if on(f.SSI) {
		warnings = append(warnings, "ssi is not supported and is ignored")
	}
	return c, warnings, nil
}

func (f staticfile) strictSecurity() string {
	if !on(f.HSTS) {
		return ""
	}
	value := "max-age=31536000" // the buildpack's year
	if on(f.HSTSSubdomains) {
		value += "; includeSubDomains"
	}
	if on(f.HSTSPreload) {
		value += "; preload"
	}
	return value
}

func on(option string) bool { return option == "true" || option == "enabled" }

// parsePasswords reads a Staticfile.auth, which is an htpasswd file.
func parsePasswords(text []byte) (map[string]string, error) {
	users := map[string]string{}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		user, hash, ok := strings.Cut(line, ":")
		if !ok || user == "" {
			return nil, fmt.Errorf("Staticfile.auth: a line is not user:hash")
		}
		// More fields may follow and mean nothing here.
		hash, _, _ = strings.Cut(hash, ":")
		if !static.Supported(hash) {
			return nil, fmt.Errorf("Staticfile.auth: the hash of user %s is of an unknown kind; make it with htpasswd -B", user)
		}
		users[user] = hash
	}
	if len(users) == 0 {
		// Serving the site to everyone is not what the file was put there for.
		return nil, errors.New("Staticfile.auth names no user")
	}
	return users, nil
}
