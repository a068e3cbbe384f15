package buildpack

import (
	"fmt"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
)

// detectR takes an app with a r.yml (r-buildpack: bin/detect).
func detectR(app string) bool { return exists(filepath.Join(app, "r.yml")) }

// supplyR checks that the stack's R has the packages that r.yml names.
func supplyR(s *stage) error {
	rscript, err := s.find("r", "", []string{"Rscript"}, "/usr/local/bin")
	if err != nil {
		return err
	}
	out, err := s.command(call{argv: []string{rscript, "--version"}}).CombinedOutput() // some print it to standard error
	if err != nil {
		return fmt.Errorf("Rscript --version: %w: %s", err, out)
	}
	s.step("Using R %s of the stack", anyVersion().FindString(string(out)))
	var file struct {
		Packages []struct {
			Packages []struct {
				Name string `yaml:"name"`
			} `yaml:"packages"`
		} `yaml:"packages"`
	}
	text, err := s.readAppFile("r.yml")
	if err == nil {
		err = yaml.Unmarshal(text, &file)
	}
	if err != nil {
		return fmt.Errorf("r.yml is not valid: %w", err)
	}
	var missing, debian []string
	for _, source := range file.Packages {
		for _, p := range source.Packages {
			if s.command(call{argv: []string{rscript, "-e", "if (!requireNamespace(commandArgs(TRUE)[1], quietly=TRUE)) quit(status=1)", p.Name}}).Run() != nil {
				missing = append(missing, p.Name)
				debian = append(debian, "--package r-cran-"+strings.ToLower(p.Name))
			}
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("r.yml asks for packages of R that %s does not have: %s. Most are packages of Debian: sudo cupola stack build debian12 --with r %s", stackName(), strings.Join(missing, ", "), strings.Join(debian, " "))
	}
	return nil
}

// finalizeR leaves the command to the user, as Cloud Foundry's buildpack does.
func finalizeR(s *stage) (string, error) {
	if !s.has("Procfile") {
		s.warn("R apps have no default start command: name it in a Procfile or with cf push -c, as Rscript app.R")
	}
	return "", nil
}
