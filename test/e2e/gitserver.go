package e2e

import (
	"io"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// GitServer serves the repositories in root over HTTP, with the program of this machine's git; nil if that is not there.
func GitServer(root string) http.Handler {
	path, err := exec.Command("git", "--exec-path").Output()
	backend := filepath.Join(strings.TrimSpace(string(path)), "git-http-backend")
	if _, missing := os.Stat(backend); err != nil || missing != nil {
		return nil
	}
	safe := []string{"HOME=" + root, "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*"}
	return &cgi.Handler{Path: backend, Stderr: io.Discard, Env: append(safe, "GIT_PROJECT_ROOT="+root, "GIT_HTTP_EXPORT_ALL=1")}
}
