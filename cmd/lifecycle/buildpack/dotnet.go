package buildpack

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// detectDotnet takes published apps and projects (dotnet-core-buildpack: bin/detect).
func detectDotnet(app string) bool {
	for _, pattern := range []string{"*.runtimeconfig.json", "*.csproj", "*.fsproj", "*.vbproj", "*/*.csproj", "*/*.fsproj", "*/*.vbproj"} {
		if found, _ := filepath.Glob(filepath.Join(app, pattern)); len(found) > 0 {
			return true
		}
	}
	return false
}

// dotnetFramework is a shared framework and its version.
type dotnetFramework struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// finalizeDotnet starts a published app: by its own program, or with the stack's runtime.
func finalizeDotnet(s *stage) (string, error) {
	configs, _ := filepath.Glob(filepath.Join(s.app, "*.runtimeconfig.json"))
	switch {
	case len(configs) == 0:
		return "", errors.New("the app is a project's source. Publish it, and push what that makes: dotnet publish -c Release -o publish, then cf push -p publish")
	case len(configs) > 1:
		return "", errors.New("the app has several *.runtimeconfig.json: push the published directory of one app")
	}
	name := strings.TrimSuffix(filepath.Base(configs[0]), ".runtimeconfig.json")
	needed, err := s.dotnetFrameworks(filepath.Base(configs[0]))
	if err != nil {
		return "", err
	}
	if err := s.profileScript("dotnet", `export ASPNETCORE_URLS="${ASPNETCORE_URLS:-http://0.0.0.0:$PORT}"`, `export DOTNET_CLI_HOME="$HOME"`,
		`export DOTNET_SYSTEM_GLOBALIZATION_INVARIANT="${DOTNET_SYSTEM_GLOBALIZATION_INVARIANT:-1}"`); err != nil {
		return "", err
	}
	if len(needed) == 0 { // it brings its runtime
		if err := os.Chmod(filepath.Join(s.app, name), 0o755); err != nil {
			return "", fmt.Errorf("%s.runtimeconfig.json is of a self-contained app, whose program is missing: %w", name, err)
		}
		return "exec ./" + quoteShell(name), nil
	}
	dotnet, err := s.find("dotnet-core", "", []string{"dotnet"}, "/usr/lib/dotnet", "/usr/share/dotnet")
	if err != nil {
		return "", err
	}
	if err := s.checkFrameworks(dotnet, needed); err != nil {
		return "", err
	}
	// For commands such as `dotnet web.dll`, and for the app's own program, which looks for the runtime there.
	program, err := filepath.EvalSymlinks(dotnet)
	if err != nil {
		return "", err
	}
	root := quoteShell(filepath.Dir(program))
	if err := s.profileScript("dotnet-root", "export DOTNET_ROOT="+root+` PATH="$PATH":`+root); err != nil {
		return "", err
	}
	return "exec " + quoteShell(dotnet) + " ./" + quoteShell(name+".dll"), nil
}

// dotnetFrameworks are those that an app does not bring.
func (s *stage) dotnetFrameworks(file string) ([]dotnetFramework, error) {
	text, err := s.readAppFile(file)
	var config struct {
		Options struct {
			Framework  *dotnetFramework  `json:"framework"`
			Frameworks []dotnetFramework `json:"frameworks"`
		} `json:"runtimeOptions"`
	}
	if err == nil {
		err = json.Unmarshal(text, &config)
	}
	if err != nil {
		return nil, fmt.Errorf("%s is not valid: %w", file, err)
	}
	if f := config.Options.Framework; f != nil {
		return []dotnetFramework{*f}, nil
	}
	return config.Options.Frameworks, nil
}

// checkFrameworks compares with `dotnet --list-runtimes`, of which a line is `Microsoft.NETCore.App 8.0.1 [/usr/share/…]`. As .NET does, a
// later minor version is taken for an earlier one.
func (s *stage) checkFrameworks(dotnet string, needed []dotnetFramework) error {
	out, err := s.output(call{argv: []string{dotnet, "--list-runtimes"}})
	if err != nil {
		return err
	}
	for _, n := range needed {
		var versions []string
		found := false
		for line := range strings.Lines(out) {
			if f := strings.Fields(line); len(f) > 1 && f[0] == n.Name {
				versions = append(versions, f[1])
				found = found || satisfies(f[1], "^"+n.Version)
			}
		}
		if !found {
			return fmt.Errorf("the app asks for %s %s, which %s does not have. Available versions: %v. Or publish the app with its runtime: dotnet publish --self-contained", n.Name, n.Version, stackName(), versions)
		}
	}
	s.step("Using .NET of the stack: %s", dotnet)
	return nil
}
