package contract

import (
	"fmt"
	"strings"
)

// Toolchain is what the apps of a system buildpack need of their stack.
type Toolchain struct {
	// Name is what `cupola stack build --with` calls it; also the language of the buildpack that uses it, except node's.
	Name string
	// Programs are alternatives, the first of which that a stack has is used. One with a slash is a pattern of paths from the root,
	// another a name in the search path.
	Programs []string
	// Packages of Debian and Ubuntu that bring it; nil where neither has it.
	Packages []string
	// Otherwise says how to get it where there is no package.
	Otherwise string
	// Releases are the versions of it in the packages of suites, the most usual suite first; nil where they are not known.
	Releases []Release
}

// Release is the version of a toolchain in a suite that `cupola stack build` knows. Its last number grows with the suite's updates.
type Release struct{ Suite, Version string }

// releases are those of Debian 12 and 13.
func releases(debian12, debian13 string) []Release {
	return []Release{{"debian12", debian12}, {"debian13", debian13}}
}

// Toolchains lists them, the most used ones first.
func Toolchains() []Toolchain {
	return []Toolchain{
		{Name: "java", Programs: []string{"usr/lib/jvm/*/bin/java", "java"}, Packages: []string{"default-jre-headless", "tomcat10-common"}, Releases: releases("17.0.17", "21.0.9")},
		{Name: "node", Programs: []string{"node", "nodejs"}, Packages: []string{"nodejs", "npm"}, Releases: releases("18.20.4", "20.19.2")},
		{Name: "python", Programs: []string{"python3", "python"}, Packages: []string{"python3", "python3-pip", "python3-venv"}, Releases: releases("3.11.2", "3.13.5")},
		{Name: "ruby", Programs: []string{"ruby"}, Packages: []string{"ruby", "ruby-dev", "bundler", "g++", "make", "libffi-dev", "libyaml-dev", "zlib1g-dev"},
			Releases: releases("3.1.2", "3.3.8")},
		{Name: "go", Programs: []string{"go", "usr/local/go/bin/go", "usr/lib/go/bin/go", "usr/lib/go-*/bin/go"}, Packages: []string{"golang-go"}, Releases: releases("1.19.8", "1.24.4")},
		{Name: "php", Programs: []string{"php-fpm", "usr/sbin/php-fpm*"}, Packages: []string{"php-fpm", "php-cli", "php-bcmath", "php-curl", "php-gd", "php-intl",
			"php-mbstring", "php-mysql", "php-pgsql", "php-sqlite3", "php-xml", "php-zip", "composer", "apache2-bin"}, Releases: releases("8.2.29", "8.4.11")},
		{Name: "nginx", Programs: []string{"nginx", "usr/sbin/nginx"}, Packages: []string{"nginx-light", "libnginx-mod-stream"}},
		{Name: "rust", Programs: []string{"cargo"}, Packages: []string{"cargo"}},
		{Name: "r", Programs: []string{"Rscript"}, Packages: []string{"r-base-core"}},
		{Name: "dotnet-core", Programs: []string{"dotnet", "usr/lib/dotnet/dotnet", "usr/share/dotnet/dotnet"},
			Otherwise: "install the .NET runtime from Microsoft's packages, or publish the app with its runtime (dotnet publish --self-contained)"},
	}
}

// ToolchainOf returns the toolchain with that name.
func ToolchainOf(name string) (Toolchain, bool) {
	for _, t := range Toolchains() {
		if t.Name == name {
			return t, true
		}
	}
	return Toolchain{}, false
}

// HowToGet says how a stack comes to have the toolchain. Without a stack's name it is about this machine's programs, the stack host.
func (t Toolchain) HowToGet(stack string) string {
	if t.Otherwise != "" {
		return t.Otherwise
	}
	var ways []string
	if stack == "" || stack == "host" {
		ways = append(ways, "sudo apt-get install -y "+strings.Join(t.Packages, " "))
	}
	ways = append(ways, fmt.Sprintf("sudo cupola stack build debian12 --with %s, and push with -s debian12", t.Name))
	return strings.Join(ways, ", or ")
}
