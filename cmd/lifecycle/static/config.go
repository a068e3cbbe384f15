// Package static is the web server of the staticfile buildpack: it serves an
// app's directory over HTTP with the options that a Staticfile can name.
package static

import (
	"encoding/json"
	"fmt"
	"os"
)

// Config is what the staticfile buildpack leaves in the droplet for the
// server. The zero value serves the app's directory with no extras.
type Config struct {
	Root           string            `json:"root,omitempty"` // below the app's directory
	Listing        bool              `json:"listing,omitempty"`
	DotFiles       bool              `json:"dot_files,omitempty"`
	PushState      bool              `json:"push_state,omitempty"` // serve / for what does not exist
	ForceHTTPS     bool              `json:"force_https,omitempty"`
	HTTP2          bool              `json:"http2,omitempty"`           // also take HTTP/2 without TLS
	StrictSecurity string            `json:"strict_security,omitempty"` // the header's value, empty for none
	StatusPages    map[string]string `json:"status_pages,omitempty"`    // status code or 4xx, 5xx → path
	Passwords      map[string]string `json:"passwords,omitempty"`       // user → htpasswd hash; without any, no user is asked
}

// readConfig reads the file the buildpack wrote.
func readConfig(path string) (Config, error) {
	var c Config
	text, err := os.ReadFile(path)
	if err != nil {
		return c, err
	}
	if err := json.Unmarshal(text, &c); err != nil {
		return c, fmt.Errorf("read %s: %w", path, err)
	}
	return c, nil
}
