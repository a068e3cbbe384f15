package debian

import (
	"fmt"
	"slices"
)

// variantPackages returns the packages a variant asks for by name ("none" none), besides the
// essential ones and what they all depend on.
func variantPackages(variant string) ([]string, error) {
	switch variant {
	case "core":
		return corePackages(), nil
	case "none":
		return nil, nil
	case "dev":
		return slices.Concat(corePackages(), devPackages()), nil
	case "stemcell":
		return slices.Concat(corePackages(), stemcellPackages()), nil
	}
	return nil, fmt.Errorf("variant %q is not known: choose none, core, dev or stemcell", variant)
}

// corePackages run compiled programs and shell scripts.
func corePackages() []string {
	return []string{
		"bash", "bzip2", "ca-certificates", "coreutils", "curl", "file", "git", "gzip", "iproute2", "jq", "less",
		"libyaml-0-2", "netbase", "netcat-openbsd", "openssh-client", "openssl", "passwd", "patch", "perl", "procps",
		"psmisc", "rsync", "tar", "tzdata", "unzip", "wget", "xz-utils", "zip", "zlib1g", "zstd",
	}
}

// devPackages add the toolchains and headers that building from source needs.
// Debian's npm is left out: it brings some 350 packages.
func devPackages() []string {
	return []string{
		"bundler", "g++", "gcc", "libcurl4-openssl-dev", "libffi-dev", "libpq-dev", "libsqlite3-dev", "libssl-dev",
		"libxml2-dev", "libxslt1-dev", "libyaml-dev", "make", "nodejs", "pkg-config", "python3", "python3-dev",
		"python3-pip", "python3-venv", "ruby", "ruby-dev", "zlib1g-dev",
	}
}

// stemcellPackages add what releases of BOSH take for granted, because stemcells have
// it: a compiler, chpst (of runit) and small tools. Templates are rendered by Ruby.
func stemcellPackages() []string {
	return []string{
		"autoconf", "automake", "bison", "cmake", "flex", "g++", "gcc", "iptables", "iputils-ping", "libcurl4-openssl-dev", "libpcap-dev",
		"libreadline-dev", "libssl-dev", "libtool", "libxml2-dev", "libxslt1-dev", "libyaml-dev", "logrotate", "lsof", "m4", "make",
		"pkg-config", "python3", "ruby", "runit", "strace", "sudo", "uuid-dev", "zlib1g-dev",
	}
}

// preferredPackages win among the alternatives of a dependency: without them the
// essential set drags in usrmerge's Perl modules and gawk.
func preferredPackages() []string { return []string{"mawk", "usr-is-merged"} }
