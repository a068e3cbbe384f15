package buildpack

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"cupola/cmd/lifecycle/static"
	"cupola/runtime/contract"
)

// detectStaticfile takes an app with a Staticfile, even an empty one. An
// index.html alone is not enough (staticfile-buildpack: bin/detect).
func detectStaticfile(app string) bool { return exists(filepath.Join(app, "Staticfile")) }

// supplyStaticfile puts the server, which lies beside this program, into the
// droplet: a droplet must run where this staging's lifecycle is not.
func supplyStaticfile(s *stage) error {
	s.step("Supplying the static file server")
	self, err := os.Executable()
	if err != nil {
		return err
	}
	return copyFile(filepath.Join(s.deps, "static"), filepath.Join(filepath.Dir(self), filepath.Base(contract.FileServer)), 0o755)
}

func finalizeStaticfile(s *stage) (string, error) {
	config, warnings, err := readStaticfile(s.app)
	if err != nil {
		return "", err
	}
	for _, w := range warnings {
		s.warn("%s", w)
	}
	if config.Root != "" {
		s.step("Root folder %s", config.Root)
	}
	text, err := json.Marshal(config)
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(s.deps, "static.json"), text, 0o644); err != nil {
		return "", err
	}
	return fmt.Sprintf("$DEPS_DIR/%s/static $DEPS_DIR/%s/static.json $HOME", s.index, s.index), nil
}

// readStaticfile reads the app's Staticfile and Staticfile.auth, both
// optional, and checks what they name.
func readStaticfile(app string) (static.Config, []string, error) {
	root, err := os.OpenRoot(app)
	if err != nil {
		return static.Config{}, nil, err
	}
	defer func() { _ = root.Close() }()
	text, err := readOptional(root, "Staticfile")
	if err != nil {
		return static.Config{}, nil, err
	}
	config, warnings, err := parseStaticfile(text)
	if err != nil {
		return config, nil, err
	}
	if config.Root != "" {
		info, err := root.Stat(config.Root)
		if err != nil || !info.IsDir() {
			return config, nil, fmt.Errorf("the application Staticfile specifies a root directory %s that does not exist", config.Root)
		}
	}
	auth, err := readOptional(root, "Staticfile.auth")
	if err != nil {
		return config, nil, err
	}
	if auth == nil {
		return config, warnings, nil
	}
	config.Passwords, err = parsePasswords(auth)
	return config, warnings, err
}

// fileLimit bounds the configuration files that are read, in bytes.
const fileLimit = 1 << 20

// readOptional reads a file below root; one that does not exist is nil.
func readOptional(root *os.Root, name string) ([]byte, error) {
	info, err := root.Stat(name)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > fileLimit {
		return nil, fmt.Errorf("%s is not a regular file of at most %d bytes", name, fileLimit)
	}
	return root.ReadFile(name)
}

func copyFile(to, from string, mode os.FileMode) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
